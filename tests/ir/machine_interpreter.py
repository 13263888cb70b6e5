"""The semantics of the machine dialect: one lane, one block after the other. Every pass must leave its answers alone.

Statements and stores are run by the same `evaluate` and `store` as in the other dialects (`tests.ir.interpreter`).
What the machine does with junk, a lane here does not do at all: it reads nothing that has no value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Any

from pcbatch.ir import program as ir
from pcbatch.ir.machine import Block, Branch, Fault, Jump, Piece, Program, PushJump, Return, Store, store_span
from tests.ir.evaluation import zero
from tests.ir.interpreter import Evaluate, Lane, LaneFaultError, Outcome, StoreElement


class BrokenProgramError(ValueError):
    """Raised for an invalid program, such as one that reads a value that is not kept: a bug of a pass."""


class Missing(Enum):
    """A placeholder for a missing value, with the reason."""

    NEVER = "never had a value"
    DEAD = "is not kept, being dead"


def interpret_machine(
    program: Program,
    arguments: Sequence[Any],
    evaluate: Evaluate,
    store: StoreElement,
    *,
    shared: Sequence[Any] = (),
    max_depth: int | None = None,
    max_steps: int | None = None,
) -> Outcome:
    """Run `program`, which must be well-formed (`pcbatch.ir.machine_verifier`), on one example.

    `shared` are the values of its shared operands. The limits are those of `interpret`. A fault has the status, the
    message and the span of its fault site; one that `evaluate` reports has its own. TypeError if the number of
    arguments or of shared operands is wrong.
    """
    if len(arguments) != len(program.parameters):
        raise TypeError(f"{program.name} takes {len(program.parameters)} arguments, not {len(arguments)}")
    if len(shared) != len(program.shared):
        raise TypeError(f"{program.name} takes {len(program.shared)} shared operands, not {len(shared)}")
    lane = Lane(evaluate, store, max_depth, max_steps)
    run = _Run(program, lane, dict(zip(program.shared, shared, strict=True)))
    return lane.outcome(lambda: run.results(arguments))


class _Run:
    """The state of a lane: the stack of each variable, its top last, and of program counters.

    Inside a block, `tops` are the tops after its pops, and `now` the values that it has given to names so far. The
    state changes when a block is over.
    """

    def __init__(self, program: Program, lane: Lane, shared: dict[str, Any]):
        self.program, self.lane, self.shared = program, lane, shared
        self.stacks: dict[str, list[Any]] = {name: [Missing.NEVER] for name in program.storage}
        self.waiting: list[int] = []
        self.block = program.blocks[0]
        self.tops: dict[str, Any] = {}
        self.now: dict[str, Any] = {}

    def results(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run to the end."""
        for name, value in zip(self.program.parameters, arguments, strict=True):
            self.stacks[name] = [value]
        place = 0
        while place != len(self.program.blocks):
            self.block = self.program.blocks[place]
            self.lane.executions[self.block.label] += 1
            place = self.run_block()
        return tuple(self.present(name, self.stacks[name][-1]) for name in self.program.results)

    def run_block(self) -> int:
        """Run one block: the number of the next."""
        pops = Counter(self.block.pops)
        for name, count in pops.items():
            if count >= len(self.stacks[name]):
                raise self.broken(f"pops {name}, whose stack is empty")
        self.tops = {name: stack[-1 - pops[name]] for name, stack in self.stacks.items()}
        self.now = {}
        for item in self.block.body:
            if isinstance(item, Piece) and item.speculative:
                continue  # calls are made one after the other here
            if item.predicate is not None and not self.read(item.predicate):
                self.leave_out(item)
            elif isinstance(item, Piece):
                self.piece(item)
            else:
                self.store(item)
        if isinstance(self.block.terminator, Fault):
            self.commit(pops)
            raise self.fault(self.block.terminator.site)
        place = self.leave(self.block)
        self.commit(pops)
        return place

    # -- values --------------------------------------------------------------------------------------------------------

    def read(self, name: str) -> Any:
        """The value that `name` has at this point of the block."""
        if name not in self.now and name not in self.tops:
            raise self.broken(f"reads {name}, which it did not write")
        return self.present(name, self.now.get(name, self.tops.get(name)))

    def present(self, name: str, value: Any) -> Any:
        """`value`, which is that of `name`; BrokenProgramError where there is none."""
        if isinstance(value, Missing):
            raise self.broken(f"reads {name}, which {value.value}")
        return value

    def broken(self, what: str) -> BrokenProgramError:
        """Return the error for a block of an invalid program."""
        return BrokenProgramError(f"{self.program.name}, {self.block.label} {what}")

    def fault(self, site: int) -> LaneFaultError:
        """The fault of a site, whose message shows tops of the state."""
        found = self.program.faults[site]
        shown = [self.present(name, self.stacks[name][-1]) for name in found.arguments]
        self.lane.span = found.span
        status: Any = found.status.name
        return LaneFaultError(status, found.message.format(*shown))

    # -- the body ------------------------------------------------------------------------------------------------------

    def piece(self, piece: Piece) -> None:
        """Run the statements of a piece; only its declared writes leave it."""
        if piece.function is not None and not piece.statements:
            raise self.broken(f"has generated code for {piece.writes}, of which no statements are known")
        local = {name: self.read(name) for name in piece.reads}
        local |= {name: self.shared[name] for name in piece.shared}
        for statement in piece.statements:
            local |= self.lane.compute(self.block.function, statement.op, local.__getitem__)
        self.now |= {name: local[name] for name in piece.writes}

    def store(self, store: Store) -> None:
        """Replace elements of an array."""
        op = ir.Store(store.array, store.indices, store.value, store_span(self.program, store))
        try:
            self.now |= self.lane.compute(self.block.function, op, self.read)
        except LaneFaultError:
            if store.site is None:
                raise self.broken(f"stores outside of {store.array!r}, which cannot be") from None
            raise self.fault(store.site) from None

    def leave_out(self, item: Piece | Store) -> None:
        """Set the writes of an item whose predicate does not hold to zero where they never had a value."""
        for name in item.writes if isinstance(item, Piece) else ():
            if self.now.get(name, self.tops.get(name, Missing.NEVER)) is Missing.NEVER:
                self.now[name] = self.zero(name)

    def zero(self, name: str) -> Any:
        """Return a zero in place of a value of `name` where none is needed."""
        return zero(self.program.types[name])

    # -- the end of the block ------------------------------------------------------------------------------------------

    def leave(self, block: Block) -> int:
        """The number of the block that the terminator of `block`, no fault, goes to."""
        match block.terminator:
            case Jump(target=target, turn=turn):
                if turn:
                    self.step()
                return self.place(target)
            case Branch() as branch:
                return self.place(branch)
            case PushJump(target=target, back=back, site=site):
                if not self.lane.can_call(len(self.waiting) + 1):
                    raise self.fault(site)
                self.step()
                self.waiting.append(back)
                return self.place(target)
            case Return():
                return self.waiting.pop() if self.waiting else len(self.program.blocks)
        raise TypeError(f"not a terminator of a lane that goes on: {block.terminator!r}")

    def place(self, target: int | Branch) -> int:
        """The number of the block that `target` means."""
        if isinstance(target, int):
            return target
        return target.true if self.read(target.condition) else target.false

    def step(self) -> None:
        """Count a loop turn or a call."""
        if not self.lane.can_step():
            if self.block.steps_site < 0:
                raise self.broken("has no fault site for one step too many")
            raise self.fault(self.block.steps_site)
        self.lane.steps += 1

    def commit(self, pops: Counter[str]) -> None:
        """Let the block take effect: pops, then pushes below the tops, then the new tops."""
        for name, stack in self.stacks.items():
            del stack[len(stack) - 1 - pops[name] :]
            stack += [self.saved(push.saved, name) for push in self.block.pushes if push.variable == name]
            stack.append(Missing.DEAD if name in self.block.dead else self.now.get(name, self.tops[name]))
        for name, leader in self.program.pointers.items():
            if len(self.stacks[name]) != len(self.stacks[leader]):
                raise self.broken(f"leaves stacks of {name} and {leader}, which share a pointer, with unequal heights")

    def saved(self, name: str | None, variable: str) -> Any:
        """Return the value that a push saves, or a missing one, which only its reader minds."""
        return self.tops[variable] if name is None else self.now.get(name, self.tops.get(name))
