"""A piece and its derivative: see `pieces.Linear`.

The derivative is taken of the trace for **one example**, by TensorFlow, with placeholders for the gradients that come;
then both halves are vectorised. (What is vectorised first has lost its `tf.custom_gradient`s: a wrong number, and
nobody told.)
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

import tensorflow as tf

from pcbatch.errors import CompileError, Diagnostic, GradientError
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.pieces import Apart, Backward, Element, Leaves, Note, Origin, Signature, Wanted
from pcbatch.runtime.backends.tensorflow import blame, elements, marked, pieces, ready, rules, traces
from pcbatch.runtime.backends.tensorflow.anatomy import Anatomy, Meeting, makes_functions
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted

_NO_GRADIENT = (
    "compute it in another way, give it a gradient with tf.custom_gradient, or keep gradients from it with "
    "tf.stop_gradient(..)"
)


class Linearized:
    """See `pieces.Linear`. Traced once; each half may be vectorised any number of times."""

    def __init__(self, piece: Piece, signature: Signature, wanted: Wanted):
        self.piece, self.signature = piece, signature
        self.traced = traces.anew(piece, signature.reads, signature.shared)
        self.outputs = self.traced.leaves(signature.writes)
        self.site = [self.traced.site] if piece.sites else []
        graph = self.traced.graph
        self.anatomy = Anatomy(self.traced, self.outputs, _chosen(signature.shared, wanted.shared))
        self.reruns = makes_functions(self.anatomy.operations)
        wanted_outputs = [self.outputs[place] for place in _chosen(signature.writes, wanted.writes)]
        with graph.as_default(), marked.tracing_lane():
            self.seeds = [ready.placeholder(each.dtype, tuple(each.shape)) for each in wanted_outputs]
            try:
                self._differentiate(wanted_outputs, _chosen(signature.reads, wanted.reads))
            except GradientError:
                raise
            except Exception as error:
                raise self._without_gradient(error) from None
        of_lanes = [each.operation.inputs[n] for each, _ in self.meetings for n in each.of_lane]
        targets = [*self.read_gradients.values(), *(delta for _, delta in self.meetings), *self.parts, *of_lanes]
        targets += [tensor for each, gradient in self.taken for tensor in (*each.indices, gradient)]
        self.kept = self.anatomy.cut(targets, self.seeds, reads_only=self.reruns)
        self.residuals: Sequence[TensorType] = [_type_of(tensor) for tensor in self.kept]
        self.deltas: Sequence[TensorType] = [_type_of(delta) for _, delta in self.meetings]
        self.summed: Sequence[TensorType] = [_type_of(part) for part in self.parts]
        self.seeds_of: Sequence[TensorType] = [_type_of(seed) for seed in self.seeds]
        self.elements: Sequence[Element] = [Element(each.place, len(each.indices)) for each, _ in self.taken]
        self.is_late = not self.read_gradients and not self.taken

    @cached_property
    def origins(self) -> Sequence[Origin]:
        """See `pieces.Linear`."""
        reads = [place for place, type_ in enumerate(self.signature.reads) for _ in leaf_types(type_)]
        places = {id(tensor): place for tensor, place in zip(self.traced.reads, reads, strict=True)}
        return [Origin(places.get(id(each)), each.op.type, blame.span_of(self.piece, each.op)) for each in self.kept]

    # -- the derivative of one example ---------------------------------------------------------------------------------

    def _differentiate(self, outputs: Sequence[tf.Tensor], reads: Sequence[int]) -> None:
        """Add to the trace's graph what the way back needs.

        `read_gradients` by place of a leaf; `taken`, elements of arrays, each with its gradient; `meetings` that are
        pulled back for many rows, each with its delta;
        `parts`, the gradients of a row by the tensors `shared_tensors`, which are to be summed.
        """
        anatomy = self.anatomy
        pairs = [*zip(outputs, self.seeds, strict=True)]
        every = [*anatomy.meetings()]
        met = [output for each in every for output in each.operation.outputs if output.dtype.is_floating]
        taken = [] if self.reruns else [*elements.taken(anatomy, self.signature, self.traced, self.outputs, reads)]
        reads = [place for place in reads if place not in {each.leaf for each in taken}]
        sources = [*(self.traced.reads[place] for place in reads), *(each.tensor for each in taken), *met]
        found = _gradients([pair for pair in pairs if id(pair[0]) in anatomy.of_lane], sources)
        by_read = zip(reads, found, strict=False)
        self.read_gradients = {place: each for place, each in by_read if each is not None}
        found = found[len(reads) :]
        pairs_of_taken = zip(taken, found, strict=False)
        self.taken = [(each, gradient) for each, gradient in pairs_of_taken if gradient is not None]
        deltas = {id(output): each for output, each in zip(met, found[len(taken) :], strict=True)}
        self.meetings: list[tuple[Meeting, tf.Tensor]] = []
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
                self.meetings.append((each, coming[0][1]))
                continue
            shared = [each.operation.inputs[place] for place in each.inputs]
            for tensor, part in zip(shared, _gradients(coming, shared, stop=each.operation.inputs), strict=True):
                add(tensor, part)
        self.shared_tensors = [tensor for tensor, _ in parts.values()]
        self.parts = [tf.add_n(each) if len(each) > 1 else each[0] for _, each in parts.values()]
        self._differentiate_shared()

    def _differentiate_shared(self) -> None:
        """From gradients by tensors that are made of shared operands alone to those by the operands."""
        tensors = [*self.shared_tensors, *(each.operation.inputs[each.inputs[0]] for each, _ in self.meetings)]
        self.ends = [*{id(tensor): tensor for tensor in tensors}.values()]
        roots = {id(root): place for root, place in self.anatomy.roots}
        origins = {id(tensor): id(_origin(tensor)) for tensor in self.ends}
        self.own = {tensor: roots[origin] for tensor, origin in origins.items() if origin in roots}
        made = [tensor for tensor in self.ends if id(tensor) not in self.own]
        self.end_seeds = {id(t): ready.placeholder(t.dtype, tuple(t.shape)) for t in made}
        found = _gradients([(t, self.end_seeds[id(t)]) for t in made], [root for root, _ in self.anatomy.roots])
        self.root_gradients = [
            (place, each) for (_, place), each in zip(self.anatomy.roots, found, strict=True) if each is not None
        ]
        tables = [meeting.operation.inputs[meeting.inputs[0]] for meeting, _ in self.meetings]
        self.lookups: Mapping[int, int] = {
            number: self.own[id(table)]
            for number, (table, (meeting, _)) in enumerate(zip(tables, self.meetings, strict=True))
            if meeting.is_lookup and id(table) in self.own
        }
        others = [table for number, table in enumerate(tables) if number not in self.lookups]
        ends = {self.own[id(tensor)] for tensor in (*self.shared_tensors, *others) if id(tensor) in self.own}
        self.dense = frozenset(ends | {place for place, _ in self.root_gradients})

    def _without_gradient(self, error: Exception) -> GradientError:
        """PCB602, at the line of the operation that TensorFlow names, if it names one."""
        named = re.search(r"operation ?'([^']+)'|for node ([^\s;]+)", str(error))
        operation = None
        if named:
            with contextlib.suppress(KeyError, ValueError):
                operation = self.traced.graph.get_operation_by_name(named[1] or named[2])
        kind = "an operation" if operation is None else f"TensorFlow's {operation.type}"
        why = "" if isinstance(error, LookupError) else f": {blame.reason(error)}"
        span = blame.span_of(self.piece, operation)
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
        deltas = [delta for _, delta in self.meetings]
        of_elements = [tensor for each, gradient in self.taken for tensor in (*each.indices, gradient)]
        outputs = [*self.read_gradients.values(), *of_elements, *deltas, *self.parts]
        # No row is run that has failed in a check of the piece's own.
        traced = replace(self.traced, failures=())
        try:
            rows = pieces.converted(self.piece, traced, outputs, given, [*chain(*shared)], lanes)
        except CompileError as error:
            text = "\n\n".join(
                replace(each, code="PCB603", message=f"in the gradient, {each.message}", help=_NO_GRADIENT).render()
                for each in error.diagnostics
            )
            raise GradientError(text) from None
        _shape(rows, outputs, lanes)
        by_place = dict(zip(self.read_gradients, rows, strict=False))
        places = iter(range(len(self.traced.reads)))
        by_read = [[by_place.get(next(places)) for _ in leaf_types(type_)] for type_ in self.signature.reads]
        rest = iter(rows[len(by_place) :])
        taken = [([next(rest) for _ in each.indices], next(rest)) for each, _ in self.taken]
        return Backward(by_read, [next(rest) for _ in deltas], [*rest], taken)

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
        operands = [*chain(*shared)]
        by_tensor: dict[int, list[tf.Tensor]] = {}
        for tensor, total in zip(self.shared_tensors, sums, strict=True):
            by_tensor.setdefault(id(tensor), []).append(total)
        numbered = enumerate(self.meetings)
        together = [(meeting, deltas[number]) for number, (meeting, _) in numbered if number not in left_out]
        if together:
            conversion = self._rows([meeting for meeting, _ in together], residuals, operands, mask)
            for meeting, delta in together:
                tensor = meeting.operation.inputs[meeting.inputs[0]]
                found = _pulled(conversion, meeting, _where(mask, delta), mask, self._shape_of(tensor), apart)
                by_tensor.setdefault(id(tensor), []).append(found)
        totals = {key: tf.add_n(each) if len(each) > 1 else each[0] for key, each in by_tensor.items()}
        return self._by_operand(totals, operands, apart)

    def _shape_of(self, tensor: tf.Tensor) -> tf.TensorShape:
        """The shape of a shared tensor; of the handle of a variable that of its value."""
        place = self.own.get(id(tensor))
        return tensor.shape if place is None else self.traced.shared[place].shape

    def looked_up(
        self, number: int, residuals: Sequence[tf.Tensor], shared: Sequence[Leaves], mask: tf.Tensor
    ) -> tf.Tensor:
        """See `pieces.Linear.looked_up`."""
        meeting, _ = self.meetings[number]
        rows = self._rows([meeting], residuals, [*chain(*shared)], mask)
        return _of_rows(rows, meeting.operation.inputs[1])

    def _rows(
        self, meetings: Sequence[Meeting], residuals: Sequence[tf.Tensor], operands: Sequence[Any], mask: tf.Tensor
    ) -> rules.Conversion:
        """The conversion for many rows, in which the inputs of meetings are found."""
        wanted = [meeting.operation.inputs[n] for meeting in meetings for n in meeting.of_lane]
        lanes = mask.shape[0] if mask.shape[0] is not None else tf.shape(mask)[0]
        conversion = rules.Conversion(self.traced.graph, lanes, wanted, rules.Lane())
        conversion.run(
            [*zip(self.kept, residuals, strict=True)],
            [*zip(self.traced.shared, operands, strict=True)],
            self._handles(operands),
        )
        return conversion

    def _handles(self, operands: Sequence[Any]) -> rules.Pairs:
        values = {id(leaf): value for leaf, value in zip(self.traced.shared, operands, strict=True)}
        return [(handle, values[id(leaf)]) for handle, leaf in self.traced.handles]

    def _by_operand(
        self, totals: dict[int, tf.Tensor], operands: Sequence[Any], apart: Apart | None
    ) -> list[list[tf.Tensor | None]]:
        found: dict[int, list[tf.Tensor]] = {}
        for tensor in self.ends:
            if id(tensor) in self.own and id(tensor) in totals:
                found.setdefault(self.own[id(tensor)], []).append(totals[id(tensor)])
        if self.root_gradients:
            graph, same = self.traced.graph, [*zip(self.traced.shared, operands, strict=True)]
            seeds = [(seed, totals[key]) for key, seed in self.end_seeds.items()]
            outputs = [each for _, each in self.root_gradients]
            if apart is None:
                values = rules.taken_over(graph, outputs, [*same, *seeds], self._handles(operands), ())
            else:
                handles = self._handles(operands)
                values = rules.vectorized(graph, outputs, seeds, same, handles, apart.lanes, rules.Lane())
            for (place, _), value in zip(self.root_gradients, values, strict=True):
                found.setdefault(place, []).append(value)
        totalled = {place: tf.add_n(each) if len(each) > 1 else each[0] for place, each in found.items()}
        places = iter(range(len(self.traced.shared)))
        return [[totalled.get(next(places)) for _ in leaf_types(type_)] for type_ in self.signature.shared]


def _chosen(types: Sequence[Type], wanted: Sequence[bool]) -> list[int]:
    """The places, among all leaves, of those of floats whose value is wanted."""
    flags = [(each, leaf) for type_, each in zip(types, wanted, strict=True) for leaf in leaf_types(type_)]
    return [n for n, (each, leaf) in enumerate(flags) if each and tf.as_dtype(leaf.dtype).is_floating]


def _gradients(
    pairs: Sequence[tuple[tf.Tensor, tf.Tensor]], sources: Sequence[tf.Tensor], stop: Sequence[tf.Tensor] = ()
) -> list[tf.Tensor | None]:
    """The gradients by `sources`, of tensors each paired with its own; None where none flows. `stop` are constants."""
    if not pairs or not sources:
        return [None] * len(sources)
    found = tf.gradients(
        [tensor for tensor, _ in pairs],
        list(sources),
        grad_ys=[seed for _, seed in pairs],
        stop_gradients=list(stop) or None,
    )
    return [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices) else each for each in found]


def _pulled(
    rows: rules.Conversion,
    meeting: Meeting,
    delta: tf.Tensor,
    mask: tf.Tensor,
    shape: tf.TensorShape,
    apart: Apart | None,
) -> tf.Tensor:
    """The gradient by the shared input of a meeting, of all rows: one product, or one sum by what was looked up.

    Of each lane `apart` it is a product for each row, and sums of these.
    """
    operation, count = meeting.operation, rows.lanes
    of_lane: dict[int, tf.Tensor] = {}
    for place in meeting.of_lane:
        of_lane[place] = _where(mask, _of_rows(rows, operation.inputs[place]))
    if meeting.is_lookup:
        flat, numbers = tf.reshape(delta, [-1, *shape[1:]]), tf.cast(of_lane[1], tf.int32)
        if apart is None:
            return tf.math.unsorted_segment_sum(flat, tf.reshape(numbers, [-1]), tf.constant(shape[0], tf.int32))
        numbers += tf.reshape(apart.lane, [count, *[1] * (numbers.shape.rank - 1)]) * shape[0]
        found = tf.math.unsorted_segment_sum(flat, tf.reshape(numbers, [-1]), apart.lanes * shape[0])
        return tf.reshape(found, [apart.lanes, *shape])
    by = rows.value(operation.inputs[meeting.inputs[0]]).t
    if apart is not None:
        by = tf.broadcast_to(by, [count, *by.shape])
    output = operation.outputs[0]
    alone = rules.Conversion(operation.graph, count, [output], rules.Lane())
    for place, tensor in enumerate(operation.inputs):
        alone.give(tensor, Converted(of_lane.get(place, by), place in of_lane or apart is not None))
    (product,) = alone.run([], [], [])
    (found,) = tf.gradients([product.t], [by], grad_ys=[delta])
    return found if apart is None else tf.math.unsorted_segment_sum(found, apart.lane, apart.lanes)


def _origin(tensor: tf.Tensor) -> tf.Tensor:
    """What a tensor is read from as it is."""
    while tensor.op.type in ("Identity", "ReadVariableOp"):
        tensor = tensor.op.inputs[0]
    return tensor


def _of_rows(rows: rules.Conversion, tensor: tf.Tensor) -> tf.Tensor:
    """What stands for a tensor, `[rows, ...]`."""
    known = rows.value(tensor)
    return known.t if known.is_stacked else tf.broadcast_to(known.t, [rows.lanes, *known.t.shape])


def _where(mask: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """`rows` where `mask` holds, else zeros: times an infinite number, zero would be none."""
    count = mask.shape[0] if mask.shape[0] is not None else tf.shape(mask)[0]
    return tf.where(tf.reshape(mask, [count, *[1] * (rows.shape.rank - 1)]), rows, tf.zeros([], rows.dtype))


def _type_of(tensor: tf.Tensor) -> TensorType:
    return TensorType(tensor.dtype.name, tuple(tensor.shape))


def _shape(rows: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor], lanes: Any) -> None:
    known = lanes if isinstance(lanes, int) else None
    for row, output in zip(rows, outputs, strict=True):
        row.set_shape([known, *output.shape])
