"""A tile: some lanes that run together as one, so that a CPU computes their numbers several at a time.

What is one number of a lane is a vector here, `[width]`, and what may or may not hold of a lane does so of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pcbatch.ir.analysis.effects import reachable
from pcbatch.ir.machine import Piece, Program, PushJump, Store
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.pieces import Leaves, Signature
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.costs.device import CPU

DTYPES = frozenset({"bool", "float32", "float64"}) | {f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)}
"""Of other numbers nobody has measured whether they run faster so."""
SUMMED = 8
"""So many numbers are added one by one."""


def fits(program: Program, backend: Backend) -> bool:
    """Whether lanes of `program` had better run in tiles: all that they hold are numbers, without stacks.

    And no block calls many functions of which a CPU computes one number at a time.
    """
    types = [leaf for type_ in program.types.values() for leaf in leaves(type_)]
    if any(type_.shape or type_.dtype not in DTYPES for type_ in types):
        return False
    if any(storage != "register" for storage in program.storage.values()):
        return False
    for block in (program.blocks[number] for number in reachable(program)):
        pieces = [item for item in block.body if isinstance(item, Piece)]
        if isinstance(block.terminator, PushJump) or any(isinstance(item, Store) for item in block.body):
            return False
        if sum(_calls(program, piece, backend) for piece in pieces) > CPU.native_tile_calls:
            return False
    return True


def has_floats(program: Program) -> bool:
    """Whether lanes hold numbers that are rounded."""
    types = (leaf for type_ in program.types.values() for leaf in leaves(type_))
    return any(not type_.dtype.startswith(("bool", "int", "uint")) for type_ in types)


def _calls(program: Program, piece: Piece, backend: Backend) -> float:
    reads, shared = [program.types[name] for name in piece.reads], [program.shared_types[name] for name in piece.shared]
    return backend.calls_in_tile(piece, reads, shared)


class Tile:
    """What one lane's code asks of an array library, for `width` lanes whose values are numbers."""

    def __init__(self, backend: Backend, width: int):
        self.backend, self.width = backend, width

    def __getattr__(self, name: str) -> Any:
        """What is done number by number is done to vectors alike."""
        return getattr(self.backend, name)

    def constant(self, value: int) -> Array:
        """`value` for every lane."""
        return self.backend.add(self.zeros_of(TensorType("int32")), self.backend.constant(value))

    def constant_bool(self, value: bool) -> Array:
        """The same of a bool."""
        return self.each(self.backend.constant_bool(value))

    def each(self, condition: Array) -> Array:
        """A scalar bool for every lane."""
        return self.zeros_of(TensorType("bool")) | condition

    def zeros_of(self, type_: TensorType) -> Array:
        """Zero for every lane."""
        return self.backend.zeros(self.width, type_)

    def count(self, mask: Array) -> Array:
        """For how many lanes a bool holds: an int32 scalar, in halves, as XLA would do a sum of more than 32 slowly."""
        numbers, length = self.backend.cast(mask, "int32"), self.width
        while length > SUMMED and length % 2 == 0:
            length //= 2
            numbers = self.backend.add(numbers[:length], numbers[length:])
        return self.backend.sum(numbers)

    def repeated(
        self,
        predicate: Array,
        function: Callable[[Array, list[Array]], tuple[Array, list[Array]]],
        before: Sequence[Array],
    ) -> list[Array]:
        """For each lane as long as its predicate holds."""

        def turn(carried: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
            go, old = carried
            still, new = function(go, old)
            return self.backend.both(go, still), [self.backend.choose(go, *each) for each in zip(new, old, strict=True)]

        start = predicate, list(before)
        after: list[Array] = self.backend.while_loop(lambda carried: self.count(carried[0]) > 0, turn, start)[1]
        return after

    def run_one(
        self, piece: Piece, signature: Signature, reads: Sequence[Leaves], shared: Sequence[Leaves]
    ) -> tuple[list[list[Array]], Array | None]:
        """Run a piece for every lane."""
        return self.backend.vectorize(piece, signature, reads, shared, self.width)
