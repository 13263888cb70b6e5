"""Arms of a branch become part of the block before it, each of their items under a predicate.

    b4: piece (t1, a, pivot) -> i, t3       b4: piece (t1, a, pivot) -> i, t3
        branch t3 b5 b6                         piece (t3) -> b4_if
    b5: piece (a, middle, i) -> t4, t5          piece (a, middle, i) -> t4, t5      if b4_if
        store a[i] = t4               -->       store a[i] = t4                     if b4_if
        jump b6                                 piece (i) -> t1
    b6: piece (i) -> t1                         jump b3, turn
        jump b3, turn

If-conversion of "cfg" IR chooses between values, so its arms must be operators that can neither fail nor surprise. Here
an arm is what it costs (`costs.device`), by the types of its values: it may divide, look up, store and fail, for what a
predicate leaves out has no effect. Every lane keeps its steps, the place of its fault, and which fault is first. What
follows on one block only becomes its end. (Allen, Kennedy, Porterfield, Warren, "Conversion of control dependence to
data dependence", POPL 1983; Mahlke, Lin, Chen, Hank, Bringmann, "Effective compiler support for predicated execution
using the hyperblock", MICRO 1992.)

Blocks keep their numbers; lanes come to those no more that have become part of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.scope import variables_of_pieces
from pcbatch.ir.machine import (
    Block,
    Branch,
    FaultSite,
    Item,
    Jump,
    LaneStatus,
    Piece,
    Program,
    PushJump,
    Return,
    Statement,
    Terminator,
    fork_of,
    targets,
)
from pcbatch.ir.payload import NEGATION, Copy
from pcbatch.ir.program import Primitive
from pcbatch.ir.types import TensorType
from pcbatch.optimize.machine.block_order import order_blocks
from pcbatch.optimize.machine.dead_writes import mark_dead_writes
from pcbatch.runtime.costs.device import CPU, Device


@dataclass(frozen=True)
class Predication:
    """The arms that are computed for all lanes; with `always` all that can be, whatever they cost."""

    device: Device = CPU
    always: bool = False

    def converted(self, program: Program, costs: Sequence[float]) -> Program:
        """The program with arms under predicates; `costs` is the work of a row of each block."""
        forks = any(fork_of(block.terminator) is not None for block in program.blocks)
        records = any(fault.status == LaneStatus.OK for fault in program.faults)
        if forks or records:  # what `pcbatch.debug` records of a lane is kept at the end of a block that it leaves
            return program
        limit = float("inf") if self.always else self.device.predicated_work
        converting = _Converting(program, [*costs], limit)
        while converting.changes_something():
            pass
        if converting.program is program:
            return program
        changed = mark_dead_writes(converting.program)
        return order_blocks(changed) if changed.order else changed  # once: both look at the whole program


PREDICATION = Predication()


class _Converting:
    """A program in the making, with the present cost of a row of every block."""

    def __init__(self, program: Program, costs: list[float], limit: float):
        self.program, self.costs, self.limit = program, costs, limit
        self.taken = {
            *variables_of_pieces(program),
            *program.shared,
            *(n for each in program.externs.values() for n in each),
        }
        self.own: set[str] = set()  # the predicates that were made here: each has one piece that writes it
        pieces = [item for block in program.blocks for item in block.body if isinstance(item, Piece)]
        self.is_generated = any(piece.function is not None for piece in pieces)

    def changes_something(self) -> bool:
        """Make one block of some; False where nothing is left to be done."""
        arrivals = _arrivals(self.program)
        for number in sorted(effects.reachable(self.program)):
            block = self.program.blocks[number]
            longer = self._with_arms(number, block, arrivals) or self._with_rest(number, block, arrivals)
            if longer is not None:
                blocks = (longer if place == number else each for place, each in enumerate(self.program.blocks))
                self.program = replace(self.program, blocks=tuple(blocks))
                return True
        return False

    # -- arms ----------------------------------------------------------------------------------------------------------

    def _with_arms(self, number: int, block: Block, arrivals: Counter[int]) -> Block | None:
        """The block with the arms of its branch, one of them at least; None where that cannot be or does not pay."""
        branch = block.terminator.target if isinstance(block.terminator, Jump) else block.terminator
        if not isinstance(branch, Branch) or effects.is_step(block) or branch.true == branch.false:
            return None
        can = [self._is_arm(number, block, arm, arrivals) for arm in (branch.true, branch.false)]
        for true, false in ((True, True), (True, False), (False, True)):
            if (can[0] or not true) and (can[1] or not false):
                arms = [(branch.true if true else None), (branch.false if false else None)]
                found = self._joined(branch, *(None if arm is None else self.program.blocks[arm] for arm in arms))
                if found is not None:
                    terminator, steps_site = found
                    body = (*block.body, *self._under(number, block, branch.condition, arms))
                    return replace(block, body=body, terminator=terminator, steps_site=steps_site)
        return None

    def _is_arm(self, number: int, block: Block, arm: int, arrivals: Counter[int]) -> bool:
        """Return whether the block of number `arm` may be computed for all lanes at `block`."""
        found = self.program.blocks[arm]
        saved = {name for push in block.pushes for name in (push.variable, push.saved)}
        return (
            arm != number
            and self._can_follow(found, arrivals[arm])
            and not found.pushes
            and self.costs[arm] <= self.limit
            and all(item.predicate is None or item.predicate in self.own for item in found.body)
            and saved.isdisjoint(effects.written(found))
        )

    def _can_follow(self, block: Block, arrivals: int) -> bool:
        """Return whether a block can be run where lanes come to it from: nothing happens between the two."""
        sites = [site for item in block.body for site in (item.sites if isinstance(item, Piece) else (item.site,))]
        return (
            arrivals == 1
            and not (block.pops or block.sync or block.chunks)
            and all(
                site is None or self.program.faults[site].span is not None for site in sites
            )  # else its place is its block's
            and not any(isinstance(item, Piece) and item.speculative for item in block.body)
        )

    def _joined(self, branch: Branch, true: Block | None, false: Block | None) -> tuple[Terminator, int] | None:
        """The end of a block that has these arms, and its site for steps; None where one terminator cannot say it."""
        ends = [
            (Jump(place), -1) if arm is None else (_as_jump(arm.terminator), arm.steps_site)
            for arm, place in ((true, branch.true), (false, branch.false))
        ]
        match ends:
            case [(Return() as end, _), (Return(), _)]:
                return end, -1
            case [(Jump(one, turn) as end, site), (Jump(other, also), another)] if turn == also:
                if turn and self._fault(site) != self._fault(another):
                    return None
                if one != other:
                    written = {name for arm in (true, false) if arm is not None for name in effects.written(arm)}
                    if isinstance(one, Branch) or isinstance(other, Branch) or branch.condition in written:
                        return None
                    one = replace(branch, true=one, false=other)
                return _plain(replace(end, target=one)), site
        return None

    def _fault(self, site: int) -> tuple[FaultSite, object] | None:
        """The message about a fault, and its place."""
        fault = self.program.faults[site] if site >= 0 else None
        return None if fault is None else (fault, fault.span)

    def _under(self, number: int, block: Block, condition: str, arms: Sequence[int | None]) -> Iterator[Item]:
        """The items of both arms under their predicates, behind the piece that writes these."""
        wanted = [
            self._fresh(f"{block.label}_{name}") if arm is not None and self.program.blocks[arm].body else None
            for name, arm in zip(("if", "else"), arms, strict=True)
        ]
        names = tuple(name for name in wanted if name is not None)
        if names:
            scope = next((item.scope for item in block.body if isinstance(item, Piece)), block.function)
            yield _conditions(condition, wanted[0], wanted[1], scope, self.is_generated)
            types = {**self.program.types, **dict.fromkeys(names, TensorType("bool"))}
            self.program = replace(self.program, types=types)
        for name, arm in zip(wanted, arms, strict=True):
            if arm is not None:
                self.costs[number] += self.costs[arm]
                for item in self.program.blocks[arm].body:
                    # What is under a predicate made in the arm is not there either: that reads False then.
                    yield item if item.predicate is not None else replace(item, predicate=name)

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.own.add(name)
        return name

    # -- what follows --------------------------------------------------------------------------------------------------

    def _with_rest(self, number: int, block: Block, arrivals: Counter[int]) -> Block | None:
        """The block with the one that lanes come to from it alone; None where there is no such."""
        if not isinstance(block.terminator, Jump) or effects.is_step(block) or block.pushes or block.chunks:
            return None
        target = block.terminator.target
        if not isinstance(target, int) or target in (number, 0):
            return None
        rest = self.program.blocks[target]
        unnamed = {push.variable for push in rest.pushes if push.saved is None}
        if (
            not self._can_follow(rest, arrivals[target])
            or not unnamed.isdisjoint(effects.written(block))
            or rest.cost != block.cost
        ):
            return None
        self.costs[number] += self.costs[target]
        return replace(
            block,
            body=(*block.body, *rest.body),
            pushes=rest.pushes,
            terminator=rest.terminator,
            steps_site=rest.steps_site,
        )


def _as_jump(terminator: Terminator) -> Terminator:
    """A branch as a jump that asks."""
    return Jump(terminator, span=terminator.span) if isinstance(terminator, Branch) else terminator


def _plain(jump: Jump) -> Terminator:
    """The inverse."""
    return jump.target if isinstance(jump.target, Branch) and not jump.turn else jump


def _arrivals(program: Program) -> Counter[int]:
    """The number of places from which lanes are sent to each block; the entry of the program is one."""
    found = Counter((0,))
    for number in effects.reachable(program):
        terminator = program.blocks[number].terminator
        found.update(targets(terminator))
        if isinstance(terminator, PushJump):
            found.update((terminator.back,))
    return found


def _conditions(condition: str, holds: str | None, fails: str | None, scope: str, is_generated: bool) -> Piece:
    """The piece that writes the predicates of two arms, those that are wanted; with a function, if others have one."""
    ops: list[Primitive] = []
    if holds is not None:
        ops.append(Primitive((holds,), (condition,), Copy()))
    if fails is not None:
        ops.append(Primitive((fails,), (condition,), NEGATION))

    def function(found: Any) -> tuple[Any, ...]:
        return tuple(found if isinstance(op.code, Copy) else found ^ True for op in ops)

    return Piece(
        function if is_generated else None,
        (condition,),
        tuple(name for op in ops for name in op.outputs),
        statements=tuple(map(Statement, ops)),
        scope=scope,
    )
