"""A piece and its derivative: see `pieces.Linear`.

The derivative is taken of the trace for **one example**, by TensorFlow, with placeholders for the gradients that come;
then both halves are vectorised. (What is vectorised first has lost its `tf.custom_gradient`s: a wrong number, and
nobody told.)
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import tensorflow as tf

from pcbatch.errors import CompileError, Diagnostic, GradientError, PcbatchError, PieceRefusalError, in_gradient
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.pieces import Apart, Backward, Element, Leaves, Note, Origin, Signature, Wanted
from pcbatch.runtime.backends.tensorflow import (
    custom_vectorised_ops,
    error_locations,
    error_messages,
    pieces,
    private,
    raw_ops,
    trace_cache,
    traces,
)
from pcbatch.runtime.backends.tensorflow.function_inlining import CHOICES, Expansion
from pcbatch.runtime.backends.tensorflow.lists import is_list
from pcbatch.runtime.backends.tensorflow.shared_operand_gradients import Connected, Contributions, gradients_of
from pcbatch.runtime.backends.tensorflow.traces import Anatomy, SharedUse, Trace, makes_functions

# -- elements ----------------------------------------------------------------------------------------------------------
# Arrays of which a piece reads elements alone, `x = a[i]`: gradients come to these elements, and no array is made.
#
# The gradient of a lookup is an array of zeros but for the element. Where nothing but lookups of one element reads an
# array of a lane, the derivative stops at what is looked up; who undoes the piece adds it at the element's place.


@dataclass(frozen=True)
class ElementRead:
    """An element `tensor`, at scalar `indices` of the array that is read at `place`, its only `leaf`."""

    place: int
    leaf: int
    indices: tuple[tf.Tensor, ...]
    tensor: tf.Tensor


def read_elements(
    anatomy: Anatomy, signature: Signature, traced: Trace, outputs: Sequence[tf.Tensor], reads: Sequence[int]
) -> Iterator[ElementRead]:
    """All elements that are taken of arrays, of the leaves `reads`, of which nothing else is read."""
    first = 0
    for place, type_ in enumerate(signature.reads):
        count = len([*leaf_types(type_)])
        if count == 1 and first in reads:
            array = traced.reads[first]
            found = [] if any(array is output for output in outputs) else _taken(anatomy, array)
            yield from (ElementRead(place, first, *each) for each in found or ())
        first += count


def _taken(anatomy: Anatomy, array: tf.Tensor) -> list[tuple[tuple[tf.Tensor, ...], tf.Tensor]] | None:
    """The elements that are taken of an array, each with its indices; None where something else is done with it."""
    found: list[tuple[tuple[tf.Tensor, ...], tf.Tensor]] = []
    for operation in anatomy.operations:
        if not any(tensor is array for tensor in operation.inputs):
            continue
        if _is_lookup(operation, array):
            found.append((_indices(array, 1, operation.inputs[1]), operation.outputs[0]))
            continue
        depth = _merged(operation, array)
        if depth is None:
            return None
        merged = operation.outputs[0]
        for other in anatomy.operations:
            if any(tensor is merged for tensor in other.inputs):
                if not _is_lookup(other, merged):
                    return None
                found.append((_indices(array, depth, other.inputs[1]), other.outputs[0]))
    return found


def _is_lookup(operation: Any, array: tf.Tensor) -> bool:
    """Return whether an operation takes one element of the array along its first axis."""
    if operation.type != "GatherV2" or operation.inputs[0] is not array or operation.get_attr("batch_dims") != 0:
        return False
    return bool(operation.inputs[1].shape.rank == 0 and tf.get_static_value(operation.inputs[2]) == 0)


def _merged(operation: Any, array: tf.Tensor) -> int | None:
    """Return the number of leading axes that an operation merges into one; None if it does something else."""
    if operation.type != "Reshape" or operation.inputs[0] is not array:
        return None
    shape = operation.outputs[0].shape
    for depth in range(2, array.shape.rank + 1):
        if shape.as_list() == [math.prod(array.shape[:depth]), *array.shape[depth:]]:
            return depth
    return None


def _indices(array: tf.Tensor, depth: int, index: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The indices for the first axes of an array, of that for all of them as one axis."""
    index = tf.cast(index, tf.int32)
    found: list[tf.Tensor] = []
    for size in reversed(array.shape[1:depth].as_list()):
        found.append(index % size)
        index = index // size
    return (index, *reversed(found))


# -- linearize ---------------------------------------------------------------------------------------------------------

_NO_GRADIENT = (
    "compute it in another way, give it a gradient with tf.custom_gradient, or keep gradients from it with "
    "tf.stop_gradient(..)"
)
_CHOICES = (
    "write Python's `if` in the batched function, whose arms may have gradients of their own (tf.custom_gradient) and "
    "loops of any length"
)


class Linearized:
    """See `pieces.Linear`. Traced once; each half may be vectorised any number of times."""

    def __init__(self, piece: Piece, signature: Signature, wanted: Wanted):
        self.piece, self.signature = piece, signature
        self.traced = traces.anew(piece, signature.reads, signature.shared)
        self.outputs = self.traced.leaves(signature.writes)
        self.site = [self.traced.site] if piece.sites else []
        graph = self.traced.graph
        with graph.as_default(), custom_vectorised_ops.tracing_lane():
            self.expansion = Expansion(graph, self.traced.reads, [*self.outputs, *self.site])
        self.outputs, self.site = ([*map(self.expansion.of, each)] for each in (self.outputs, self.site))
        self.anatomy = Anatomy(self.traced, self.outputs, _chosen(signature.shared, wanted.shared))
        self._refuse_choices()
        self.reruns = makes_functions(self.anatomy.operations)
        wanted_outputs = [self.outputs[place] for place in _chosen(signature.writes, wanted.writes)]
        with graph.as_default(), custom_vectorised_ops.tracing_lane():  # a gradient may be of the user's own
            self.seeds = [raw_ops.placeholder(each.dtype, tuple(each.shape)) for each in wanted_outputs]
            try:
                self._differentiate(wanted_outputs, _chosen(signature.reads, wanted.reads))
            except GradientError:
                raise
            except PieceRefusalError as error:
                span = error_locations.span_of(self.piece, None)
                raise GradientError(Diagnostic(error.code, error.message, span, help=error.help).render()) from None
            except Exception as error:
                raise self._without_gradient(error) from None
        of_lanes = [tensor for each in self.contributions.meetings for tensor in self.contributions.needed(each)]
        targets = [*self.read_gradients.values(), *self._deltas, *self.parts, *of_lanes]
        targets += [tensor for each, gradient in self.taken for tensor in (*each.indices, gradient)]
        self.kept = self.anatomy.cut(targets, self.seeds, reads_only=self.reruns)
        self.residuals: Sequence[TensorType] = [_type_of(tensor) for tensor in self.kept]
        self.deltas: Sequence[TensorType] = [_type_of(delta) for delta in self._deltas]
        self.summed: Sequence[TensorType] = [_type_of(part) for part in self.parts]
        self.seeds_of: Sequence[TensorType] = [_type_of(seed) for seed in self.seeds]
        self.reads_of: Sequence[int] = [*self.read_gradients]
        self.elements: Sequence[Element] = [Element(each.place, len(each.indices)) for each, _ in self.taken]
        self.is_late = not self.read_gradients and not self.taken
        self.lookups, self.dense = self.contributions.lookups, self.contributions.dense

    def _refuse_choices(self) -> None:
        """PCB603 for a conditional that could not be expanded: TensorFlow's gradient of one is another conditional."""
        for operation in self.anatomy.operations:
            if operation.type in CHOICES and any(id(each) in self.anatomy.of_lane for each in operation.inputs):
                message = "in the gradient, a conditional cannot be batched that has such an arm"
                span = error_locations.span_of(self.piece, operation)
                raise GradientError(Diagnostic("PCB603", message, span, help=_CHOICES).render())

    @cached_property
    def origins(self) -> Sequence[Origin]:
        """See `pieces.Linear`."""
        reads = [place for place, type_ in enumerate(self.signature.reads) for _ in leaf_types(type_)]
        places = {id(tensor): place for tensor, place in zip(self.traced.reads, reads, strict=True)}
        return [
            Origin(places.get(id(each)), each.op.type, error_locations.span_of(self.piece, each.op))
            for each in self.kept
        ]

    def described(self) -> str | None:
        """See `pieces.Linear.described`."""
        return trace_cache.digest_of(
            self.traced, [*self.outputs, *self.site, *self.kept, *self.seeds, *self._backward_outputs()]
        )

    def _backward_outputs(self) -> list[tf.Tensor]:
        of_elements = [tensor for each, gradient in self.taken for tensor in (*each.indices, gradient)]
        return [*self.read_gradients.values(), *of_elements, *self._deltas, *self.parts]

    # -- the derivative of one example ---------------------------------------------------------------------------------

    def _differentiate(self, outputs: Sequence[tf.Tensor], reads: Sequence[int]) -> None:
        """Add the tensors of the backward pass to the trace's graph.

        `read_gradients` by place of a leaf; `taken`, elements of arrays, each with its gradient; `contributions` of
        meetings that are pulled back for many rows, each with a delta; `parts`, the gradients of a row by other tensors
        that are shared, which are to be summed.
        """
        anatomy = self.anatomy
        pairs = [*zip(outputs, self.seeds, strict=True)]
        every = [*anatomy.meetings()]
        outputs_met = [output for each in every for output in each.operation.outputs]
        met = [each for each in outputs_met if each.dtype.is_floating or is_list(each)]
        taken = [] if self.reruns else [*read_elements(anatomy, self.signature, self.traced, self.outputs, reads)]
        reads = [place for place in reads if place not in {each.leaf for each in taken}]
        connected = self._connected(pairs, {id(self.traced.reads[each.leaf]) for each in taken})
        sources = [*(self.traced.reads[place] for place in reads), *(each.tensor for each in taken), *met]
        found = gradients_of([pair for pair in pairs if id(pair[0]) in anatomy.of_lane], sources)
        by_source = zip(sources, found, strict=False)
        found = [None if each is None else connected.kept_to(source, each) for source, each in by_source]
        by_read = zip(reads, found, strict=False)
        self.read_gradients = {place: each for place, each in by_read if each is not None}
        found = found[len(reads) :]
        pairs_of_taken = zip(taken, found, strict=False)
        self.taken = [(each, gradient) for each, gradient in pairs_of_taken if gradient is not None]
        deltas = {id(output): each for output, each in zip(met, found[len(taken) :], strict=True)}
        meetings: list[tuple[SharedUse, tf.Tensor]] = []
        parts: dict[int, tuple[tf.Tensor, list[tf.Tensor]]] = {}

        def add(tensor: tf.Tensor, part: tf.Tensor | None) -> None:
            if part is not None:
                parts.setdefault(id(tensor), (tensor, []))[1].append(part)

        for output, seed in pairs:
            if anatomy.is_shared(output):  # a lane gets what all share as it is
                add(output, seed)
        for each in every:
            given = [(output, deltas.get(id(output))) for output in each.operation.outputs]
            coming = [(output, delta) for output, delta in given if delta is not None]
            if not coming:
                continue
            if (each.is_product or each.is_lookup) and not self.reruns:
                meetings.append((each, coming[0][1]))
                continue
            shared = [each.operation.inputs[place] for place in each.inputs]
            predicate = self.expansion.predicates.get(each.operation.name)
            for tensor, part in zip(shared, gradients_of(coming, shared, stop=each.operation.inputs), strict=True):
                if part is not None and predicate is not None:
                    part = tf.where(predicate, part, tf.zeros([], part.dtype))
                add(tensor, None if part is None else connected.kept_through(each.operation, part))
        self.parts = [tf.add_n(each) if len(each) > 1 else each[0] for _, each in parts.values()]
        self._deltas = [delta for _, delta in meetings]
        of_shared, summed = [meeting for meeting, _ in meetings], [tensor for tensor, _ in parts.values()]
        self.contributions = Contributions(self.traced, anatomy.roots, self.expansion, of_shared, summed)

    def _connected(self, pairs: Sequence[tuple[tf.Tensor, tf.Tensor]], arrays: Collection[int]) -> Connected:
        """Return the reach of the gradients of `pairs`, gates set; `arrays` are those read by elements."""
        anatomy = self.anatomy
        connected = Connected(anatomy.operations, pairs, anatomy.of_lane, anatomy.of_wanted)
        if private.rewires():
            connected.set_gates(arrays)
        return connected

    def _without_gradient(self, error: Exception) -> GradientError:
        """PCB602, at the line of the operation that TensorFlow names, if it names one."""
        named = re.search(r"operation ?'([^']+)'|for node ([^\s;]+)", str(error))
        operation = None
        if named:
            with contextlib.suppress(KeyError, ValueError):
                operation = self.traced.graph.get_operation_by_name(named[1] or named[2])
        kind = "an operation" if operation is None else f"TensorFlow's {operation.type}"
        why = "" if isinstance(error, LookupError) else f": {error_messages.reason(error)}"
        span = error_locations.span_of(self.piece, operation)
        message = f"{kind} has no gradient{why}"
        return GradientError(Diagnostic("PCB602", message, span, help=_NO_GRADIENT).render())

    # -- for all rows --------------------------------------------------------------------------------------------------

    def forward(
        self,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        lanes: Any,
        taking_part: tf.Tensor | None = None,
        note: Note | None = None,
    ) -> tuple[list[list[tf.Tensor]], tf.Tensor | None, list[tf.Tensor]]:
        """See `pieces.Linear.forward`."""
        flat = [*chain(*reads)]
        if self.reruns:  # loops and conditionals have got other functions, which keep what the way back needs
            values = {id(tensor): value for tensor, value in zip(self.traced.reads, flat, strict=True)}
            kept = [values[id(tensor)] for tensor in self.kept]
            if lanes is None:
                return *pieces.run_one(self.piece, self.signature, reads, shared), kept
            return *pieces.vectorize(self.piece, self.signature, reads, shared, lanes, taking_part, note), kept
        stacked = [*zip(self.traced.reads, flat, strict=True)]
        outputs = [*self.outputs, *self.site, *self.kept]
        rows = pieces.converted(self.piece, self.traced, outputs, stacked, [*chain(*shared)], lanes, taking_part, note)
        _shape(rows, outputs, lanes)
        remaining = iter(rows)
        found = [[next(remaining) for _ in leaf_types(type_)] for type_ in self.signature.writes]
        site = next(remaining) if self.site else None
        return found, site, [*remaining]

    def backward(
        self, residuals: Sequence[tf.Tensor], shared: Sequence[Leaves], seeds: Sequence[Leaves], lanes: Any
    ) -> Backward:
        """See `pieces.Linear.backward`."""
        given = [*zip(self.kept, residuals, strict=True), *zip(self.seeds, chain(*seeds), strict=True)]
        outputs = self._backward_outputs()
        # No row is run that has failed in a check of the piece's own.
        traced = replace(self.traced, failures=())
        try:
            rows = pieces.converted(self.piece, traced, outputs, given, [*chain(*shared)], lanes)
        except CompileError as error:
            raise in_gradient(error, _NO_GRADIENT) from None
        except PcbatchError:
            raise
        except Exception as error:
            span = error_locations.span_of(self.piece, None)
            message = f"in the gradient, what runs here cannot be batched: {error_messages.reason(error)}"
            raise GradientError(Diagnostic("PCB603", message, span, help=_NO_GRADIENT).render()) from error
        _shape(rows, outputs, lanes)
        by_place = dict(zip(self.read_gradients, rows, strict=False))
        places = iter(range(len(self.traced.reads)))
        by_read = [[by_place.get(next(places)) for _ in leaf_types(type_)] for type_ in self.signature.reads]
        rest = iter(rows[len(by_place) :])
        taken = [([next(rest) for _ in each.indices], next(rest)) for each, _ in self.taken]
        return Backward(by_read, [next(rest) for _ in self._deltas], [*rest], taken)

    def pull_back(
        self,
        residuals: Sequence[tf.Tensor],
        deltas: Sequence[tf.Tensor],
        sums: Sequence[tf.Tensor],
        shared: Sequence[Leaves],
        mask: tf.Tensor,
        left_out: Collection[int] = (),
        apart: Apart | None = None,
    ) -> list[list[tf.Tensor | None]]:
        """See `pieces.Linear.pull_back`."""
        kept = [*zip(self.kept, residuals, strict=False)]
        found = iter(self.contributions.pull_back(kept, deltas, sums, [*chain(*shared)], mask, left_out, apart))
        return [[next(found) for _ in leaf_types(type_)] for type_ in self.signature.shared]

    def looked_up(
        self, number: int, residuals: Sequence[tf.Tensor], shared: Sequence[Leaves], mask: tf.Tensor
    ) -> tf.Tensor:
        """See `pieces.Linear.looked_up`."""
        kept = [*zip(self.kept, residuals, strict=True)]
        return self.contributions.looked_up(number, kept, [*chain(*shared)], mask)


def _chosen(types: Sequence[Type], wanted: Sequence[bool]) -> list[int]:
    """The places, among all leaves, of those of floats whose value is wanted."""
    flags = [(each, leaf) for type_, each in zip(types, wanted, strict=True) for leaf in leaf_types(type_)]
    return [n for n, (each, leaf) in enumerate(flags) if each and tf.as_dtype(leaf.dtype).is_floating]


def _type_of(tensor: tf.Tensor) -> TensorType:
    return TensorType(tensor.dtype.name, tuple(tensor.shape))


def _shape(rows: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor], lanes: Any) -> None:
    if lanes is None:
        return
    known = lanes if isinstance(lanes, int) else None
    for row, output in zip(rows, outputs, strict=True):
        row.set_shape([known, *output.shape])
