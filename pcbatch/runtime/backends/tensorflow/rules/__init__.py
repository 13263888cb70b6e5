"""Vectorisation rules of our own, for operations that TensorFlow's pfor has none for, or one that does not do.

They are in a copy of pfor (`private.copy_of_pfor`), so that they are ours alone. A rule gets the inputs of one
operation, each either *stacked* (`[lanes, ...]`) or the same for all lanes, and gives stacked outputs. The rules lie by
family in the files beside this one.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private, work
from pcbatch.runtime.backends.tensorflow.rules import (
    arrays,
    convolutions,
    elements,
    extremes,
    images,
    linear_algebra,
    loops,
    straight,
)
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted
from pcbatch.runtime.backends.tensorflow.xla_cpu import softplus

RULES: dict[str, Rule] = {
    **arrays.RULES,
    **convolutions.RULES,
    **elements.RULES,
    **images.RULES,
    **linear_algebra.RULES,
}
"""Rules for operations that TensorFlow has none for, by operation; where it has one in a later version, that stays."""

CORRECTIONS: dict[str, tuple[Applies, Rule]] = {
    **arrays.CORRECTIONS,
    **convolutions.CORRECTIONS,
    **elements.CORRECTIONS,
    **extremes.CORRECTIONS,
    **linear_algebra.CORRECTIONS,
    **softplus.CORRECTIONS,
}
"""Cases in which our rule stands in for TensorFlow's own, which gives up on them or gets them wrong."""


def _register(registry: MutableMapping[str, private.Converter], wrap: Callable[[tf.Tensor, bool], Any]) -> None:
    """Put our rules into the registry of a copy of pfor; operations that TensorFlow has a rule for keep it."""
    for name, rule in RULES.items():
        if name not in registry:
            registry[name] = functools.partial(_apply, rule, wrap)
    for name, (applies, rule) in CORRECTIONS.items():
        if name in registry:
            ours = functools.partial(_apply, rule, wrap)
            registry[name] = functools.partial(_choose, applies, ours, registry[name])
    for name in loops.LOOPS:
        if name in registry:
            registry[name] = functools.partial(loops.checked, registry[name])


READS = {"ReadVariableOp", *elements.READS}
"""Operations on a variable's handle that can do with its value in place of the handle."""

Pairs = Sequence[tuple[tf.Tensor, tf.Tensor]]
"""Tensors of a graph that is vectorised, and what stands for each in the present one."""


def vectorized(
    graph: Any, outputs: Sequence[tf.Tensor], stacked: Pairs, same: Pairs, handles: Pairs, lanes: Any
) -> list[tf.Tensor]:
    """The tensors `outputs` of `graph`, which computes them for one lane, for all lanes: `[lanes, ...]`.

    What stands for `stacked` tensors is `[lanes, ...]`, `same` ones do not differ by lane; what is read from variables
    by these `handles` is what they are paired with. Every operation between must have a rule. Operations are made in
    the present graph, a function's; `graph` stays as it is.

    Not `tf.vectorized_map`, which gathers where the number of lanes is unknown and broadcasts axes of length 1; nor the
    public `pfor`, which traces anew each time, into the present graph, and leaves what it has traced there.
    """
    found = _converted(graph, outputs, stacked, same, handles, lanes)
    return [row.t if row.is_stacked else tf.broadcast_to(row.t, [lanes, *row.t.shape]) for row in found]


def taken_over(graph: Any, outputs: Sequence[tf.Tensor], same: Pairs, handles: Pairs) -> list[tf.Tensor]:
    """The same for one lane: the tensors `outputs` of `graph` as they are, made in the present graph.

    No rule is needed but for what has one of its own, and where XLA gets an operation wrong.
    """
    found = _converted(graph, outputs, [], same, handles, 1)
    return [row.t[0] if row.is_stacked else row.t for row in found]


def _converted(
    graph: Any, outputs: Sequence[tf.Tensor], stacked: Pairs, same: Pairs, handles: Pairs, lanes: Any
) -> list[Converted]:
    present = tf.compat.v1.get_default_graph()
    private.share_functions(graph, present)  # an operation that no lane's value goes into is taken as it is
    known = [(handle, value) for handle, value in handles if {user.type for user in handle.consumers()} <= READS]
    read = [(user.outputs[0], value) for handle, value in handles for user in handle.consumers() if _is_read(user)]
    done = {id(inner) for inner, _ in (*known, *same)}
    captured = [
        (inner, private.capture(present, outer)) for outer, inner in private.captures(graph) if id(inner) not in done
    ]
    conversion = _Conversion(graph, lanes)
    for pairs, is_stacked in ((stacked, True), *((pairs, False) for pairs in (same, known, read, captured))):
        for inner, outer in pairs:
            conversion.give(inner, Converted(outer, is_stacked))
    used = work.needed(outputs)
    for operation in graph.get_operations():  # in an order in which inputs come first
        if operation.name in used:
            conversion.convert(operation)
    return [conversion.found[id(output)] for output in outputs]


class _Conversion:
    """A graph on its way to all lanes: what is easy is converted here, the rest by pfor, which sees all before it."""

    def __init__(self, graph: Any, lanes: Any):
        self.graph, self.lanes = graph, lanes
        self.tensors: list[tf.Tensor] = []
        self.found: dict[int, Converted] = {}
        """What stands for `tensors`, by their `id`."""
        self.pfor: private.Conversion | None = None
        """Set up, which takes as long as a small piece, when something is not easy."""

    def give(self, tensor: tf.Tensor, value: Converted) -> None:
        """Let `value` stand for `tensor`."""
        self.tensors.append(tensor)
        self.found[id(tensor)] = value
        if self.pfor is not None:
            self.pfor.give(tensor, value.t, value.is_stacked)

    def convert(self, operation: Any) -> None:
        """Convert the outputs of an operation, its inputs having been converted."""
        if all(id(output) in self.found for output in operation.outputs):
            return
        inputs = [self.found[id(tensor)] for tensor in operation.inputs]
        outputs = straight.converted(operation, inputs) or extremes.same_for_all(operation, inputs)
        for output, value in zip(operation.outputs, outputs or self._by_pfor(operation), strict=True):
            self.give(output, value)

    def _by_pfor(self, operation: Any) -> list[Converted]:
        if self.pfor is None:
            self.pfor = private.Conversion(private.copy_of_pfor(_register), self.graph, self.lanes)
            for tensor in self.tensors:
                value = self.found[id(tensor)]
                self.pfor.give(tensor, value.t, value.is_stacked)
        found = [self.pfor.convert(output) for output in operation.outputs]
        return [Converted(each.t, each.is_stacked) for each in found]


def _is_read(operation: Any) -> bool:
    return bool(operation.type == "ReadVariableOp")


_observed: ContextVar[list[str] | None] = ContextVar("observed", default=None)


@contextlib.contextmanager
def observed(names: list[str]) -> Iterator[None]:
    """Add to `names` the operations to which a rule of ours is applied inside."""
    token = _observed.set(names)
    try:
        yield
    finally:
        _observed.reset(token)


def _apply(rule: Rule, wrap: Callable[[tf.Tensor, bool], Any], inputs: Any) -> list[Any]:
    names = _observed.get()
    if names is not None:
        names.append(inputs.op_type)
    outputs = rule(inputs)
    return [wrap(output, True) for output in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _choose(applies: Applies, ours: Callable[[Any], Any], theirs: Callable[[Any], Any], inputs: Any) -> Any:
    return ours(inputs) if applies(inputs) else theirs(inputs)
