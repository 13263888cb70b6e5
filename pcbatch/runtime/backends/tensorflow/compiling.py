"""Programs as TensorFlow's functions, which are traced and compiled when they are first called."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private, prompt, raw_ops, trace_cache, xla_cpu
from pcbatch.runtime.backends.tensorflow.invariants import is_compiled
from pcbatch.runtime.store.cache_session import Name


class Traced:
    """A `tf.function` that is a graph even where `tf.config.run_functions_eagerly(True)` is set for the user's own.

    `make()` gives the function anew: one is traced while programs may be tuned to XLA's CPU compiler, one while not.
    What has a `name` is looked for on disk, and kept there, where there is a cache. `compiled` tells that it is XLA's.
    """

    def __init__(self, make: Callable[[], Any], name: Name | None = None, compiled: bool = False):
        self._plain, self._tuned, self._name, self._compiled = make(), make(), name, compiled
        self._ready: dict[Any, Any] = {}
        self._direct: dict[Any, Any] = {}

    @property
    def function(self) -> Any:
        """The function for programs as they are traced now."""
        return self._tuned if xla_cpu.is_on() else self._plain

    @property
    def get_concrete_function(self) -> Any:
        """The attribute of `tf.function`."""
        return self.function.get_concrete_function

    @property
    def experimental_get_compiler_ir(self) -> Any:
        """The attribute of `tf.function`."""
        return self.function.experimental_get_compiler_ir

    def __call__(self, *arrays: Any) -> Any:
        """Run it."""
        if tf.config.functions_run_eagerly():
            return self.get_concrete_function(*arrays)(*arrays)
        function = self.function
        if not tf.executing_eagerly():
            return _in_graph(function, arrays)
        if not all(isinstance(array, tf.Tensor) for array in arrays):
            return function(*arrays)
        return self._run(self._ready_for(function, arrays), arrays)

    def ready(self, arrays: Sequence[Any]) -> Callable[[], Any]:
        """Return a thunk that runs it on these arrays, already traced, and returns flat results that no tape sees."""
        function = self.function
        if not tf.executing_eagerly() or not all(isinstance(array, tf.Tensor) for array in arrays):
            function.get_concrete_function(*arrays)
            return partial(_in_graph, function, arrays)
        found = self._ready_for(function, arrays)
        call = self._direct_of(found) or partial(private.call, found)
        return lambda: call(arrays)

    def _run(self, traced: Any, arrays: Sequence[tf.Tensor]) -> Any:
        # The same way as all later calls: called in another way, TensorFlow would have it compiled once more.
        call = self._direct_of(traced) if private.is_unseen() else None
        return private.call(traced, arrays) if call is None or not _is_flat(traced) else call(arrays)

    def _ready_for(self, function: Any, arrays: Sequence[tf.Tensor]) -> Any:
        """Return the executable for such arrays: a concrete function, or one kept on disk."""
        # A `tf.function` looks for the signature of its arguments for half of the time of a small call.
        key = (id(function), *map(private.spec, arrays))
        if key not in self._ready:
            kept = None if self._name is None else trace_cache.run_of(function, arrays, self._name)
            self._ready[key] = kept or function.get_concrete_function(*arrays)
        return self._ready[key]

    def direct(self, arrays: Sequence[tf.Tensor]) -> Callable[[Sequence[tf.Tensor]], Sequence[Any]]:
        """Return a call for eager tensors like `arrays` that no tape sees and that does not inspect its arguments."""
        switch, was_on = xla_cpu.switch, xla_cpu.switch.on
        call = self._direct_of(self._ready_for(self.function, arrays))
        if call is None:
            return lambda given: self(*given)
        return lambda given: call(given) if switch.on is was_on else self(*given)

    def _direct_of(self, traced: Any) -> Callable[[Sequence[tf.Tensor]], Sequence[Any]] | None:
        if traced not in self._direct:
            call = traced if isinstance(traced, trace_cache.StoredTrace) else private.direct(traced, self._compiled)
            self._direct[traced] = call and prompt.prompt(call, traced.captured_inputs, self._size_of(traced))
        found: Callable[[Sequence[tf.Tensor]], Sequence[Any]] | None = self._direct[traced]
        return found

    def _size_of(self, traced: Any) -> Callable[[Sequence[tf.Tensor]], Hashable]:
        """A function that tells for which arrays XLA compiles anew; None for a graph that has it compile as it runs.

        Such a graph calls compiled programs, on stacks that grow.
        """
        is_kept = isinstance(traced, trace_cache.StoredTrace)
        if self._compiled:
            fixed = is_kept or all(each.shape.is_fully_defined() for each in traced.inputs)
            return (lambda arrays: ()) if fixed else _sizes
        inside = traced.is_compiled if is_kept else is_compiled(traced.graph.as_graph_def().library.function)
        return lambda arrays: None if inside else ()


def _sizes(arrays: Sequence[tf.Tensor]) -> Hashable:
    return tuple(map(private.spec, arrays))


def _in_graph(function: Any, arrays: Sequence[Any]) -> Any:
    """The function in a graph: of another program, or of a caller's, whose runs are not ours to stop."""
    concrete = function.get_concrete_function(*arrays)
    if raw_ops.in_program() or not any(map(prompt.is_mark, concrete.captured_inputs)):
        return function(*arrays)
    return private.call(concrete, arrays, prompt.unstopped(concrete.captured_inputs))


def _is_flat(traced: Any) -> bool:
    """Return whether a traced function's results are a list of tensors, and so their own leaves."""
    if isinstance(traced, trace_cache.StoredTrace):
        return True
    results = traced.structured_outputs
    return isinstance(results, list) and all(isinstance(each, tf.Tensor) for each in results)
