"""The contents of a state's arrays for each lane or example, and the form of values inside stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.protocol import Array, Backend


@dataclass(frozen=True)
class ArraySpec:
    """The contents of an array for each lane or example: one value of `type`, or, `stacked`, a stack of them."""

    value: TensorType
    stacked: bool = False

    @property
    def type(self) -> TensorType:
        """The type of an element. XLA scatters bools six times slower than bytes, so stacks of bools are bytes."""
        return TensorType("uint8", self.value.shape) if self.stacked and self.value.dtype == "bool" else self.value


NUMBER = ArraySpec(TensorType("int32"))


def to_stored(backend: Backend, value: Array, type_: TensorType) -> Array:
    """`value` as it is kept inside a stack."""
    return backend.cast(value, "uint8") if type_.dtype == "bool" else value


def load_entry(
    backend: Backend,
    stacks: Sequence[Array],
    index: Array,
    types: Sequence[TensorType],
    rows: Array | None = None,
) -> list[Array]:
    """Entry `index[row]` of the stack of every row's lane, leaf by leaf; `rows` as in `Arrays.load`."""
    entries = [backend.load(stack, [index], rows) for stack in stacks]
    return [from_stored(backend, *each) for each in zip(entries, types, strict=True)]


def from_stored(backend: Backend, entry: Array, type_: TensorType) -> Array:
    """The inverse of `to_stored`."""
    return backend.cast(entry, "bool") if type_.dtype == "bool" else entry
