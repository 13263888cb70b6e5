"""Contributions to gradients where a shared value meets a lane's: those of each row, and their sum.

See `pieces.Linear`. A gradient by a tensor that is made of shared operands alone becomes one by the operands at last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.pieces import Apart
from pcbatch.runtime.backends.tensorflow import private, raw_ops, rules
from pcbatch.runtime.backends.tensorflow.function_inlining import Expansion
from pcbatch.runtime.backends.tensorflow.lists import is_list
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted
from pcbatch.runtime.backends.tensorflow.selection import is_choice
from pcbatch.runtime.backends.tensorflow.traces import SharedUse, Trace

# -- shared operand gradients ------------------------------------------------------------------------------------------


class Contributions:
    """The contributions of a trace's meetings to gradients by shared operands; added to the trace's graph."""

    def __init__(
        self,
        traced: Trace,
        roots: Sequence[tuple[tf.Tensor, int]],
        expansion: Expansion,
        meetings: Sequence[SharedUse],
        summed: Sequence[tf.Tensor],
    ):
        """`roots` are the placeholders and handles of operands, with their places; `summed` get sums over all rows."""
        self.traced, self.expansion, self.meetings, self.summed = traced, expansion, meetings, summed
        tables = [each.operation.inputs[each.inputs[0]] for each in meetings]
        self.ends = [*{id(tensor): tensor for tensor in (*summed, *tables)}.values()]
        places = {id(root): place for root, place in roots}
        origins = {id(tensor): id(_origin(tensor)) for tensor in self.ends}
        self.own = {tensor: places[origin] for tensor, origin in origins.items() if origin in places}
        made = [tensor for tensor in self.ends if id(tensor) not in self.own]
        self.end_seeds = {id(t): raw_ops.placeholder(t.dtype, tuple(t.shape)) for t in made}
        self.root_gradients: list[tuple[int, int, tf.Tensor]] = []
        """The gradients found so far: the tensor's `id`, the place of its operand, the gradient."""
        for tensor in made:  # each alone: what nothing comes back to gives nothing, whatever its derivative is
            found = gradients_of([(tensor, self.end_seeds[id(tensor)])], [root for root, _ in roots])
            pairs = zip(roots, found, strict=True)
            self.root_gradients += [(id(tensor), place, each) for (_, place), each in pairs if each is not None]
        self.lookups: Mapping[int, int] = {
            number: self.own[id(table)]
            for number, (table, meeting) in enumerate(zip(tables, meetings, strict=True))
            if meeting.is_lookup and id(table) in self.own and self._is_plain(meeting)
        }
        others = [table for number, table in enumerate(tables) if number not in self.lookups]
        ends = {self.own[id(tensor)] for tensor in (*summed, *others) if id(tensor) in self.own}
        self.dense = frozenset(ends | {place for _, place, _ in self.root_gradients})

    def predicate(self, meeting: SharedUse) -> tf.Tensor | None:
        """A scalar bool that says whether a lane has any part in a meeting, None where all have."""
        return self.expansion.predicates.get(meeting.operation.name)

    def needed(self, meeting: SharedUse) -> list[tf.Tensor]:
        """Return the tensors of a row that the gradient by a meeting's shared input needs."""
        predicate = self.predicate(meeting)
        inputs = [meeting.operation.inputs[place] for place in meeting.of_lane]
        return inputs if predicate is None else [*inputs, predicate]

    def _is_plain(self, meeting: SharedUse) -> bool:
        """Return whether TensorFlow's gradient of a lookup, too, is rows: not in a conditional, nor of a slice."""
        return self.predicate(meeting) is None and meeting.operation.name not in self.expansion.slices

    def pull_back(
        self,
        kept: rules.Pairs,
        deltas: Sequence[tf.Tensor],
        sums: Sequence[tf.Tensor],
        operands: Sequence[Any],
        mask: tf.Tensor,
        left_out: Collection[int] = (),
        apart: Apart | None = None,
    ) -> list[tf.Tensor | None]:
        """See `pieces.Linear.pull_back`; `kept` are the residuals, each with its tensor."""
        by_tensor: dict[int, list[tf.Tensor]] = {}
        for tensor, total in zip(self.summed, sums, strict=True):
            by_tensor.setdefault(id(tensor), []).append(total)
        numbered = enumerate(self.meetings)
        together = [(meeting, deltas[number]) for number, meeting in numbered if number not in left_out]
        if together:
            conversion = self._rows([meeting for meeting, _ in together], kept, operands, mask)
            for meeting, delta in together:
                tensor = meeting.operation.inputs[meeting.inputs[0]]
                here, predicate = mask, self.predicate(meeting)
                if predicate is not None:
                    here = tf.logical_and(mask, _of_rows(conversion, predicate))
                found = _pulled(conversion, meeting, _where(here, delta), here, self._shape_of(tensor), apart)
                by_tensor.setdefault(id(tensor), []).append(found)
        totals = {key: tf.add_n(each) if len(each) > 1 else each[0] for key, each in by_tensor.items()}
        return self._by_operand(totals, operands, apart)

    def _shape_of(self, tensor: tf.Tensor) -> tf.TensorShape:
        """The shape of a shared tensor; of the handle of a variable that of its value."""
        place = self.own.get(id(tensor))
        return tensor.shape if place is None else self.traced.shared[place].shape

    def looked_up(self, number: int, kept: rules.Pairs, operands: Sequence[Any], mask: tf.Tensor) -> tf.Tensor:
        """See `pieces.Linear.looked_up`."""
        meeting = self.meetings[number]
        rows = self._rows([meeting], kept, operands, mask)
        return _of_rows(rows, meeting.operation.inputs[1])

    def _rows(
        self, meetings: Sequence[SharedUse], kept: rules.Pairs, operands: Sequence[Any], mask: tf.Tensor
    ) -> rules.Conversion:
        """The conversion for many rows, in which the inputs of meetings are found."""
        wanted = [tensor for each in meetings for tensor in self.needed(each)]
        lanes = mask.shape[0] if mask.shape[0] is not None else tf.shape(mask)[0]
        conversion = rules.Conversion(self.traced.graph, lanes, wanted, rules.Lane())
        conversion.run(kept, [*zip(self.traced.shared, operands, strict=True)], self._handles(operands))
        return conversion

    def _handles(self, operands: Sequence[Any]) -> rules.Pairs:
        values = {id(leaf): value for leaf, value in zip(self.traced.shared, operands, strict=True)}
        return [(handle, values[id(leaf)]) for handle, leaf in self.traced.handles]

    def _by_operand(
        self, totals: dict[int, tf.Tensor], operands: Sequence[Any], apart: Apart | None
    ) -> list[tf.Tensor | None]:
        found: dict[int, list[tf.Tensor]] = {}
        for tensor in self.ends:
            if id(tensor) in self.own and id(tensor) in totals:
                found.setdefault(self.own[id(tensor)], []).append(totals[id(tensor)])
        if self.root_gradients:
            graph, same = self.traced.graph, [*zip(self.traced.shared, operands, strict=True)]
            seeds = [(seed, totals[key]) for key, seed in self.end_seeds.items()]
            outputs = [each for _, _, each in self.root_gradients]
            if apart is None:
                values = rules.taken_over(graph, outputs, [*same, *seeds], self._handles(operands), ())
            else:
                handles = self._handles(operands)
                values = rules.vectorized(graph, outputs, seeds, same, handles, apart.lanes, rules.Lane())
            for (key, place, _), value in zip(self.root_gradients, values, strict=True):
                found.setdefault(place, []).append(_if_any(totals[key], value, apart))
        totalled = {place: tf.add_n(each) if len(each) > 1 else each[0] for place, each in found.items()}
        return [totalled.get(place) for place in range(len(self.traced.shared))]


def gradients_of(
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
    meeting: SharedUse,
    delta: tf.Tensor,
    mask: tf.Tensor,
    shape: tf.TensorShape,
    apart: Apart | None,
) -> tf.Tensor:
    """Return the gradient by a meeting's shared input, of all rows: one product, or one sum by looked-up rows.

    Of each lane `apart` it is a product for each row, and sums of these.
    """
    operation, count = meeting.operation, rows.lanes
    of_lane: dict[int, tf.Tensor] = {}
    if not meeting.is_lookup:  # what nothing comes back to may be infinite
        mask = tf.logical_and(mask, tf.reduce_any(delta != 0, axis=list(range(1, delta.shape.rank))))
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
    """Return the tensor that a tensor reads unchanged."""
    while tensor.op.type in ("Identity", "ReadVariableOp"):
        tensor = tensor.op.inputs[0]
    return tensor


def _of_rows(rows: rules.Conversion, tensor: tf.Tensor) -> tf.Tensor:
    """Return the value of a tensor for all rows, `[rows, ...]`."""
    known = rows.value(tensor)
    return known.t if known.is_stacked else tf.broadcast_to(known.t, [rows.lanes, *known.t.shape])


def _if_any(total: tf.Tensor, found: tf.Tensor, apart: Apart | None) -> tf.Tensor:
    """Return `found` where `total` is not all zeros, otherwise zeros: an infinite derivative would make NaN of them."""
    first = 0 if apart is None else 1
    there = tf.reduce_any(total != 0, axis=list(range(first, total.shape.rank)))
    return tf.where(there, found, tf.zeros([], found.dtype)) if apart is None else _where(there, found)


def _where(mask: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """`rows` where `mask` holds, else zeros: times an infinite number, zero would be none."""
    count = mask.shape[0] if mask.shape[0] is not None else tf.shape(mask)[0]
    return tf.where(tf.reshape(mask, [count, *[1] * (rows.shape.rank - 1)]), rows, tf.zeros([], rows.dtype))


# -- gradient connectivity ---------------------------------------------------------------------------------------------
# The reach of gradients: a value that no gradient comes back to contributes nothing, whatever its derivative.
#
# TensorFlow's tape knows of one example which values the result was made of. Of lanes, some have used a value and
# others have not: the result of the arm that `a if c else b` does not take, what a loop computes for a turn that does
# not come. Such a value gets zeros, and a derivative that is infinite there would make NaN of them, for all that it was
# made of.
#
# So each value has a *reach*: what must hold for anything to come back to it. Of a result it is that its gradient is
# not all zeros, of an arm in addition that the choice is the arm's. Where the reach of what reads a value is less than
# its own the value is passed on through a gate, which is closed for gradients where that does not hold; and so is what
# the whole derivative gives.

_LINEAR = frozenset((
    "Add", "AddN", "AddV2", "BroadcastTo", "Cast", "ConcatV2", "ExpandDims", "GatherV2", "Identity", "Mean", "Neg",
    "Pack", "Pad", "PadV2", "Reshape", "ReverseV2", "Select", "SelectV2", "Slice", "Split", "SplitV", "Squeeze",
    "StopGradient", "StridedSlice", "Sub", "Sum", "Tile", "Transpose", "Unpack",
))  # fmt: skip
"""Operations that make zeros of zeros, whatever they were given."""

_MOST = 8
"""Maximal number of terms of a reach; a value with more counts as always reached."""

Reach = frozenset[frozenset[int]]
"""Terms of which one must hold, each of literals that must hold together."""
ALWAYS: Reach = frozenset((frozenset(),))


class Connected:
    """The reach of every tensor that `outputs`, the results of a trace, depend on; `seeds` are their gradients.

    `of_lane` and `of_shared` have the `id`s of tensors that are made of what a lane has of its own, and of what lanes
    share. Where the two meet others sum up what comes back, so that only choices count for what lanes share.
    """

    def __init__(
        self,
        operations: Sequence[Any],
        outputs: Sequence[tuple[tf.Tensor, tf.Tensor]],
        of_lane: Collection[int],
        of_shared: Collection[int],
    ):
        self.operations, self.of_lane, self.of_shared = operations, of_lane, of_shared
        self._literals: list[tuple[tf.Tensor, bool | None]] = []
        self._known: dict[tuple[int, bool | None], int] = {}
        self._predicates: dict[Reach, tf.Tensor] = {}
        self._reach: dict[int, Reach] = {}
        self._bends: set[int] = set()
        """The tensors between which and the results there are operations that may make NaN of zeros."""
        self._edges: dict[tuple[str, int], Reach] = {}
        for output, seed in outputs:
            start = frozenset((frozenset((self._literal(seed, None),)),))
            self._add(output, start if id(output) in of_lane else ALWAYS)
        for operation in reversed(operations):
            self._pass(operation)

    def _literal(self, tensor: tf.Tensor, value: bool | None) -> int:
        """The number of "the scalar bool is this", or of "not all numbers are zeros"."""
        key = id(tensor), value
        if key not in self._known:
            self._known[key] = len(self._literals)
            self._literals.append((tensor, value))
        return self._known[key]

    def _add(self, tensor: tf.Tensor, more: Reach) -> None:
        """Let there be more that comes back to a tensor."""
        terms = self._reach.get(id(tensor), frozenset()) | more
        least = frozenset(term for term in terms if not any(other < term for other in terms))
        self._reach[id(tensor)] = least if len(least) <= _MOST else ALWAYS

    def _pass(self, operation: Any) -> None:
        """Pass the reach of an operation's outputs on to its inputs."""
        own = [self._reach[id(output)] for output in operation.outputs if id(output) in self._reach]
        if not own:
            return
        terms = frozenset[frozenset[int]]().union(*own)
        bends = operation.type not in _LINEAR or any(id(output) in self._bends for output in operation.outputs)
        meets = any(id(output) in self.of_lane for output in operation.outputs)
        for place, tensor in enumerate(operation.inputs):
            if not (tensor.dtype.is_floating or tensor.dtype.is_complex or is_list(tensor)):
                continue
            edge = terms if id(tensor) in self.of_lane or not meets else ALWAYS
            if edge is terms and place and is_choice(operation):
                literal, other = (self._literal(operation.inputs[0], place == each) for each in (1, 2))
                edge = frozenset(term | {literal} for term in terms if other not in term)
            self._edges[operation.name, place] = edge
            self._add(tensor, edge)
            if bends:
                self._bends.add(id(tensor))

    # -- gates ---------------------------------------------------------------------------------------------------------

    def set_gates(self, ends: Collection[int]) -> None:
        """Pass values on through gates where they are needed, but for the values `ends`, by `id`."""
        gates: dict[tuple[int, Reach], tf.Tensor] = {}
        for operation in self.operations:
            for place, tensor in enumerate(operation.inputs if self._may_bend(operation) else ()):
                edge = self._edges.get((operation.name, place))
                if edge is None or is_list(tensor) or id(tensor) in ends or self._beyond(tensor) in (None, edge):
                    continue
                gate = gates.get((id(tensor), edge))
                if gate is None:
                    gates[id(tensor), edge] = gate = self._gate(tensor, edge)
                private.update_input(operation, place, gate)

    def _beyond(self, tensor: tf.Tensor) -> Reach | None:
        """The reach that is seen to where a tensor comes from; None where no gradient goes on."""
        if id(tensor) in self.of_lane:
            return self._reach[id(tensor)]
        if id(tensor) not in self.of_shared:
            return None
        is_root = not any(each.dtype.is_floating for each in tensor.op.inputs)
        return ALWAYS if is_root else self._reach[id(tensor)]

    def _may_bend(self, operation: Any) -> bool:
        return operation.type not in _LINEAR or any(id(output) in self._bends for output in operation.outputs)

    def _gate(self, tensor: tf.Tensor, reach: Reach) -> tf.Tensor:
        """`tensor`, to which nothing comes back where `reach` does not hold."""
        gate = tf.identity(tensor)
        predicate = self._predicate(reach)
        private.set_gradient(gate.op, lambda upstream: _only_where(predicate, upstream))
        return gate

    def _predicate(self, reach: Reach) -> tf.Tensor:
        """Return a scalar bool of the graph: whether the reach holds."""
        if reach not in self._predicates:
            terms = [[self._holds(literal) for literal in sorted(term)] for term in sorted(map(sorted, reach))]
            every = [tf.reduce_all(tf.stack(term)) if len(term) > 1 else term[0] for term in terms if term]
            found = every[0] if len(every) == 1 else tf.reduce_any(tf.stack(every)) if every else tf.constant(False)
            self._predicates[reach] = found
        return self._predicates[reach]

    def _holds(self, literal: int) -> tf.Tensor:
        tensor, value = self._literals[literal]
        if value is None:
            return tf.reduce_any(tf.not_equal(tensor, tf.zeros([], tensor.dtype)))
        return tensor if value else tf.logical_not(tensor)

    # -- what comes back -----------------------------------------------------------------------------------------------

    def kept_to(self, tensor: tf.Tensor, gradient: tf.Tensor) -> tf.Tensor:
        """The gradient by `tensor`: none where nothing comes back to it."""
        reach = self._reach.get(id(tensor), ALWAYS)
        is_kept = reach == ALWAYS or id(tensor) not in self._bends or is_list(tensor)
        return gradient if is_kept else _only_where(self._predicate(reach), gradient)

    def kept_through(self, operation: Any, gradient: tf.Tensor) -> tf.Tensor:
        """Return the same of a gradient that comes through an operation to shared values."""
        terms = frozenset[frozenset[int]]().union(*(self._reach.get(id(each), ()) for each in operation.outputs))
        is_safe = frozenset() in terms or not self._may_bend(operation)
        return gradient if is_safe else _only_where(self._predicate(terms), gradient)


def _only_where(predicate: tf.Tensor, gradient: Any) -> tf.Tensor:
    gradient = tf.convert_to_tensor(gradient)
    return tf.where(predicate, gradient, tf.zeros([], gradient.dtype))
