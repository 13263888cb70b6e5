"""Calls that follow each other, none of which needs what another gives, may be run by lanes of their own.

    b2: push node; node = left[node]            b2: push node; node_1 = node; node = left[node]
        pushjump b0, back to b3           -->       node_2 = right[node_1]   (speculative)
    b3: pop node; h1 = r; node = right[node]        pushjump b0, .., fork (node = node) -> s = r;
        push h1                                         (node = node_2) -> t = r; join b5
        pushjump b0, back to b4                 b3: ..  (as before)
    b4: pop h1; r = W @ [h1, r]; return         b4: ..  (as before)
                                                b5: what b3 and b4 do, of s and t (`joins`)

What a later call is given is computed early, where the group begins: a slice of the statements in between, followed
back through stacks and copies. If one of these depends on what an earlier call gives, the group ends before it. So the
program in sequence is not changed at all; a lane that forks computes a few cheap statements twice. Statements that call
what nothing is known of are not computed early, as they might be expensive.

The idea is that of Cilk's `spawn` and `sync` (Blumofe et al., PPoPP 1995), of futures (Halstead, TOPLAS 1985), and of
the batches that TensorFlow Fold and DyNet find in graphs (Looks et al., ICLR 2017; Neubig et al., NIPS 2017).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pcbatch.ir.analysis.callgraph import components
from pcbatch.ir.analysis.cheap_code import calls_opaque
from pcbatch.ir.analysis.effects import behind, successors, written
from pcbatch.ir.analysis.forks import Group
from pcbatch.ir.analysis.live_tops import live_at_start
from pcbatch.ir.machine import (
    Block,
    Fork,
    ForkedCall,
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


def find_forks(program: Program) -> Program:
    """Say of each group of independent calls that it may be forked; what nothing writes then lies by example."""
    finder = _Finder(program)
    found: dict[int, _Group] = {}
    for number in range(len(program.blocks)):
        if all(number not in group.blocks for group in found.values()):
            group = finder.group(number)
            if group is not None:
                found[number] = group
    if not found:
        return program
    storage = {name: "example" if name in finder.fixed else kind for name, kind in program.storage.items()}
    blocks, types = list(program.blocks), dict(program.types)
    for place, (number, group) in enumerate(found.items()):
        blocks[number] = group.rewritten(program.blocks[number], len(program.blocks) + place)
    for place, group in enumerate(found.values()):
        blocks.append(group.join(blocks, f"b{_last_number(program) + 1 + place}"))
        storage |= group.storage
        types |= group.types
    return replace(program, blocks=tuple(blocks), types=types, storage=storage)


def _last_number(program: Program) -> int:
    """The largest number in a label of a block; they are `b0`, `b1` and so on."""
    return max(int(block.label.removeprefix("b")) for block in program.blocks)


@dataclass
class _Values:
    """What names stand for, in terms of the end of the group's first block; None for what is not known there."""

    names: dict[str, str | None] = field(default_factory=dict)
    stacks: dict[str, list[str | None]] = field(default_factory=dict)
    before: dict[str, str | None] = field(default_factory=dict)
    """`names` as they were before the body of the present block, after its pops."""

    def of(self, name: str) -> str | None:
        """The name, at the end of the first block, of the value of `name` now."""
        return self.names.get(name, name)


@dataclass
class _Group:
    """A group in the making: its calls, and the statements by which their arguments are computed early."""

    fresh: Fresh
    calls: list[ForkedCall] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    back: int = -1
    """The block to which the last call comes back."""
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
        numbers = [*self.blocks[1:], self.back]
        for call, number in zip(self.calls, numbers, strict=True):
            forks = number == self.back and _forks(blocks[number])
            said = joining.called(blocks[number], call.results, forks=forks)
            assert said, "the group was found to be one that can be joined"
        return joining.end(blocks[self.back], label)

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
        for own in by_piece.values():
            found.append(_piece(own[0][0], tuple(statement for _, statement in own), wanted))
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


class _Finder:
    def __init__(self, program: Program):
        self.program = program
        self.live = live_at_start(program)
        self.taken = {
            *program.types,
            *program.shared,
            *program.externs,
            *(name for names in program.externs.values() for name in names),
        }
        self._changed: dict[int, frozenset[str]] = {}

    @cached_property
    def fixed(self) -> frozenset[str]:
        """The parameters that nothing writes, pushes or pops, and that are no results: the same for a whole example."""
        program = self.program
        changing = {name for block in program.blocks for name in _changing(block)}
        shown = {name for site in program.faults for name in site.arguments}
        kept = changing | shown | set(program.results)
        return frozenset(name for name in program.parameters if name not in kept)

    def group(self, first: int) -> _Group | None:
        """The group that begins with the call of a block, if there are two calls at least."""
        program, values = self.program, _Values()
        group = _Group(lambda name: self._fresh(group, name))
        number = first
        while True:
            block = program.blocks[number]
            end = block.terminator
            if not isinstance(end, PushJump) or not isinstance(end.target, int) or number in group.blocks:
                break
            if number != first and (block.sync or not self._follow(group, values, block)):
                break
            call = self._call(group, values, end)
            if call is None:
                break
            group.calls.append(call)
            group.blocks.append(number)
            self._leave(group, values, block, is_first=number == first)
            self._return(values, end)
            number = group.back = end.back
        while len(group.calls) > 1 and not self._can_join(group):
            group.calls.pop()
            group.back = group.blocks.pop()
        return group if len(group.calls) > 1 else None

    def _can_join(self, group: _Group) -> bool:
        """Whether there is a block that does what is done behind and between the calls."""
        storage = self.program.storage
        first, *others = [self.program.blocks[number] for number in (*group.blocks, group.back)]
        for block in (first, *others):
            names = (*block.pops, *(push.variable for push in block.pushes), *written(block))
            if any(storage.get(name, HELD[0]) not in HELD for name in names):
                return False
        joining = Joining(lambda name: name)
        joining.begin([(push.variable, push.variable) for push in first.pushes])
        return all(joining.called(*each) for each in zip(others, (call.results for call in group.calls), strict=True))

    def _call(self, group: _Group, values: _Values, end: PushJump) -> ForkedCall | None:
        """The call with what it is given, None where that is not known, or lies in stacks."""
        assert isinstance(end.target, int)
        storage = self.program.storage
        needed = sorted(self.live[end.target] & storage.keys() - self.fixed)
        given = [(name, values.of(name)) for name in needed]
        results = sorted(self.live[end.back] & self.changed(end.target))
        if any(storage[name] not in HELD for name in (*needed, *results) if name in storage):
            return None
        known = tuple((name, value) for name, value in given if value is not None)
        if len(known) < len(given):
            return None
        slots = tuple((self._fresh(group, name), name) for name in results)
        group.storage |= {slot: "slot" for slot, _ in slots}
        return ForkedCall(known, slots)

    def _follow(self, group: _Group, values: _Values, block: Block) -> bool:
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
        return True

    def _statement(self, group: _Group, values: _Values, piece: Piece, statement: Statement) -> None:
        op = statement.op
        operands = {name: values.of(name) for name in reads(op) if name not in piece.shared}
        known = isinstance(op, Primitive) and None not in operands.values()
        if not known or calls_opaque(op, self.program.externs.get(piece.scope, ())):
            values.names.update(dict.fromkeys(writes(op)))
            return
        if isinstance(op, Primitive) and isinstance(op.code, Copy) and op.inputs[0] in operands:
            values.names[op.outputs[0]] = operands[op.inputs[0]]
            return
        fresh = {name: self._fresh(group, name) for name in writes(op)}
        mapping = {name: value for name, value in operands.items() if value is not None}
        group.statements.append((piece, replace(statement, op=renamed(op, mapping, fresh))))
        values.names.update(fresh)

    def _fresh(self, group: _Group, name: str) -> str:
        number = 1
        while (fresh := f"{name}_{number}") in self.taken:
            number += 1
        self.taken.add(fresh)
        if name in self.program.types:
            group.types[fresh] = self.program.types[name]
        return fresh

    def _leave(self, group: _Group, values: _Values, block: Block, *, is_first: bool) -> None:
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

    def changed(self, entry: int) -> frozenset[str]:
        """The variables that a call of the function that begins at block `entry` may change, calls in it included."""
        if entry not in self._changed:
            blocks = [self.program.blocks[number] for number in called_blocks(self.program, entry)]
            names = {name for block in blocks for name in _changing(block)}
            self._changed[entry] = frozenset(names & self.program.storage.keys())
        return self._changed[entry]


def _forks(block: Block) -> bool:
    return isinstance(block.terminator, PushJump) and block.terminator.fork is not None


def pays(program: Program, group: Group, expensive: Collection[int]) -> bool:
    """Whether a call of a group can come to one of the `expensive` blocks, and recurses or loops on the way.

    To fork a call costs half a microsecond of bookkeeping, to make it in sequence a third: what is won is that
    expensive blocks run for more lanes at once.
    """
    edges = successors(program)
    for member in group.members:
        blocks = called_blocks(program, member.entry)
        graph = {number: [place for place in edges[number] if place in blocks] for number in blocks}
        repeats = any(len(each) > 1 or each[0] in graph[each[0]] for each in components(graph))
        if repeats and not blocks.isdisjoint(expensive):
            return True
    return False


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
