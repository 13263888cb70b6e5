"""The reach of gradients: a value that no gradient comes back to contributes nothing, whatever its derivative.

TensorFlow's tape knows of one example which values the result was made of. Of lanes, some have used a value and others
have not: the result of the arm that `a if c else b` does not take, what a loop computes for a turn that does not come.
Such a value gets zeros, and a derivative that is infinite there would make NaN of them, for all that it was made of.

So each value has a *reach*: what must hold for anything to come back to it. Of a result it is that its gradient is not
all zeros, of an arm in addition that the choice is the arm's. Where the reach of what reads a value is less than its
own the value is passed on through a gate, which is closed for gradients where that does not hold; and so is what the
whole derivative gives.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.lists import is_list
from pcbatch.runtime.backends.tensorflow.selection import is_choice

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
        private.set_gradient(gate.op, lambda upstream: _where(predicate, upstream))
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
        return gradient if is_kept else _where(self._predicate(reach), gradient)

    def kept_through(self, operation: Any, gradient: tf.Tensor) -> tf.Tensor:
        """Return the same of a gradient that comes through an operation to shared values."""
        terms = frozenset[frozenset[int]]().union(*(self._reach.get(id(each), ()) for each in operation.outputs))
        is_safe = frozenset() in terms or not self._may_bend(operation)
        return gradient if is_safe else _where(self._predicate(terms), gradient)


def _where(predicate: tf.Tensor, gradient: Any) -> tf.Tensor:
    gradient = tf.convert_to_tensor(gradient)
    return tf.where(predicate, gradient, tf.zeros([], gradient.dtype))
