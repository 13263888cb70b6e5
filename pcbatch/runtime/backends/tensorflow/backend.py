"""The TensorFlow backend: the machine's array operations, compiled by XLA or run as a plain graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import Span
from pcbatch.ir import values
from pcbatch.ir.machine import Piece, Program
from pcbatch.ir.types import TensorType, Type
from pcbatch.runtime.backends.pieces import Kernels, Leaves, Linear, Note, Signature, Together, Wanted
from pcbatch.runtime.backends.protocol import Ended, Explanation, PullBack, Spec
from pcbatch.runtime.backends.tensorflow import (
    arguments,
    branches,
    compiling,
    described,
    equivalents,
    gradients,
    graphs,
    kernels,
    lengths,
    linearize,
    native,
    pieces,
    private,
    ready,
    refusals,
    scattering,
    sizes,
    structures,
    traces,
)
from pcbatch.runtime.backends.tensorflow import records as record_lists
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.xla_cpu import counting, gathering, guards, stacking, succession, writing
from pcbatch.runtime.store.opening import Name


class TensorFlowBackend:
    """See `protocol.Backend`."""

    name = "tensorflow"
    ops_module = "pcbatch.runtime.backends.tensorflow.ops"
    plain_builtins: Mapping[str, Callable[..., Any]] = arguments.PLAIN_BUILTINS

    def equivalent(self, function: Any) -> str | None:
        return equivalents.equivalent(function)

    def spelling(self, operation: str) -> str:
        return structures.spelling(operation)

    # -- a user's values -----------------------------------------------------------------------------------------------

    def is_array(self, value: Any) -> bool:
        return isinstance(value, (tf.Tensor, tf.Variable, np.ndarray, np.generic))

    def is_variable(self, value: Any) -> bool:
        return isinstance(value, tf.Variable) or isinstance(getattr(value, "value", None), tf.Variable)  # Keras's own

    def takes_gradients(self, value: Any) -> bool:
        return gradients.takes_gradients(value)

    def type_of(self, value: Any) -> Type:
        return structures.type_of(value)

    def example_type(self, value: Any) -> Type:
        return arguments.example_type(value)

    def as_arrays(self, value: Any, example: bool = False) -> Any:
        return arguments.as_arrays(value, example)

    def structure_of(self, value: Any) -> Type:
        return arguments.structure_of(value)

    def spec_of(self, value: Any) -> Hashable | None:
        is_there = isinstance(value, tf.Tensor) and not tf.is_symbolic_tensor(value)
        return (value.dtype, value.shape) if is_there else None

    def is_steady(self, value: Any) -> bool:
        return self.spec_of(value) is not None

    def spread(self, array: Any, type_: TensorType, lanes: Any) -> tf.Tensor:
        return tf.broadcast_to(tf.convert_to_tensor(array, type_.dtype), [lanes, *type_.shape])

    def as_python(self, error: Exception) -> Exception:
        return arguments.as_python(error)

    def as_type(self, value: Any, type_: Type) -> Any:
        return arguments.as_type(value, type_)

    def wrap(self, value: Any, type_: Type) -> Any:
        return structures.wrap(value, type_)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def evaluate(self, piece: Piece, reads: Sequence[Any], shared: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        types = [structures.type_of(value) for value in shared]
        operands = traces.with_kept(piece, [values.flatten(*each) for each in zip(types, shared, strict=True)])
        shared = [values.pack(*each) for each in zip(types, operands, strict=True)]
        with recording() as recorder:
            outputs = piece.compiled(*reads, *shared)
        return outputs, int(recorder.site())

    def store_element(self, array: Any, indices: Any, value: Any) -> tf.Tensor:
        return scattering.store_element(array, indices, value)

    def abstract_eval(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[Type, ...]:
        return pieces.abstract_eval(piece, reads, shared)

    def sizes(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> frozenset[str]:
        return sizes.sizes(piece, reads, shared)

    def checked_sites(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> frozenset[int]:
        return pieces.checked_sites(piece, reads, shared)

    def cost(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> float:
        return pieces.cost(piece, reads, shared)

    def line_costs(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[float, ...]:
        return pieces.line_costs(piece, reads, shared)

    def together(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> Together:
        return pieces.together(piece, reads, shared)

    def kernels(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> Kernels:
        return kernels.kernels(piece, reads, shared)

    def vectorize(
        self,
        piece: Piece,
        signature: Signature,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        lanes: Any,
        taking_part: tf.Tensor | None = None,
        note: Note | None = None,
    ) -> tuple[list[list[tf.Tensor]], tf.Tensor | None]:
        return pieces.vectorize(piece, signature, reads, shared, lanes, taking_part, note)

    def captured(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> list[Any]:
        return traces.captured(piece, reads, shared)

    def linearize(self, piece: Piece, signature: Signature, wanted: Wanted) -> Linear:
        return linearize.Linearized(piece, signature, wanted)

    def run_one(
        self, piece: Piece, signature: Signature, reads: Sequence[Leaves], shared: Sequence[Leaves]
    ) -> tuple[list[list[tf.Tensor]], tf.Tensor | None]:
        return pieces.run_one(piece, signature, reads, shared)

    def calls(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> float:
        return pieces.calls(piece, reads, shared)

    def calls_in_tile(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> float:
        return pieces.calls_in_tile(piece, reads, shared)

    def has_loop(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> bool:
        return pieces.has_loop(piece, reads, shared)

    def tracing_once(self) -> AbstractContextManager[None]:
        return traces.once()

    def described(self, piece: Piece, signature: Signature) -> str | None:
        return described.described(piece, signature)

    def native_obstacles(self, given: Sequence[tuple[Piece, Signature]]) -> list[tuple[tuple[str, Span | None], ...]]:
        return pieces.native_obstacles(given)

    # -- making arrays -------------------------------------------------------------------------------------------------

    def zeros(self, lanes: Any, type_: TensorType, entries: Any = None) -> tf.Tensor:
        shape = (lanes, *(() if entries is None else (entries,)), *type_.shape)
        if not isinstance(lanes, int) or entries is not None:
            return tf.zeros(shape, type_.dtype)
        return ready.once(("zeros", shape, type_.dtype), lambda: tf.zeros(shape, type_.dtype))

    def constant(self, value: int) -> tf.Tensor:
        return ready.constant(int(value))

    def array(self, value: Any, dtype: str) -> tf.Tensor:
        return tf.convert_to_tensor(value, dtype)

    def lane_numbers(self, lanes: Any) -> tf.Tensor:
        return ready.numbers(lanes) if isinstance(lanes, int) else tf.range(lanes, dtype=tf.int32)

    def lanes_of(self, array: tf.Tensor) -> Any:
        static = array.shape[0]
        return tf.shape(array)[0] if static is None else static

    def entries_of(self, stack: tf.Tensor) -> Any:
        static = stack.shape[1]
        return tf.shape(stack)[1] if static is None else static

    def lengthen(self, stack: tf.Tensor, entries: Any) -> tf.Tensor:
        return tf.pad(stack, [[0, 0], [0, entries - self.entries_of(stack)]] + [[0, 0]] * (len(stack.shape) - 2))

    def extended(self, array: tf.Tensor, length: int) -> tf.Tensor:
        return lengths.extended(array, length)

    def first(self, array: Any, length: tf.Tensor | int) -> Any:
        return lengths.first(array, length) if isinstance(array, tf.Tensor) else array[:length]

    # -- elementwise ---------------------------------------------------------------------------------------------------

    def cast(self, array: tf.Tensor, dtype: str) -> tf.Tensor:
        return ready.cast(array, tf.as_dtype(dtype))

    def equal(self, array: tf.Tensor, number: int) -> tf.Tensor:
        return ready.equal(array, ready.constant(number, array.dtype))

    def above(self, array: tf.Tensor, number: int) -> tf.Tensor:
        return ready.less(ready.constant(number, array.dtype), array)

    def add(self, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return ready.add(a, b)

    def both(self, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return ready.both(a, b)

    def where(self, mask: tf.Tensor, new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
        trailing = max(new.shape.rank, old.shape.rank) - mask.shape.rank
        if trailing > 0:
            mask = ready.reshape(mask, (-1 if mask.shape[0] is None else mask.shape[0], *[1] * trailing))
        return ready.select(mask, new, old)

    def where_each(
        self, masks: Sequence[tf.Tensor], new: Sequence[tf.Tensor], old: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        return succession.in_succession(self.where, masks, new, old)

    # -- rows and elements ---------------------------------------------------------------------------------------------

    def take(self, array: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        return tf.gather(array, rows)

    def compact(self, mask: tf.Tensor, size: int) -> tf.Tensor:
        return scattering.compacted(mask, size)

    def load(self, array: tf.Tensor, indices: Sequence[tf.Tensor], lanes: tf.Tensor | None = None) -> tf.Tensor:
        lanes = self.lane_numbers(self.lanes_of(array)) if lanes is None else lanes
        sizes = [self.entries_of(array), *array.shape[2:]] if indices else []
        # Junk rows may point anywhere, at which the CPU kernel of a gather would raise.
        clipped = [tf.clip_by_value(index, 0, size - 1) for index, size in zip(indices, sizes, strict=False)]
        return gathering.gather_by_lane(array, lanes, clipped)

    def masked_store(
        self,
        array: tf.Tensor,
        indices: Sequence[tf.Tensor],
        mask: tf.Tensor,
        value: tf.Tensor,
        lanes: tf.Tensor | None = None,
    ) -> tf.Tensor:
        # Rows which take no part get a lane that does not exist.
        count = self.lanes_of(array)
        lanes = tf.where(mask, self.lane_numbers(count) if lanes is None else lanes, count)
        return scattering.written(array, [lanes, *indices], value)

    def with_row(self, array: tf.Tensor, place: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
        return writing.with_row(array, place, row)

    def with_rows(self, array: tf.Tensor, start: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        return writing.with_rows(array, start, rows)

    def rows_at(self, array: tf.Tensor, start: tf.Tensor, count: Any) -> tf.Tensor:
        return tf.slice(array, [start, *(0 for _ in array.shape[1:])], [count, *array.shape[1:]])

    def load_each(self, array: tf.Tensor, indices: Sequence[tf.Tensor], lanes: tf.Tensor | None = None) -> tf.Tensor:
        lanes = self.lane_numbers(self.lanes_of(array)) if lanes is None else lanes
        sizes = [self.entries_of(array), *array.shape[2:]]
        clipped = [tf.clip_by_value(index, 0, size - 1) for index, size in zip(indices, sizes, strict=False)]
        return tf.gather_nd(array, scattering.combined([lanes, *clipped]))

    def unspread(self, array: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
        new = array.shape.rank - 1 - len(shape)
        summed = tf.reduce_sum(array, axis=list(range(1, 1 + new)))
        axes = [at for at, size in enumerate(shape, 1) if size == 1 and summed.shape[at] != 1]
        return tf.reduce_sum(summed, axis=axes, keepdims=True)

    def live(self, array: tf.Tensor, mask: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
        return tf.reshape(tf.boolean_mask(array, mask), [-1, *shape])

    def rows_of_table(self, rows: tf.Tensor, numbers: tf.Tensor, table: TensorType) -> tf.IndexedSlices:
        # Each once: optimizers of Keras square what they are given for a row part by part, and not the sum.
        each, place = tf.unique(numbers)
        return tf.IndexedSlices(
            tf.math.unsorted_segment_sum(rows, place, tf.size(each)), each, tf.constant(table.shape, tf.int32)
        )

    def sum_rows(self, array: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(self.where(mask, array, tf.zeros([], array.dtype)), axis=0)

    def sums_of_rows(self, array: tf.Tensor, mask: tf.Tensor, lanes: tf.Tensor, count: Any) -> tf.Tensor:
        return tf.math.unsorted_segment_sum(self.where(mask, array, tf.zeros([], array.dtype)), lanes, count)

    # -- one lane alone ------------------------------------------------------------------------------------------------

    def constant_bool(self, value: bool) -> tf.Tensor:
        return ready.constant(value, tf.bool)

    def zeros_of(self, type_: TensorType) -> tf.Tensor:
        return ready.once(("zeros", type_), lambda: tf.zeros(type_.shape, type_.dtype))

    def choose(self, condition: tf.Tensor, new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
        return ready.select(condition, new, old)

    def element(self, array: tf.Tensor, indices: Sequence[tf.Tensor]) -> tf.Tensor:
        return native.element(array, indices)

    def with_element(self, array: tf.Tensor, indices: Sequence[tf.Tensor], value: tf.Tensor) -> tf.Tensor:
        return native.with_element(array, indices, value)

    def other_than(self, array: tf.Tensor) -> tf.Tensor:
        return tf.logical_not(array) if array.dtype == tf.bool else array + array

    def all_of_lane(self, mask: tf.Tensor) -> tf.Tensor:
        return tf.reduce_all(mask, axis=list(range(1, mask.shape.rank)))

    # -- over all lanes ------------------------------------------------------------------------------------------------

    def counted(self, mask: tf.Tensor) -> tf.Tensor:
        return tf.cumsum(tf.cast(mask, tf.int32))

    def ranks(self, numbers: tf.Tensor) -> tf.Tensor:
        return counting.ranks(numbers)

    def marked(self, size: Any, numbers: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        nobody = tf.zeros([size], tf.int32)  # XLA scatters numbers six times faster than bools
        return scattering.written(nobody, [tf.where(mask, numbers, size)], tf.ones_like(numbers)) > 0

    def any(self, mask: tf.Tensor) -> tf.Tensor:
        return tf.reduce_any(mask)

    def sum(self, array: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(array, tf.int32))

    def min(self, array: tf.Tensor) -> tf.Tensor:
        return tf.reduce_min(array)

    def max(self, array: tf.Tensor) -> tf.Tensor:
        return tf.reduce_max(array)

    def weighted(self, array: tf.Tensor, weights: Sequence[float]) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(array, tf.float32) * tf.constant(list(weights), tf.float32))

    def tally(self, numbers: tf.Tensor, labels: Sequence[int]) -> tf.Tensor:
        return counting.tally(numbers, labels)

    def stack(self, scalars: Sequence[tf.Tensor]) -> tf.Tensor:
        return stacking.stack(scalars)

    def beside(self, vectors: Sequence[tf.Tensor]) -> tf.Tensor:
        return tf.stack(vectors, axis=-1)

    def joined(self, *vectors: tf.Tensor) -> tf.Tensor:
        return tf.concat(vectors, axis=0)

    def unstack(self, vector: tf.Tensor, count: int) -> list[tf.Tensor]:
        return ready.unstack(vector, count)

    # -- control -------------------------------------------------------------------------------------------------------

    def cond(
        self, predicate: tf.Tensor, function: Callable[[], list[tf.Tensor]], otherwise: list[tf.Tensor]
    ) -> list[tf.Tensor]:
        if branches.apply():
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
        if not guards.would_copy(before, in_place):
            return self.cond(predicate, lambda: function(predicate, *before), list(before))
        return self.repeated(predicate, lambda go, arrays: (go & False, function(go, *arrays)), before)

    def repeated(
        self,
        predicate: tf.Tensor,
        function: Callable[[tf.Tensor, list[tf.Tensor]], tuple[tf.Tensor, list[tf.Tensor]]],
        before: Sequence[tf.Tensor],
    ) -> list[tf.Tensor]:
        _, after = self.while_loop(
            lambda carried: carried[0], lambda carried: function(*carried), (predicate, list(before))
        )
        return list(after)

    def in_turn(self, arrays: Sequence[tf.Tensor]) -> bool:
        return guards.in_turn(arrays)

    def while_loop(self, condition: Callable[[Any], tf.Tensor], body: Callable[[Any], Any], state: Any) -> Any:
        if branches.apply():
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

    def no_records(self, specs: Sequence[Spec]) -> list[tf.Tensor]:
        return [record_lists.empty(dtype) for dtype, _ in specs]

    def with_record(self, records: Sequence[tf.Tensor], arrays: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return [record_lists.pushed(*each) for each in zip(records, arrays, strict=True)]

    def without_last(
        self, records: Sequence[tf.Tensor], specs: Sequence[Spec]
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        found = [record_lists.popped(record, *spec) for record, spec in zip(records, specs, strict=True)]
        return [record for record, _ in found], [array for _, array in found]

    def joined_records(self, records: Sequence[tf.Tensor], specs: Sequence[Spec]) -> list[tf.Tensor]:
        return [record_lists.joined(record, *spec) for record, spec in zip(records, specs, strict=True)]

    def has_native(self) -> bool:
        return native.are_made()

    def natively(
        self, function: Callable[..., list[tf.Tensor]], arrays: Sequence[tf.Tensor], changed: int = 0
    ) -> list[tf.Tensor]:
        return native.call(function, arrays, changed)

    # -- compiling -----------------------------------------------------------------------------------------------------

    def scope(self, name: str) -> AbstractContextManager[Any]:
        return tf.name_scope(name)

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
            fixed.experimental_get_compiler_ir(*signature)(stage="hlo")

    def forbid_gradients(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        return gradients.seal(function, name)

    def unseen(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        return gradients.unseen(compiled)

    def is_watched(self, arrays: Sequence[tf.Tensor]) -> bool:
        return private.is_watched(arrays)

    def may_be_differentiated(self, arrays: Sequence[tf.Tensor]) -> bool:
        return not tf.executing_eagerly() or private.is_watched(arrays)

    def differentiable(
        self,
        function: Callable[[list[tf.Tensor]], tuple[Sequence[tf.Tensor], PullBack]],
        arrays: Sequence[tf.Tensor],
        name: str,
    ) -> list[tf.Tensor]:
        return gradients.differentiable(function, arrays, name)

    def runs_now(self) -> bool:
        return tf.executing_eagerly()

    def is_vectorized(self) -> bool:
        return not tf.executing_eagerly() and private.in_vectorized_map(tf.get_current_name_scope())

    def runs_unseen(self) -> bool:
        return tf.executing_eagerly() and not private.may_record()

    def is_concrete(self, array: Any) -> bool:
        return not tf.is_symbolic_tensor(array)

    def inside_fixed_program(self) -> bool:
        return graphs.in_outer_xla()

    def checked_values(self, program: Program, ended: Ended, texts: Sequence[Sequence[str]]) -> tuple[Any, ...]:
        return graphs.assert_ok(program, ended, texts)

    def explain(self, error: Exception) -> Explanation | None:
        return refusals.explain(error)
