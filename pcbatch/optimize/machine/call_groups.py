"""Groups of calls that follow each other, none of which needs what another gives, and what is computed early for them.

What a later call is given is computed where the group begins: a slice of the statements in between, followed back
through stacks and copies. If one of these depends on what an earlier call gives, the group ends before it. Statements
that call what nothing is known of are not computed early, as they might be expensive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.cheap_code import calls_opaque
from pcbatch.ir.analysis.effects import behind, written
from pcbatch.ir.analysis.forks import blocks_between
from pcbatch.ir.analysis.live_tops import live_at_start
from pcbatch.ir.machine import (
    Block,
    Fork,
    ForkedCall,
    Jump,
    Piece,
    Program,
    Push,
    PushJump,
    Statement,
    Store,
    checked_sites,
    targets,
)
from pcbatch.ir.payload import Copy
from pcbatch.ir.program import Primitive, reads, writes
from pcbatch.ir.rewrite.renaming import renamed
from pcbatch.ir.types import Type
from pcbatch.optimize.machine.joins import Fresh, Joining, copies

HELD = ("register", "cached stack")
"""Storage kinds whose tops lie apart: what a forked call is given and gives is handed over there."""


@dataclass
class _Values:
    """What names stand for, in terms of the end of the group's first block; None for what is not known there."""

    names: dict[str, str | None] = field(default_factory=dict)
    stacks: dict[str, list[str | None]] = field(default_factory=dict)
    before: dict[str, str | None] = field(default_factory=dict)
    """`names` as they were before the body of the present block, after its pops."""
    opaque: set[str] = field(default_factory=set)
    """Names of which nothing is known since nothing is known of what computes them."""

    def of(self, name: str) -> str | None:
        """The name, at the end of the first block, of the value of `name` now."""
        return self.names.get(name, name)


@dataclass
class CallGroup:
    """A group in the making: its calls, and the statements by which their arguments are computed early."""

    fresh: Fresh
    calls: list[ForkedCall] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    links: list[list[int]] = field(default_factory=list)
    """For each call the blocks between it and the next one, that which makes it included; of the last the first."""
    before: dict[str, str] = field(default_factory=dict)
    """Variables whose value before the first block's body is needed, and the names that keep it."""
    saved: dict[int, str] = field(default_factory=dict)
    """The names that keep what the first block saves by a name, by the place among its pushes."""
    statements: list[tuple[Piece, Statement]] = field(default_factory=list)
    types: dict[str, Type] = field(default_factory=dict)
    storage: dict[str, str] = field(default_factory=dict)
    """That of names which are there for the join block."""

    def rewritten(self, block: Block, join: int) -> Block:
        """The first block, which computes all that the calls are given, and keeps what it would save."""
        assert isinstance(block.terminator, PushJump)
        saved = [(kept, str(push.saved)) for push, kept in self.kept(block) if push.saved is not None]
        given = {name for call in self.calls for _, name in call.given}
        early = self._early(given)
        needed = given | {name for item in early for name in item.reads} | self.storage.keys()
        before = [(kept, name) for name, kept in self.before.items() if kept in needed]
        body = (
            *copies(block, before, speculative=True),
            *block.body,
            *early,
            *copies(block, saved, speculative=True),
        )
        return replace(block, body=body, terminator=replace(block.terminator, fork=Fork(tuple(self.calls), join)))

    def kept(self, block: Block) -> list[tuple[Push, str]]:
        """What the first block pushes, each with the register that keeps it while the lane waits."""
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
        joining.begin([(push.variable, name) for push, name in self.kept(blocks[self.blocks[0]])])
        for block, results in self.behind(blocks):
            forks = block is blocks[self.back] and _forks(block)
            said = joining.called(block, results, forks=forks)
            assert said, "the group was found to be one that can be joined"
        return joining.end(blocks[self.back], label)

    @property
    def back(self) -> int:
        """The block to which the last call comes back."""
        return self.links[-1][0]

    def behind(self, blocks: Sequence[Block]) -> Iterator[tuple[Block, Sequence[tuple[str, str]]]]:
        """The blocks behind the calls in their order, each with what the call has given that comes back to it."""
        for call, link in zip(self.calls, self.links, strict=True):
            for place, number in enumerate(link):
                yield blocks[number], call.results if place == 0 else ()

    def without_last(self) -> int:
        """Leave out the last call; gives the number of the block that makes it."""
        self.calls.pop()
        self.links.pop()
        del self.links[-1][1:]
        return self.blocks.pop()

    def _early(self, needed: set[str]) -> list[Piece]:
        """The pieces of the statements that compute `needed`, one for each piece that has some of them."""
        kept: list[tuple[Piece, Statement]] = []
        wanted = set(needed)
        for piece, statement in reversed(self.statements):
            if wanted.intersection(writes(statement.op)):
                wanted |= set(reads(statement.op))
                kept.append((piece, statement))
        by_piece: dict[int, list[tuple[Piece, Statement]]] = {}
        for each in reversed(kept):
            by_piece.setdefault(id(each[0]), []).append(each)
        found = []
        for place, own in by_piece.items():
            others = [each for other, pairs in by_piece.items() if other != place for each in pairs]
            outside = needed.union(*(reads(statement.op) for _, statement in others))
            found.append(_piece(own[0][0], tuple(statement for _, statement in own), outside))
        return found


def _piece(source: Piece, statements: tuple[Statement, ...], wanted: set[str]) -> Piece:
    """The speculative piece of some of the statements of `source`."""
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
    )


DEPENDS = "what it is given depends on what the call before it gives"
OPAQUE = "what it is given is computed by code of which nothing is known, which is not done early"
WAITS = "lanes wait for each other in front of it (`pcbatch.sync()`)"
ON_STACKS = "a variable that it is given, gives or keeps lies on a stack"


class Finder:
    """Finds groups of calls, and `apart`: by block that makes one, why a call is not in the group of that before it."""

    def __init__(self, program: Program):
        self.program = program
        self.apart: dict[int, str] = {}
        self.live = live_at_start(program)
        self.taken = {
            *program.types,
            *program.shared,
            *program.externs,
            *(name for names in program.externs.values() for name in names),
        }
        self._changed: dict[int, frozenset[str]] = {}
        self._read: dict[int, frozenset[str]] = {}

    @cached_property
    def fixed(self) -> frozenset[str]:
        """The parameters that nothing writes, pushes or pops, and that are no results: the same for a whole example."""
        program = self.program
        changing = {name for block in program.blocks for name in _changing(block)}
        shown = {name for site in program.faults for name in site.arguments}
        kept = changing | shown | set(program.results)
        return frozenset(name for name in program.parameters if name not in kept)

    def group(self, first: int) -> CallGroup | None:
        """The group that begins with the call of a block, if there are two calls at least."""
        program, values = self.program, _Values()
        group = CallGroup(lambda name: self._fresh(group, name))
        number, link = first, [first]
        while True:
            block = program.blocks[number]
            end = block.terminator
            if number != first and isinstance(end, Jump) and isinstance(end.target, int):
                following = program.blocks[end.target]
                if following.sync and isinstance(following.terminator, PushJump):
                    self.apart[end.target] = WAITS
            if not isinstance(end, PushJump) or not isinstance(end.target, int) or number in group.blocks:
                break
            if number != first and any(program.blocks[each].sync for each in link):
                self.apart[number] = WAITS
                break
            for each in link if number != first else ():
                self._follow(group, values, program.blocks[each])
                if each != number:
                    self._leave(group, values, program.blocks[each], is_first=False)
            call = self._call(group, values, end)
            if isinstance(call, str):
                if number != first:
                    self.apart[number] = call
                break
            if number != first:
                group.links[-1] = link
            group.calls.append(call)
            group.blocks.append(number)
            group.links.append([end.back])
            self._leave(group, values, block, is_first=number == first)
            self._return(values, end)
            link = blocks_between(program, end.back)
            number = link[-1]
        while len(group.calls) > 1 and not self._can_join(group):
            self.apart[group.without_last()] = ON_STACKS
        return group if len(group.calls) > 1 else None

    def _can_join(self, group: CallGroup) -> bool:
        """Whether there is a block that does what is done behind and between the calls."""
        storage = self.program.storage
        first = self.program.blocks[group.blocks[0]]
        others = list(group.behind(self.program.blocks))
        for block in (first, *(block for block, _ in others)):
            names = (*block.pops, *(push.variable for push in block.pushes), *written(block))
            if any(storage.get(name, HELD[0]) not in HELD for name in names):
                return False
        joining = Joining(lambda name: name)
        joining.begin([(push.variable, push.variable) for push in first.pushes])
        return all(joining.called(*each) for each in others)

    def _call(self, group: CallGroup, values: _Values, end: PushJump) -> ForkedCall | str:
        """The call with what it is given, or why that cannot be said."""
        assert isinstance(end.target, int)
        storage = self.program.storage
        results = sorted(self.live[end.back] & self.changed(end.target))
        # On some path a result may be what was given: nobody reads it there.
        read = self.read(end.target).union(results)
        needed = sorted(self.live[end.target] & read & storage.keys() - self.fixed)
        given = [(name, values.of(name)) for name in needed]
        if any(storage[name] not in HELD for name in (*needed, *results) if name in storage):
            return ON_STACKS
        known = tuple((name, value) for name, value in given if value is not None)
        if len(known) < len(given):
            unknown = {name for name, value in given if value is None}
            return OPAQUE if unknown <= values.opaque else DEPENDS
        slots = tuple((self._fresh(group, name), name) for name in results)
        group.storage |= {slot: "slot" for slot, _ in slots}
        return ForkedCall(known, slots)

    def _follow(self, group: CallGroup, values: _Values, block: Block) -> None:
        """Go through the pops and the body of a block between two calls: what names stand for after it."""
        for name in block.pops:
            stack = values.stacks.get(name)
            values.names[name] = stack.pop() if stack else None
        values.before = dict(values.names)
        for item in block.body:
            if isinstance(item, Store):
                values.names[item.array] = None
            elif item.predicate is not None:
                values.names.update(dict.fromkeys(item.writes))
            else:
                for statement in item.statements:
                    self._statement(group, values, item, statement)

    def _statement(self, group: CallGroup, values: _Values, piece: Piece, statement: Statement) -> None:
        op = statement.op
        operands = {name: values.of(name) for name in reads(op) if name not in piece.shared}
        known = isinstance(op, Primitive) and None not in operands.values()
        is_opaque = calls_opaque(op, self.program.externs.get(piece.scope, ()))
        if not known or is_opaque:
            values.names.update(dict.fromkeys(writes(op)))
            unknown = {name for name, value in operands.items() if value is None}
            if unknown <= values.opaque and (unknown or is_opaque):
                values.opaque |= set(writes(op))
            return
        if isinstance(op, Primitive) and isinstance(op.code, Copy) and op.inputs[0] in operands:
            values.names[op.outputs[0]] = operands[op.inputs[0]]
            return
        fresh = {name: self._fresh(group, name) for name in writes(op)}
        mapping = {name: value for name, value in operands.items() if value is not None}
        group.statements.append((piece, replace(statement, op=renamed(op, mapping, fresh))))
        values.names.update(fresh)

    def _fresh(self, group: CallGroup, name: str) -> str:
        number = 1
        while (fresh := f"{name}_{number}") in self.taken:
            number += 1
        self.taken.add(fresh)
        if name in self.program.types:
            group.types[fresh] = self.program.types[name]
        return fresh

    def _leave(self, group: CallGroup, values: _Values, block: Block, *, is_first: bool) -> None:
        """What the pushes of a block save."""
        body = set(written(block))
        for push in block.pushes:
            if push.saved is not None:
                value = values.of(push.saved)
            elif push.variable not in body:
                value = values.of(push.variable)
            elif not is_first:
                value = values.before.get(push.variable, push.variable)
            else:
                if push.variable not in group.before:
                    group.before[push.variable] = self._fresh(group, push.variable)
                value = group.before[push.variable]
            values.stacks.setdefault(push.variable, []).append(value)

    def _return(self, values: _Values, end: PushJump) -> None:
        """What the call may change stands for nothing that is known."""
        assert isinstance(end.target, int)
        values.names.update(dict.fromkeys(self.changed(end.target)))

    def read(self, entry: int) -> frozenset[str]:
        """What a call that begins at block `entry` may read: others, that only its callers do, it need not be given."""
        if entry not in self._read:
            blocks = [self.program.blocks[number] for number in called_blocks(self.program, entry)]
            stored = {item.array for block in blocks for item in block.body if isinstance(item, Store)}
            found = stored.union(*map(effects.read, blocks), *(item.writes for b in blocks for item in _chosen(b)))
            self._read[entry] = frozenset(found)
        return self._read[entry]

    def changed(self, entry: int) -> frozenset[str]:
        """The variables that a call of the function that begins at block `entry` may change, calls in it included."""
        if entry not in self._changed:
            blocks = [self.program.blocks[number] for number in called_blocks(self.program, entry)]
            names = {name for block in blocks for name in _changing(block)}
            self._changed[entry] = frozenset(names & self.program.storage.keys())
        return self._changed[entry]


def _forks(block: Block) -> bool:
    return isinstance(block.terminator, PushJump) and block.terminator.fork is not None


def called_blocks(program: Program, entry: int) -> set[int]:
    """The blocks that a call which begins at block `entry` can run, those of calls in it included."""
    found: set[int] = set()
    waiting = [entry]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            end = program.blocks[number].terminator
            waiting += [*targets(end), *(behind(end) if isinstance(end, PushJump) else [])]
    return found


def _changing(block: Block) -> Iterator[str]:
    """The variables that a block writes, pops or pushes."""
    yield from written(block)
    yield from block.pops
    yield from (push.variable for push in block.pushes)


def _chosen(block: Block) -> Iterator[Piece]:
    """The pieces of a block that leave what was before where their predicate does not hold."""
    yield from (item for item in block.body if isinstance(item, Piece) and item.predicate is not None)
