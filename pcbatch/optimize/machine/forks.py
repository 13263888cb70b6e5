"""Successive calls that do not need each other's results may be run by lanes of their own.

    b2: push node; node = left[node]            b2: push node; node_1 = node; node = left[node]
        pushjump b0, back to b3           -->       node_2 = right[node_1]   (speculative)
    b3: pop node; h1 = r; node = right[node]        pushjump b0, .., fork (node = node) -> s = r;
        push h1                                         (node = node_2) -> t = r; join b5
        pushjump b0, back to b4                 b3: ..  (as before)
    b4: pop h1; r = W @ [h1, r]; return         b4: ..  (as before)
                                                b5: what b3 and b4 do, of s and t (`join_blocks`)

What a later call is given is computed early, where the group begins: a slice of the statements in between, followed
back through stacks and copies. If one of these depends on what an earlier call gives, the group ends before it. So the
program in sequence stays as it is, but for what a later call needs that was saved before the group, which its first
block takes off the stack and saves again (`join_blocks.lifted`); a lane that forks computes a few cheap statements
twice. Statements that call what nothing is known of are not computed early, as they might be expensive. Calls in the
arms of branches that come together again are of the group, too: a lane forks those to which its conditions lead, which
are computed early.

The idea is that of Cilk's `spawn` and `sync` (Blumofe et al., PPoPP 1995), of futures (Halstead, TOPLAS 1985), and of
the batches that TensorFlow Fold and DyNet find in graphs (Looks et al., ICLR 2017; Neubig et al., NIPS 2017).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.dataflow import components
from pcbatch.ir.analysis.effects import live_at_start, onward, successors, written
from pcbatch.ir.analysis.parallel_call_groups import Group, Step, arms, course
from pcbatch.ir.analysis.speculatable import calls_opaque
from pcbatch.ir.machine import (
    Block,
    Branch,
    ForkedCall,
    Jump,
    Piece,
    Program,
    PushJump,
    Statement,
    Store,
    targets,
)
from pcbatch.ir.payload import NEGATION, Copy
from pcbatch.ir.program import Primitive, reads, writes
from pcbatch.ir.rewrite import renamed
from pcbatch.ir.types import TensorType
from pcbatch.optimize.machine import join_blocks
from pcbatch.optimize.machine.forked_calls import DEPENDS, OPAQUE, STORED, CallGroup, End, Unknown, Values, together
from pcbatch.optimize.machine.join_blocks import Joining

# -- groups ------------------------------------------------------------------------------------------------------------


HELD = ("register", "cached stack")
"""Storage kinds with separate tops, where arguments and results of forked calls are passed."""


WAITS = "lanes wait for each other in front of it (`pcbatch.sync()`)"
ON_STACKS = "a variable that it is given, gives or keeps lies on a stack"


class Finder:
    """Finds groups of calls, and `apart`: by block that makes one, why a call is not in the group of that before it.

    `program` is as it was given, but for first blocks of groups that take off a stack what a later call is given.
    """

    def __init__(self, program: Program):
        self.program = program
        self.apart: dict[int, str] = {}
        self._beneath: frozenset[str] = frozenset()
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

    def found(self, numbers: Iterable[int]) -> dict[int, CallGroup]:
        """The groups that begin in some blocks, from the first on; none begins inside another."""
        found: dict[int, CallGroup] = {}
        for number in numbers:
            if all(number not in group.covered for group in found.values()):
                group = self.group(number)
                if group is not None:
                    found[number] = group
        return found

    def group(self, first: int) -> CallGroup | None:
        """The group that begins at the end of a block, if there are two calls at least that one lane may make.

        Where a later call needs what was saved before the group, its first block takes that off its stack and saves it
        again, if the group has more calls by that.
        """
        others, self.apart = self.apart, {}
        group = self._as_it_is(first)
        while (
            lifted := join_blocks.lifted(self.program, first, self._beneath, self.live, self._fresh_name)
        ) is not None:
            before, self.program = (self.program, self.apart), lifted
            self.apart = {}
            longer = self._as_it_is(first)
            if longer is None or (group is not None and len(longer.calls) <= len(group.calls)):
                self.program, self.apart = before
                break
            group = longer
        self.apart = {**others, **self.apart}
        return group

    def _as_it_is(self, first: int) -> CallGroup | None:
        """The group, without a change of the first block; sets `_beneath`, what it would have to take off stacks."""
        self._beneath = frozenset()
        end = self.program.blocks[first].terminator
        if not isinstance(end, PushJump | Branch):
            return None
        if isinstance(end, Branch) and (self.program.blocks[first].pushes or arms(self.program, end) is None):
            return None
        group = CallGroup(lambda name: self._fresh(group, name))
        for place in reversed(self._followed(group, first)):
            for number in group.shortened(place):
                self.apart[number] = ON_STACKS
            if group.most < 2 or group.is_in_one_arm:
                return None
            if self._can_join(group):
                for call in group.calls:
                    group.storage |= {slot: "slot" for slot, _ in call.results}
                return group
        return None

    def _followed(self, group: CallGroup, first: int) -> list[End]:
        """Take calls into the group for as long as it goes; gives where it may end."""
        values, ends = Values(), list[End]()
        branched = values  # what was known at the end of the last block that branches
        left: list[Values] = []  # what is known at the ends of its arms
        under: tuple[int, bool] | None = None
        for place, step in enumerate(course(self.program, first)):
            block = self.program.blocks[step.number]
            if step.under != under:
                left += [] if under is None else [values]
                if step.under is None:
                    if any(number in group.blocks for number in _in_arms(group.steps, under)):
                        ends.append(End(place, len(group.calls), step.number))
                    merged = left[0].met(left[1] if len(left) > 1 else branched)
                    if merged is None:
                        break
                    values = merged
                else:
                    values = branched.copy()
                under = step.under
            group.steps.append(step)
            if place and not self._goes_on(group, values, step):
                break
            if isinstance(block.terminator, Branch):
                self._leave(group, values, block, is_first=False)
                branched, left = values, []
                self._asks(group, values, step.number)
            elif isinstance(block.terminator, PushJump):
                if not self._takes(group, values, step):
                    break
                if under is None:
                    ends.append(End(place + 2, len(group.calls), None))
            elif place:
                self._leave(group, values, block, is_first=False)
        return [end for end in ends if end.steps <= len(group.steps)]

    def _goes_on(self, group: CallGroup, values: Values, step: Step) -> bool:
        """Follow the beginning of a block; return whether the group can go on behind it."""
        block = self.program.blocks[step.number]
        if block.sync:
            if isinstance(block.terminator, PushJump):
                self.apart[step.number] = WAITS
            return False
        end = block.terminator
        if isinstance(end, Jump) and isinstance(end.target, int):
            following = self.program.blocks[end.target]
            if following.sync and isinstance(following.terminator, PushJump):
                self.apart[end.target] = WAITS
        self._follow(group, values, block, step.under)
        return True

    def _asks(self, group: CallGroup, values: Values, number: int) -> None:
        """Find the conditions under which a lane goes to the arms behind a block, if they can be computed early."""
        block = self.program.blocks[number]
        assert isinstance(block.terminator, Branch)
        asked = block.terminator.condition
        condition = values.of(asked)
        if isinstance(condition, Unknown):
            group.unasked[number] = condition
        else:
            group.conditions[number, True] = condition
            group.conditions[number, False] = fails = self._fresh(group, asked)
            group.types[fails] = TensorType("bool")
            op = Primitive((fails,), (condition,), NEGATION)
            scope = next((item.scope for item in block.body if isinstance(item, Piece)), block.function)
            group.statements.append((Piece(None, (condition,), (fails,), scope=scope), Statement(op), None))

    def _takes(self, group: CallGroup, values: Values, step: Step) -> bool:
        """Return whether the call that a block makes is one of the group; noted if it is not."""
        block, is_first = self.program.blocks[step.number], len(group.steps) == 1
        end = block.terminator
        assert isinstance(end, PushJump)
        condition = None if step.under is None else group.conditions.get(step.under)
        if not isinstance(end.target, int):
            return False
        if condition is None and step.under is not None:
            call: ForkedCall | Unknown = group.unasked[step.under[0]].asked
        else:
            call = self._call(group, values, end)
        if isinstance(call, Unknown):
            if group.calls:
                self.apart[step.number] = call.why
                self._beneath = call.beneath if call.is_beneath else frozenset()
            return False
        group.calls.append(replace(call, condition=condition))
        group.blocks.append(step.number)
        self._leave(group, values, block, is_first=is_first)
        self._return(values, end)
        return True

    def _can_join(self, group: CallGroup) -> bool:
        """Return whether a block does the work behind and between the calls."""
        storage = self.program.storage
        for step in group.steps:
            block = self.program.blocks[step.number]
            names = (*block.pops, *(push.variable for push in block.pushes), *written(block))
            if any(storage.get(name, HELD[0]) not in HELD for name in names):
                return False
        saved = replace(group, before={}, saved={}, types={}, storage={}, fresh=lambda name: name)
        return saved.joined(self.program.blocks, Joining(lambda name: name))

    def _call(self, group: CallGroup, values: Values, end: PushJump) -> ForkedCall | Unknown:
        """Return the call with its arguments, or the reason why they are not known."""
        assert isinstance(end.target, int)
        storage = self.program.storage
        results = sorted(self.live[end.back] & self.changed(end.target))
        # On some path a result may be what was given: nobody reads it there.
        read = self.read(end.target).union(results)
        needed = sorted(self.live[end.target] & read & storage.keys() - self.fixed)
        given = [(name, values.of(name)) for name in needed]
        if any(storage[name] not in HELD for name in (*needed, *results) if name in storage):
            return Unknown(frozenset((ON_STACKS,)))
        unknown = together(value for _, value in given)
        if unknown is not None:
            return unknown
        known = tuple((name, value) for name, value in given if isinstance(value, str))
        slots = tuple((self._fresh(group, name), name) for name in results)
        return ForkedCall(known, slots)

    def _follow(self, group: CallGroup, values: Values, block: Block, under: tuple[int, bool] | None) -> None:
        """Follow the pops and the body of a block between two calls: the names' meanings after it."""
        condition = None if under is None else group.conditions.get(under)
        unasked = None if under is None or condition is not None else group.unasked[under[0]]
        for name in block.pops:
            stack = values.stacks.get(name)
            values.names[name] = stack.pop() if stack else Unknown.saved(name)
        values.before = dict(values.names)
        for item in block.body:
            if isinstance(item, Store):
                value = together(map(values.of, (item.array, *item.indices, item.value)))
                values.names[item.array] = Unknown.because(STORED) if value is None else value
            elif item.predicate is not None or unasked is not None:
                values.names.update(dict.fromkeys(item.writes, unasked or Unknown.because(DEPENDS)))
            else:
                for statement in item.statements:
                    self._statement(group, values, item, statement, condition)

    def _statement(
        self, group: CallGroup, values: Values, piece: Piece, statement: Statement, condition: str | None
    ) -> None:
        op = statement.op
        operands = {name: values.of(name) for name in reads(op) if name not in piece.shared}
        unknown = together(operands.values())
        if not isinstance(op, Primitive) or calls_opaque(op, self.program.externs.get(piece.scope, ())):
            unknown = together((unknown or Unknown(), Unknown.because(OPAQUE)))
        if unknown is not None:
            values.names.update(dict.fromkeys(writes(op), unknown))
            return
        assert isinstance(op, Primitive)
        if isinstance(op.code, Copy) and op.inputs[0] in operands:
            values.names[op.outputs[0]] = operands[op.inputs[0]]
            return
        fresh = {name: self._fresh(group, name) for name in writes(op)}
        mapping = {name: value for name, value in operands.items() if isinstance(value, str)}
        group.statements.append((piece, replace(statement, op=renamed(op, mapping, fresh)), condition))
        values.names.update(fresh)

    def _fresh_name(self, name: str) -> str:
        number = 1
        while (fresh := f"{name}_{number}") in self.taken:
            number += 1
        self.taken.add(fresh)
        return fresh

    def _fresh(self, group: CallGroup, name: str) -> str:
        fresh = self._fresh_name(name)
        if name in self.program.types:
            group.types[fresh] = self.program.types[name]
        return fresh

    def _leave(self, group: CallGroup, values: Values, block: Block, *, is_first: bool) -> None:
        """The values that the pushes of a block save."""
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

    def _return(self, values: Values, end: PushJump) -> None:
        """Forget the values of variables that the call may change."""
        assert isinstance(end.target, int)
        values.names.update(dict.fromkeys(self.changed(end.target), Unknown.because(DEPENDS)))

    def read(self, entry: int) -> frozenset[str]:
        """The variables that a call from block `entry` on may read: those of its callers alone it need not be given."""
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


def _in_arms(steps: Sequence[Step], under: tuple[int, bool] | None) -> Iterator[int]:
    """The blocks in the arms of a branch."""
    return (step.number for step in steps if under is not None and step.under is not None and step.under[0] == under[0])


def called_blocks(program: Program, entry: int) -> set[int]:
    """The blocks that a call which begins at block `entry` can run, those of calls in it included."""
    found: set[int] = set()
    waiting = [entry]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            end = program.blocks[number].terminator
            waiting += {*targets(end), *onward(end)}
    return found


def _changing(block: Block) -> Iterator[str]:
    """The variables that a block writes, pops or pushes."""
    yield from written(block)
    yield from block.pops
    yield from (push.variable for push in block.pushes)


def _chosen(block: Block) -> Iterator[Piece]:
    """Return the pieces of a block that keep old values where their predicate does not hold."""
    yield from (item for item in block.body if isinstance(item, Piece) and item.predicate is not None)


# -- the pass ----------------------------------------------------------------------------------------------------------


def find_forks(program: Program, only: Collection[int] | None = None) -> Program:
    """Mark each group of independent calls that may be forked; values that nothing writes then lie by example.

    Where it is said, `only` of groups that begin in some blocks.
    """
    finder = Finder(program)
    found = finder.found(range(len(program.blocks)) if only is None else sorted(only))
    if not found:
        return program
    program = finder.program
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


def apart(program: Program) -> dict[int, str]:
    """Reasons why calls right behind another one are not in its group, by block."""
    finder = Finder(program)
    finder.found(range(len(program.blocks)))
    return finder.apart


RECURSES_NOT = "what is called neither recurses nor loops on the way to something expensive"
CHEAP = "what is called comes to nothing expensive, so nothing is won by doing it for more lanes at once"


def loss(program: Program, group: Group, expensive: Collection[int]) -> str | None:
    """The reason why forking a group does not pay; None where a call recurses or loops, and comes to `expensive` code.

    To fork a call costs half a microsecond of bookkeeping, to make it in sequence a third: what is won is that
    expensive blocks run for more lanes at once.
    """
    edges, comes = successors(program), False
    for member in group.members:
        blocks = called_blocks(program, member.entry)
        graph = {number: [place for place in edges[number] if place in blocks] for number in blocks}
        repeats = any(len(each) > 1 or each[0] in graph[each[0]] for each in components(graph))
        if not blocks.isdisjoint(expensive):
            comes = True
            if repeats:
                return None
    return RECURSES_NOT if comes else CHEAP
