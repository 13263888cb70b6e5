"""Storage of a lane: registers, arrays, stacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Piece, Program, PushJump
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.llvm.types import Number, by_dtype

Leaf = tuple[str, int]
"""A variable, and which of the arrays that it is made of."""


@dataclass(frozen=True)
class Field:
    """Place of a leaf in an entry of a stack."""

    number: Number
    sizes: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        return self.number.bytes * math.prod(self.sizes)


@dataclass(frozen=True)
class Frame:
    """The entries of stacks that share a pointer: one after another, each with a field for every leaf."""

    fields: dict[Leaf, Field]
    bytes: int

    @classmethod
    def of(cls, every: Sequence[tuple[Leaf, Number, tuple[int, ...]]]) -> Frame:
        """The frame of some leaves, the largest numbers first, so that all are aligned."""
        fields: dict[Leaf, Field] = {}
        largest, end = 1, 0
        for leaf, number, sizes in sorted(every, key=lambda each: -each[1].bytes):
            fields[leaf] = field = Field(number, sizes, end)
            largest, end = max(largest, number.bytes), end + field.bytes
        return cls(fields, (end + largest - 1) // largest * largest)


@dataclass(frozen=True)
class Storage:
    """Storage layout of a lane of `program`, or of several `lanes` that run together."""

    program: Program
    lanes: int = 1

    def types(self, name: str) -> list[TensorType]:
        """The types of the leaves of a variable."""
        return list(leaves(self.program.types[name]))

    def leaves(self, name: str) -> Iterator[tuple[Leaf, Number, tuple[int, ...]]]:
        """The leaves of a variable, with their types of numbers and sizes."""
        for place, type_ in enumerate(self.types(name)):
            yield (name, place), by_dtype(type_.dtype).wide(self.lanes), type_.shape

    @property
    def site_bits(self) -> int:
        """The number of low bits of a failure that hold its site plus one; above them is the number of its block."""
        return len(self.program.faults).bit_length()

    @cached_property
    def has_calls(self) -> bool:
        """True if there are calls to come back from."""
        return any(isinstance(block.terminator, PushJump) for block in self.program.blocks)

    @cached_property
    def returns(self) -> tuple[int, ...]:
        """The blocks that calls come back to."""
        terminators = [block.terminator for block in self.program.blocks]
        return tuple(dict.fromkeys(each.back for each in terminators if isinstance(each, PushJump)))

    def group(self, name: str) -> str:
        """The variable whose stack pointer is that of `name`, too."""
        return self.program.pointers.get(name, name)

    @cached_property
    def frames(self) -> dict[str, Frame]:
        """The frames of stacks, by group; of variables that some block pushes."""
        pushed = {push.variable for block in self.program.blocks for push in block.pushes}
        pushed |= {name for block in self.program.blocks for name in block.pops}
        members: dict[str, list[str]] = {}
        for name in self.program.storage:
            if name in pushed:
                members.setdefault(self.group(name), []).append(name)
        return {
            group: Frame.of([each for name in names for each in self.leaves(name)]) for group, names in members.items()
        }

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The variables that messages of faults show."""
        return tuple(dict.fromkeys(name for site in self.program.faults for name in site.arguments))

    @cached_property
    def written(self) -> frozenset[str]:
        """The variables that blocks write or pop."""
        found = {name for block in self.program.blocks for name in (*effects.written(block), *block.pops)}
        items = (item for block in self.program.blocks for item in block.body)
        for item in items:
            found |= {*item.writes} if isinstance(item, Piece) else {item.array}
        return frozenset(found)

    @cached_property
    def under_predicates(self) -> frozenset[str]:
        """The variables that are written where some predicate holds: they have a value elsewhere, too."""
        found: set[str] = set()
        for item in (item for block in self.program.blocks for item in block.body):
            if item.predicate is not None:
                found |= {*item.writes} if isinstance(item, Piece) else {item.array}
        return frozenset(found)

    @cached_property
    def results(self) -> list[tuple[Leaf, Number, tuple[int, ...]]]:
        """The leaves of the results as they are handed out, where nothing is weak."""
        return [
            ((name, place), by_dtype(type_.returned), type_.shape)
            for name in self.program.results
            for place, type_ in enumerate(self.types(name))
        ]

    @cached_property
    def entry_bytes(self) -> int:
        """The bytes of an entry of all stacks, the place to come back to included."""
        return 4 * self.has_calls + sum(frame.bytes for frame in self.frames.values())
