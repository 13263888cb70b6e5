"""A group of calls in the making, the values computed early for them, and the work behind them.

Values are computed early if those of their names are known behind the group's first block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from pcbatch.ir.analysis.parallel_call_groups import Step
from pcbatch.ir.machine import (
    Block,
    Branch,
    Fork,
    ForkedCall,
    Piece,
    Push,
    PushJump,
    Statement,
    checked_sites,
    fork_of,
)
from pcbatch.ir.program import reads, writes
from pcbatch.ir.types import TensorType, Type
from pcbatch.optimize.machine.join_blocks import Fresh, Joining, copies

# -- values behind the first block -------------------------------------------------------------------------------------


DEPENDS = "what it is given depends on what the call before it gives"
OPAQUE = "what it is given is computed by code of which nothing is known, which is not done early"
STORED = "what it is given has an element stored into it in between, which is not done early"
CHOSEN = "what it is given depends on the arm of a branch in between"
BENEATH = "what it is given was saved before, where it cannot be read early"
ASKS = "whether it is made depends on what a call before it gives"
ASKS_UNSEEN = "whether it is made cannot be said early"


@dataclass(frozen=True)
class Unknown:
    """A value unknown where a group begins: the reasons, and the variables on whose stacks its operands lie."""

    reasons: frozenset[str] = frozenset()
    beneath: frozenset[str] = frozenset()

    @classmethod
    def because(cls, reason: str) -> Unknown:
        """A value that is unknown for one reason."""
        return cls(frozenset((reason,)))

    @classmethod
    def saved(cls, variable: str) -> Unknown:
        """A value that was saved on the stack of `variable` before the group begins."""
        return cls(frozenset((BENEATH,)), frozenset((variable,)))

    @property
    def why(self) -> str:
        """The reason that weighs most."""
        order = (DEPENDS, ASKS, OPAQUE, STORED, CHOSEN, ASKS_UNSEEN, BENEATH)
        return min(self.reasons, key=lambda reason: order.index(reason) if reason in order else -1)

    @property
    def is_beneath(self) -> bool:
        """Return whether it would be known if the stacks' contents were."""
        return self.reasons == {BENEATH}

    @property
    def asked(self) -> Unknown:
        """The same of a call that is made on a condition which is not known."""
        return self if self.is_beneath else Unknown.because(ASKS if DEPENDS in self.reasons else ASKS_UNSEEN)


Value = str | Unknown
"""The name, at the end of the group's first block, of a value."""


def together(values: Iterable[Value]) -> Unknown | None:
    """The unknown part of several values; None if nothing is unknown."""
    unknown = [value for value in values if isinstance(value, Unknown)]
    if not unknown:
        return None
    reasons = (reason for each in unknown for reason in each.reasons)
    return Unknown(frozenset(reasons), frozenset(name for each in unknown for name in each.beneath))


@dataclass
class Values:
    """The values of names, in terms of the end of the group's first block."""

    names: dict[str, Value] = field(default_factory=dict)
    stacks: dict[str, list[Value]] = field(default_factory=dict)
    before: dict[str, Value] = field(default_factory=dict)
    """`names` as they were before the body of the present block, after its pops."""

    def of(self, name: str) -> Value:
        """The value of `name` now."""
        return self.names.get(name, name)

    def copy(self) -> Values:
        """The same, apart."""
        stacks = {name: [*stack] for name, stack in self.stacks.items()}
        return replace(self, names=dict(self.names), stacks=stacks, before=dict(self.before))

    def met(self, other: Values) -> Values | None:
        """The values that are known where two arms come together; None where they leave stacks that differ."""
        if {k: v for k, v in self.stacks.items() if v} != {k: v for k, v in other.stacks.items() if v}:
            return None
        names = {name: _met(self.of(name), other.of(name)) for name in (*self.names, *other.names)}
        return Values(names, self.stacks)


def _met(one: Value, other: Value) -> Value:
    return one if one == other else together((one, other)) or Unknown.because(CHOSEN)


# -- groups in the making ----------------------------------------------------------------------------------------------


Early = tuple[Piece, Statement, "str | None"]
"""A statement that may be computed early, the piece that it is of, and the condition under which it is."""


@dataclass(frozen=True)
class End:
    """A place where a group may end: behind so many steps and calls.

    `onward` is where a lane goes on behind the arms that the last call is in, None if it is in none.
    """

    steps: int
    calls: int
    onward: int | None


@dataclass
class CallGroup:
    """A group in the making: its calls, and the statements by which their arguments are computed early."""

    fresh: Fresh
    steps: list[Step] = field(default_factory=list)
    """The blocks from the first one to that at which the last call comes back, or to the end of the arms it is in."""
    calls: list[ForkedCall] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    """The blocks that make the calls."""
    conditions: dict[tuple[int, bool], str] = field(default_factory=dict)
    """Names of conditions, by arm: at the end of the first block they say whether a lane goes there."""
    unasked: dict[int, Unknown] = field(default_factory=dict)
    """Reasons why conditions are not known there, by the block that branches."""
    onward: int | None = None
    """The block at which a lane goes on where the last call is in an arm."""
    before: dict[str, str] = field(default_factory=dict)
    """Variables whose value before the first block's body is needed, and the names that keep it."""
    saved: dict[int, str] = field(default_factory=dict)
    """The names for values that the first block saves by a name, by the place among its pushes."""
    statements: list[Early] = field(default_factory=list)
    types: dict[str, Type] = field(default_factory=dict)
    storage: dict[str, str] = field(default_factory=dict)
    """The values of names that are there for the join block."""

    @property
    def most(self) -> int:
        """The largest number of the calls that a lane makes."""
        count = 0
        by_arm: dict[int, list[int]] = {}
        under = {step.number: step.under for step in self.steps}
        for number in self.blocks:
            arm = under[number]
            if arm is None:
                count += 1
            else:
                by_arm.setdefault(arm[0], [0, 0])[arm[1]] += 1
        return count + sum(map(max, by_arm.values()))

    def shortened(self, end: End) -> list[int]:
        """End the group there; gives the blocks that make the calls which are left out."""
        left = self.blocks[end.calls :]
        del self.steps[end.steps :], self.calls[end.calls :], self.blocks[end.calls :]
        self.onward = end.onward
        return left

    @property
    def covered(self) -> set[int]:
        """The blocks in which no other group begins."""
        return {step.number for step in (self.steps if self.onward is not None else self.steps[:-1])}

    @property
    def is_in_one_arm(self) -> bool:
        """Return whether all calls are in the arms of one branch: they had better be a group there."""
        arms = {step.under for step in self.steps if step.number in self.blocks}
        return None not in arms and len({arm[0] for arm in arms if arm is not None}) == 1

    def rewritten(self, block: Block, join: int) -> Block:
        """Return the first block, which computes all arguments of the calls, and keeps its saved values."""
        assert isinstance(block.terminator, PushJump | Branch)
        saved = [(kept, str(push.saved)) for push, kept in self.kept(block) if push.saved is not None]
        given = {name for call in self.calls for _, name in call.given}
        given |= {call.condition for call in self.calls if call.condition is not None}
        early = self._early(given)
        needed = given | {name for item in early for name in item.reads} | self.storage.keys()
        before = [(kept, name) for name, kept in self.before.items() if kept in needed]
        asked = [(self.asked, block.terminator.condition)] if isinstance(block.terminator, Branch) else []
        body = (
            *copies(block, before, speculative=True),
            *block.body,
            *early,
            *copies(block, [*saved, *asked], speculative=True),
        )
        return replace(block, body=body, terminator=replace(block.terminator, fork=Fork(tuple(self.calls), join)))

    @cached_property
    def asked(self) -> str:
        """The register that keeps the condition of a branch at the end of the first block."""
        name = self.fresh("asked")
        self.types[name] = TensorType("bool")
        self.storage[name] = "register"
        return name

    def kept(self, block: Block) -> list[tuple[Push, str]]:
        """The values that the first block pushes, each with the register that keeps it while the lane waits."""
        found = []
        for place, push in enumerate(block.pushes):
            if push.saved is None:
                if push.variable not in self.before:
                    self.before[push.variable] = self.fresh(push.variable)
                name = self.before[push.variable]
            else:
                name = self.saved.setdefault(place, "") or self.fresh(push.variable)
                self.saved[place] = name
            self.storage[name] = "register"
            found.append((push, name))
        return found

    def join(self, blocks: Sequence[Block], label: str) -> Block:
        """The join block; `blocks` are those of the program, their first blocks rewritten."""
        joining = Joining(self.fresh)
        said = self.joined(blocks, joining)
        assert said, "the group was found to be one that can be joined"
        return joining.end(blocks[self.steps[-1].number], label, self.onward)

    def joined(self, blocks: Sequence[Block], joining: Joining) -> bool:
        """Do the work of the blocks behind the first one; False where it is not known."""
        first, *others = self.steps
        came, ends = dict(zip(self.blocks, self.calls, strict=True)), blocks[first.number].terminator
        taken = {step.under for step in others}
        joining.begin([(push.variable, name) for push, name in self.kept(blocks[first.number])])
        if isinstance(ends, Branch):
            joining.asks(first.number, blocks[first.number], taken, self.asked)
        for before, step in pairwise(self.steps):
            block, call = blocks[step.number], came.get(before.number)
            is_last = step is others[-1] and self.onward is None
            forks = is_last and fork_of(block.terminator) is not None
            if not joining.called(block, call.results if call is not None else (), under=step.under, forks=forks):
                return False
            if isinstance(block.terminator, Branch) and not is_last:
                joining.asks(step.number, block, taken)
        return joining.is_balanced()

    def _early(self, needed: set[str]) -> list[Piece]:
        """The pieces of the statements that compute `needed`, one for each piece that has some of them."""
        kept: list[Early] = []
        wanted = set(needed)
        for each in reversed(self.statements):
            if wanted.intersection(writes(each[1].op)):
                wanted |= {*reads(each[1].op), *([] if each[2] is None else [each[2]])}
                kept.append(each)
        by_piece: dict[int, list[Early]] = {}
        for each in reversed(kept):
            by_piece.setdefault(id(each[0]), []).append(each)
        found = []
        for place, own in by_piece.items():
            others = [each for other, pairs in by_piece.items() if other != place for each in pairs]
            outside = needed.union(*(reads(statement.op) for _, statement, _ in others))
            outside |= {condition for _, _, condition in others if condition is not None}
            piece, _, condition = own[0]
            found.append(_piece(piece, tuple(statement for _, statement, _ in own), outside, condition))
        return found


def _piece(source: Piece, statements: tuple[Statement, ...], wanted: set[str], condition: str | None) -> Piece:
    """The speculative piece of some of the statements of `source`, which is there under a `condition`."""
    read: dict[str, None] = {}
    assigned: dict[str, None] = {}
    for statement in statements:
        operands = (name for name in reads(statement.op) if name not in source.shared and name not in assigned)
        read.update(dict.fromkeys(operands))
        assigned.update(dict.fromkeys(writes(statement.op)))
    return Piece(
        None,
        tuple(read),
        tuple(name for name in assigned if name in wanted),
        source.shared,
        checked_sites(statements),
        tapes=source.tapes,
        statements=statements,
        scope=source.scope,
        speculative=True,
        predicate=condition,
    )
