"""Facts of a loop's turns that say how they can be deferred: its way out, its counters, how many turns there may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.analysis.effects import Loop, blocks_of, nest_with_calls, written
from pcbatch.ir.expressions import Apply, Input, Operator
from pcbatch.ir.expressions import Constant as Literal
from pcbatch.ir.machine import Block, Branch, Fault, Piece, Program, PushJump, Return, Statement, Store, targets
from pcbatch.ir.payload import Compute, Constant
from pcbatch.ir.program import Primitive, writes
from pcbatch.ir.types import TensorType
from pcbatch.optimize.machine.turn_parts import ELEMENT, Parts


def loops(program: Program) -> Iterator[Loop]:
    """The loops that are in no other one, with a condition at their beginning, and without calls."""
    for node in nest_with_calls(program):
        if isinstance(node, Loop) and node.is_entered_first:
            ends = [program.blocks[number].terminator for number in blocks_of([node])]
            if not any(isinstance(end, PushJump | Return) for end in ends):
                yield node


@dataclass(frozen=True)
class Exit:
    """The way out of a loop: by an arm of its first block's branch, or out of the middle, from the blocks `leaving`."""

    branch: Branch
    stays: bool
    inside: int
    outside: int
    leaving: tuple[int, ...]

    @classmethod
    def of(cls, program: Program, members: frozenset[int], head: int) -> Exit | None:
        """The only block to which a loop leads, None if there are several; one in which lanes fail is none."""
        branch = program.blocks[head].terminator
        if not isinstance(branch, Branch) or (branch.true in members) == (branch.false in members):
            return None
        stays = branch.true in members
        inside, outside = (branch.true, branch.false) if stays else (branch.false, branch.true)
        leaving = []
        for number in members - {head}:
            for place in {*targets(program.blocks[number].terminator)} - members:
                if place == outside:
                    leaving.append(number)
                elif not isinstance(program.blocks[place].terminator, Fault):
                    return None
        return cls(branch, stays, inside, outside, tuple(sorted(leaving)))


@dataclass(frozen=True)
class Turns:
    """The turns of a loop of blocks `members`, as far as known, of which block `number` is deferred in `parts`.

    At most `most` turns of a lane are kept.
    """

    program: Program
    members: frozenset[int]
    head: int
    number: int
    way: Exit
    parts: Parts
    most: int

    @cached_property
    def is_asked_again(self) -> bool:
        """Return whether the loop's condition can be computed a second time: it cannot fail, and has not changed."""
        items = self.program.blocks[self.head].body
        return self.head != self.number and all(isinstance(item, Piece) and not item.sites for item in items)

    @cached_property
    def has_begun(self) -> bool:
        """Return whether a turn is kept wherever the loop ends but at its entry: each turn goes through the block."""
        return self.is_asked_again and not self.way.leaving and self.is_in_each_turn

    @cached_property
    def is_in_each_turn(self) -> bool:
        """Return whether no turn goes past the block."""
        found, waiting = {self.head, self.number}, [self.way.inside]
        while waiting:
            place = waiting.pop()
            if place == self.head and self.number != self.head:
                return False
            if place in self.members and place not in found:
                found.add(place)
                waiting += targets(self.program.blocks[place].terminator)
        return True

    @cached_property
    def steps(self) -> dict[str, int]:
        """The variables that each run of the block changes, and nothing else in the loop, by a constant step."""
        others = (self.program.blocks[each] for each in self.members - {self.number})
        changed = Counter(name for each in others for name in {*written(each), *each.pops})
        statements = [each for item in self._block.body if isinstance(item, Piece) for each in item.statements]
        changed.update(name for each in statements for name in writes(each.op))
        found = {}
        for each in statements:
            match each.op:
                case Primitive((name,), (same,), Compute(Apply(Operator("+"), (Input(0), Literal(int(step)))))):
                    if name == same and changed[name] == 1 and step and name in self.program.storage:
                        found[name] = step
        return found

    @cached_property
    def are_apart(self) -> bool:
        """Return whether what is left are stores at another place in each turn, which may be in any order."""
        stores = [item for item in self.parts.each if isinstance(item, Store)]
        arrays = {each.array for each in stores}
        read = {name for item in self.parts.deferred for name in item.reads}
        if not len(arrays) == len(stores) == len(self.parts.each) or not arrays.isdisjoint(read):
            return False
        return all(
            self._is_apart(each) for each in self._block.body if isinstance(each, Store) and each.array in arrays
        )

    def _is_apart(self, store: Store) -> bool:
        """Return whether turns that are done together store at places that differ, counted from either end."""
        step, type_ = self.steps.get(store.indices[0]), self.program.types[store.array]
        if step is None or not isinstance(type_, TensorType):
            return False
        return abs(step) * (self.most - 1) < int(type_.shape[0])

    @cached_property
    def is_bounded(self) -> bool:
        """Return whether a lane has no more turns than there is room for: each looks up the next place of an array."""
        if not self.is_in_each_turn or self.head == self.number:
            return False
        types = {**self.program.types, **self.program.shared_types, **self.parts.types}
        statements = [each for item in self.parts.stays if isinstance(item, Piece) for each in item.statements]
        for each in statements:
            match each:
                case Statement(Primitive(_, (array, index), code), sites) if code == ELEMENT and sites:
                    type_ = types.get(array)
                    is_array = isinstance(type_, TensorType) and len(type_.shape) > 0
                    if is_array and index in self.steps and self._is_positive(index):
                        return int(type_.shape[0]) <= self.most  # type: ignore[union-attr]
        return False

    def _is_positive(self, name: str) -> bool:
        """Return whether a variable with a constant step is never below 0 in a turn."""
        if self.steps[name] > 0:
            return all(_starts_positive(name, block) for block in self._outside)
        condition = self.way.branch.condition
        items = [
            each for item in self.program.blocks[self.head].body if isinstance(item, Piece) for each in item.statements
        ]
        for each in items:
            match each.op:
                case Primitive((found,), (same,), Compute(Apply(Operator(">"), (Input(0), Literal(int(least)))))):
                    if (found, same) == (condition, name):
                        return self.way.stays and least >= -1
        return False

    @property
    def _outside(self) -> list[Block]:
        return [block for number, block in enumerate(self.program.blocks) if number not in self.members]

    @property
    def _block(self) -> Block:
        return self.program.blocks[self.number]


def _starts_positive(name: str, block: Block) -> bool:
    """Return whether a block gives a variable nothing but constants from 0 on."""
    statements = [each for item in block.body if isinstance(item, Piece) for each in item.statements]
    given = [each.op for each in statements if name in writes(each.op)]
    if name in {*block.pops, *(item.array for item in block.body if isinstance(item, Store))}:
        return False
    return all(
        isinstance(op, Primitive)
        and isinstance(op.code, Constant)
        and isinstance(op.code.value, int)
        and op.code.value >= 0
        for op in given
    )
