"""The anatomy of a piece's trace, for its derivative: shared values, where they meet a lane's, and residuals.

Between the way forward and the way back lies a *cut*: tensors that are kept of every row, from which all else is
computed again. Elementwise work is, for it costs less than to write and read its result; results of products, of
reductions and of lookups are kept, or, where these are no more, of exponentials and the like, which need not be
computed again then. What is made of shared operands alone is never kept. Parts of an array are kept as the array that
they are parts of, where that is no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import flop_estimate
from pcbatch.runtime.backends.tensorflow.rules.straight import ELEMENTWISE
from pcbatch.runtime.backends.tensorflow.traces import Trace

PRODUCTS = frozenset(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Einsum", "MatMul"))
"""Operations of which one product over all rows gives the gradient by an operand that they share."""

LOOKUPS = frozenset(("GatherV2", "ResourceGather"))

_COMPUTED_AGAIN = ELEMENTWISE | {
    "BroadcastTo", "ConcatV2", "ExpandDims", "Fill", "IdentityN", "Maximum", "Minimum", "OnesLike", "Pack", "PadV2",
    "Pad", "PreventGradient", "Range", "Rank", "Relu", "Relu6", "Reshape", "ReverseV2", "Select", "Shape", "Size",
    "Softplus", "Squeeze", "Tile", "Transpose", "Unpack", "ZerosLike",
}  # fmt: skip

_COSTLY = frozenset((
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Cos", "Cosh", "Digamma", "Erf", "Erfc", "Exp", "Expm1",
    "Lgamma", "Log", "Log1p", "Pow", "Sigmoid", "Sin", "Sinh", "Softplus", "Tan", "Tanh",
))  # fmt: skip
"""Elementwise operations that take as long as many others."""
_PARTS = frozenset(("Slice", "Split", "SplitV", "StridedSlice", "Unpack"))
"""Operations that give parts of an array."""


def makes_functions(operations: Sequence[Any]) -> bool:
    """Return whether any operation runs functions: for its gradient it may be replaced by one with more results."""
    return any(flop_estimate.bodies(operation) for operation in operations)


@dataclass(frozen=True)
class SharedUse:
    """An operation some of whose inputs are shared, with a gradient that is wanted (`inputs`: their places)."""

    operation: Any
    inputs: tuple[int, ...]

    @property
    def is_product(self) -> bool:
        """True if the gradient by the shared input is one product over all rows."""
        return self.operation.type in PRODUCTS and len(self.inputs) == 1

    @property
    def is_lookup(self) -> bool:
        """True if the shared input is a table whose rows (of its first axis) are looked up."""
        operation = self.operation
        if operation.type not in LOOKUPS or self.inputs != (0,) or operation.get_attr("batch_dims") != 0:
            return False
        return operation.type == "ResourceGather" or tf.get_static_value(operation.inputs[2]) == 0

    @property
    def of_lane(self) -> tuple[int, ...]:
        """The places of the inputs of which rows have their own, as the gradient by the shared one needs them."""
        return (1,) if self.is_lookup else tuple(n for n in range(len(self.operation.inputs)) if n not in self.inputs)


class Anatomy:
    """The operations of a trace before gradients are added to it, and their dependences."""

    def __init__(self, traced: Trace, outputs: Sequence[tf.Tensor], wanted: Collection[int]):
        """`wanted` are the places among `traced.shared` of which gradients are wanted."""
        self.names = frozenset(operation.name for operation in traced.graph.get_operations())
        self.operations = flop_estimate.in_order(outputs)
        self.reads = {id(tensor) for tensor in traced.reads}
        self.leaves = [traced.shared[place] for place in wanted]
        places = {id(leaf): place for place, leaf in enumerate(traced.shared)}
        self.roots = [*((leaf, places[id(leaf)]) for leaf in self.leaves)]
        self.roots += [(handle, places[id(leaf)]) for handle, leaf in traced.handles if places[id(leaf)] in set(wanted)]
        """The sources of gradients by shared operands: placeholders and handles, with the operand's place."""
        self.of_lane, self.of_wanted = set(self.reads), {id(root) for root, _ in self.roots}
        for operation in self.operations:
            for group in (self.of_lane, self.of_wanted):
                if any(id(tensor) in group for tensor in operation.inputs):
                    group.update(map(id, operation.outputs))

    def is_shared(self, tensor: tf.Tensor) -> bool:
        """Return whether a tensor is made of shared operands alone, at least one of whose gradients is wanted."""
        return id(tensor) in self.of_wanted and id(tensor) not in self.of_lane

    def meetings(self) -> Iterator[SharedUse]:
        """Yield the operations at which a shared value meets a lane's."""
        for operation in self.operations:
            places = tuple(n for n, tensor in enumerate(operation.inputs) if self.is_shared(tensor))
            if places and any(id(output) in self.of_lane for output in operation.outputs):
                yield SharedUse(operation, places)

    def cut(self, targets: Sequence[tf.Tensor], seeds: Sequence[tf.Tensor], *, reads_only: bool) -> list[tf.Tensor]:
        """Return the tensors to keep so that `targets` can be computed from them, shared operands and `seeds`.

        It is `reads_only` that are kept where operations must run again as a whole.
        """
        given = set(map(id, seeds))
        kept = self._cut(targets, given, reads_only=reads_only)
        if reads_only:
            return [*kept.values()]
        kept, other = self._whole(kept), self._whole(self._with_costly(targets, given))
        return [*(other if _bytes(other.values()) <= _bytes(kept.values()) else kept).values()]

    def _cut(
        self, targets: Sequence[tf.Tensor], given: Collection[int], *, reads_only: bool = False, costly: bool = False
    ) -> dict[int, tf.Tensor]:
        """Return a cut; with `costly`, costly results are kept, too."""
        kept: dict[int, tf.Tensor] = {}
        pending, seen = [*targets], set[int]()
        while pending:
            tensor = pending.pop()
            if id(tensor) in seen or id(tensor) in given:
                continue
            seen.add(id(tensor))
            if id(tensor) in self.reads or (not reads_only and self._is_kept(tensor, costly)):
                kept[id(tensor)] = tensor
            else:
                pending += tensor.op.inputs
        return kept

    def _with_costly(self, targets: Sequence[tf.Tensor], given: Collection[int]) -> dict[int, tf.Tensor]:
        """Return the same, and costly results where they cannot be computed from the rest.

        64 small TreeLSTMs of 128 cells take 0.965 of a training step by that, LSTMs of 256 0.98.
        """
        kept, place = self._cut(targets, given, costly=True), {op.name: n for n, op in enumerate(self.operations)}
        found = [tensor for tensor in kept.values() if tensor.op.type in _COSTLY]
        for tensor in sorted(found, key=lambda each: -place.get(each.op.name, 0)):
            others = kept.keys() - {id(tensor)}
            if not self._cut(tensor.op.inputs, {*given, *others}, costly=True):
                del kept[id(tensor)]
        return kept

    def _whole(self, kept: dict[int, tf.Tensor]) -> dict[int, tf.Tensor]:
        """The same with arrays in place of their parts, such as the gates of a cell: one array to write and to read.

        64 small TreeLSTMs of 128 cells and LSTMs of 256 take 0.98 of a training step.
        """
        groups: dict[int, list[tf.Tensor]] = {}
        for tensor in kept.values():
            if tensor.op.type in _PARTS and id(tensor) not in self.reads:
                groups.setdefault(id(tensor.op.inputs[_source(tensor.op)]), []).append(tensor)
        for parts in (each for each in groups.values() if len(each) > 1):
            of_parts = [operand for part in parts for operand in part.op.inputs]
            more = {key: each for key, each in self._cut(of_parts, ()).items() if key not in kept}
            if _bytes(more.values()) <= _bytes(parts):
                gone = set(map(id, parts))
                kept = {key: each for key, each in kept.items() if key not in gone} | more
        return kept

    def _is_kept(self, tensor: tf.Tensor, costly: bool) -> bool:
        if id(tensor) not in self.of_lane or tensor.op.name not in self.names:
            return False
        is_array = tensor.shape.is_fully_defined() and tensor.dtype not in (tf.variant, tf.resource, tf.string)
        return is_array and (tensor.op.type not in _COMPUTED_AGAIN or (costly and tensor.op.type in _COSTLY))


def _source(operation: Any) -> int:
    """The place among the inputs of an operation that gives parts of the array that they are parts of."""
    return 1 if operation.type == "Split" else 0


def _bytes(tensors: Iterable[tf.Tensor]) -> int:
    """The bytes of all elements of some tensors."""
    return sum(tensor.dtype.size * tensor.shape.num_elements() for tensor in tensors)
