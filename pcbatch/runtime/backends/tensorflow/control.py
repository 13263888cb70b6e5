"""Control in TensorFlow: conditions, loops and lists of records in graphs, and programs, compiled by XLA or not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.protocol import Handlers, Lowering, Records, Spec, Surroundings, repeated
from pcbatch.runtime.backends.tensorflow import (
    branches,
    compiling,
    gradients,
    graphs,
    handlers,
    hlo,
    private,
    prompt,
    trace_cache,
    traces,
)
from pcbatch.runtime.backends.tensorflow.xla_cpu import gathering
from pcbatch.runtime.store.cache_session import Name


class TensorFlowRecords:
    """See `protocol.Records`."""

    def none(self, specs: Sequence[Spec]) -> list[tf.Tensor]:
        return [empty(dtype) for dtype, _ in specs]

    def added(self, records: Sequence[tf.Tensor], arrays: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return [pushed(*each) for each in zip(records, arrays, strict=True)]

    def without_last(
        self, records: Sequence[tf.Tensor], specs: Sequence[Spec]
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        found = [popped(record, *spec) for record, spec in zip(records, specs, strict=True)]
        return [record for record, _ in found], [array for _, array in found]

    def joined(self, records: Sequence[tf.Tensor], specs: Sequence[Spec]) -> list[tf.Tensor]:
        return [joined(record, *spec) for record, spec in zip(records, specs, strict=True)]


_SURROUNDINGS: dict[Surroundings, Callable[[], bool]] = {
    "fixed program": graphs.in_outer_xla,
    "vectorised function": gradients.is_vectorized,
    "saved gradient": gradients.is_saved,
}


class TensorFlowControl:
    """See `protocol.Control`."""

    records: Records = TensorFlowRecords()

    # -- control -------------------------------------------------------------------------------------------------------

    def cond(
        self,
        predicate: tf.Tensor,
        function: Callable[[], list[tf.Tensor]],
        otherwise: list[tf.Tensor] | Callable[[], list[tf.Tensor]],
        *,
        seldom: bool = False,
    ) -> list[tf.Tensor]:
        if callable(otherwise):
            make = branches.either if branches.apply(seldom=True) else tf.cond
            return list(make(predicate, function, otherwise))
        if branches.apply(seldom=seldom):
            return branches.conditional(predicate, function, otherwise)
        results = tf.cond(predicate, function, lambda: otherwise)
        for result, old in zip(results, otherwise, strict=True):
            result.set_shape(old.shape)
        return list(results)

    def switch(
        self, number: tf.Tensor, functions: Sequence[Callable[[], list[tf.Tensor]]], before: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        results = list(tf.switch_case(number, list(functions)))
        for result, old in zip(results, before, strict=True):
            result.set_shape(old.shape)
        return results

    def guarded(
        self,
        predicate: tf.Tensor,
        function: Callable[..., list[tf.Tensor]],
        before: Sequence[tf.Tensor],
        in_place: Sequence[bool],
    ) -> list[tf.Tensor]:
        if not gathering.would_copy(before, in_place):
            return self.cond(predicate, lambda: function(predicate, *before), list(before))
        return repeated(self, predicate, lambda go, arrays: (go & False, function(go, *arrays)), before)

    def while_loop(
        self,
        condition: Callable[[Any], tf.Tensor],
        body: Callable[[Any], Any],
        state: Any,
        *,
        seldom: bool = False,
        stops: bool = False,
    ) -> Any:
        if stops and (is_told := prompt.reader()) is not None:

            def goes_on(carried: Any) -> tf.Tensor:
                return tf.logical_and(condition(carried[1]), tf.logical_not(is_told(carried[0])))

            def turn(carried: Any) -> Any:
                return carried[0] + 1, body(carried[1])

            return self.while_loop(goes_on, turn, (tf.constant(0), state), seldom=seldom)[1]
        if branches.apply(seldom=seldom):
            start = tf.nest.map_structure(tf.convert_to_tensor, state)

            def packed(carried: list[tf.Tensor]) -> Any:
                return tf.nest.pack_sequence_as(start, carried)

            end = branches.loop(
                lambda carried: condition(packed(carried)),
                lambda carried: tf.nest.flatten(body(packed(carried))),
                tf.nest.flatten(start),
            )
            return packed(end)

        # A caller may know the number of lanes of some arrays only: all loop variables keep their first shape.
        def shaped_body(carried: Any) -> Any:
            after = body(carried)
            tf.nest.map_structure(lambda new, old: new.set_shape(old.shape), after, state)
            return (after,)

        (end,) = tf.while_loop(condition, shaped_body, (state,), parallel_iterations=1)
        return end

    def place(self) -> str:
        return "GPU" if graphs.on_gpu() else "CPU"

    # -- compiling -----------------------------------------------------------------------------------------------------

    scope = staticmethod(tf.name_scope)

    def compile(
        self, function: Callable[..., Any], jit: bool, specs: Sequence[Spec] | None = None, name: Name | None = None
    ) -> Callable[..., Any]:
        # TensorFlow warns of retracing by a function's code, which all our programs share; a partial stands for itself.
        signature = None if specs is None else [tf.TensorSpec(shape, dtype) for dtype, shape in specs]
        return compiling.Traced(
            lambda: tf.function(
                functools.partial(traces.remembering, function),
                jit_compile=True if jit else None,
                autograph=False,
                input_signature=signature,
                experimental_attributes=private.unordered(),  # pieces are pure: no operation has to wait for another
            ),
            name,
            compiled=jit,
        )

    def direct(self, compiled: Any, arrays: Sequence[tf.Tensor]) -> Callable[[Sequence[tf.Tensor]], Sequence[Any]]:
        found: Callable[[Sequence[tf.Tensor]], Sequence[Any]] = compiled.direct(arrays)
        return found

    def lower(self, compiled: Any, specs: Sequence[Spec], jit: bool) -> None:
        signature = [tf.TensorSpec(shape, dtype) for dtype, shape in specs]
        traced = compiled.get_concrete_function(*signature)
        if jit:
            # What XLA reads must have no length unknown; the trace, which is kept, may have some.
            fixed = tf.function(lambda *arrays: traced(*arrays), jit_compile=True, autograph=False)
            text = fixed.experimental_get_compiler_ir(*signature)
            prompt.off_thread(lambda: text(stage="hlo"))

    targeting = staticmethod(graphs.targeting)

    def lowering(self, function: Callable[..., Any], specs: Sequence[Spec]) -> Lowering:
        return trace_cache.Traced(function, [tf.TensorSpec(shape, dtype) for dtype, shape in specs])

    def version(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return trace_cache.library(), trace_cache.settings()

    forbid_gradients = staticmethod(gradients.seal)
    is_watched = staticmethod(private.is_watched)

    differentiable = staticmethod(gradients.differentiable)

    def runs_now(self, *, unwatched: bool = False) -> bool:
        return bool(private.is_unseen() if unwatched else tf.executing_eagerly())

    def inside(self, what: Surroundings) -> bool:
        return bool(_SURROUNDINGS[what]())

    def is_concrete(self, array: Any) -> bool:
        return not tf.is_symbolic_tensor(array)

    handlers: Handlers = handlers
    checked_values = staticmethod(graphs.assert_ok)
    explain = staticmethod(hlo.explain)


_ANY_SHAPE = -1


def empty(dtype: str) -> tf.Tensor:
    """A list without entries."""
    return tf.raw_ops.EmptyTensorList(element_shape=_ANY_SHAPE, max_num_elements=-1, element_dtype=tf.as_dtype(dtype))


def pushed(record: tf.Tensor, array: tf.Tensor) -> tf.Tensor:
    """The list with an array more at its end; the arrays in it are not copied."""
    return tf.raw_ops.TensorListPushBack(input_handle=record, tensor=array)


def popped(record: tf.Tensor, dtype: str, shape: tuple[int | None, ...]) -> tuple[tf.Tensor, tf.Tensor]:
    """The list without its last entry, and that."""
    rest, array = tf.raw_ops.TensorListPopBack(
        input_handle=record, element_shape=_ANY_SHAPE, element_dtype=tf.as_dtype(dtype)
    )
    return rest, tf.ensure_shape(array, shape)


def joined(record: tf.Tensor, dtype: str, shape: tuple[int | None, ...]) -> tf.Tensor:
    """The entries as one array, the first at its beginning: their lengths along the first axis may differ."""
    return tf.raw_ops.TensorListConcatV2(
        input_handle=record,
        element_dtype=tf.as_dtype(dtype),
        element_shape=tf.constant([-1 if size is None else size for size in shape], tf.int32),
        leading_dims=tf.zeros([0], tf.int64),
    ).tensor
