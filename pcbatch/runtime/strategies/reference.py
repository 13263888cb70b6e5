"""The slow truth: a table run lane by lane, stacks as Python lists, pieces run at once for one example.

It shares with the machine the table and nothing else: no masks, no junk lanes, no pfor, no XLA. What the machine
gives must equal what this gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir import values
from pcbatch.ir.machine import Block, Branch, Fault, Jump, LaneStatus, Piece, Program, PushJump, Return, Store
from pcbatch.ir.machine_verifier import validate
from pcbatch.ir.types import TensorType, Type, leaves
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.outcome import Counts, Finished, Outcome, Run, Statistics
from pcbatch.runtime.machine.state import Limits
from pcbatch.runtime.strategies.on_host import require_host

# -- one lane ----------------------------------------------------------------------------------------------------------


class FaultError(Exception):
    """The lane fails at `site`."""

    def __init__(self, site: int):
        self.site = site


class Walker:
    """One example on its way through the blocks, whatever its values are; the newest entry of a list is the top."""

    def __init__(self, program: Program, inputs: Mapping[str, Any], limits: Limits):
        self.program, self.limits = program, limits
        self.variables: dict[str, list[Any]] = {name: [inputs.get(name)] for name in program.storage}
        self.calls = [len(program.blocks)]
        self.status, self.site, self.place, self.steps = LaneStatus.OK, -1, -1, 0
        self.next = 0
        self.executions = np.zeros(len(program.blocks), np.int64)

    def run_next(self) -> bool:
        """Run the block that is next; False where there is none, the lane having returned or failed."""
        place = self.next
        if self.status != LaneStatus.OK or place == len(self.program.blocks):
            return False
        self.executions[place] += 1
        try:
            self.next = self.block(self.program.blocks[place])
        except FaultError as fault:
            self.fail(place, fault.site)
        return True

    def fail(self, place: int, site: int) -> None:
        """Note the failure in the block of this number."""
        self.place, self.site, self.status = place, site, self.program.faults[site].status

    def block(self, block: Block) -> int:
        """Run one block: the number of the next. Nothing is changed where the block's body fails."""
        pops = Counter(block.pops)
        tops = {name: entries[-1 - pops[name]] for name, entries in self.variables.items()}
        now = dict(tops)
        self.body(block, now)
        if isinstance(block.terminator, Fault):
            self.commit(block, pops, tops, now)
        place = self.leave(block, now)
        self.commit(block, pops, tops, now)
        return place

    def leave(self, block: Block, now: Mapping[str, Any]) -> int:
        """The number of the block that the terminator of `block` goes to."""
        match block.terminator:
            case Jump(target=target, turn=turn):
                if turn:
                    self.step(block)
                return self.target(target, now)
            case Branch() as branch:
                return self.target(branch, now)
            case PushJump(target=target, back=back, site=site):
                if len(self.calls) > self.limits.max_depth:
                    raise FaultError(site)
                self.step(block)
                self.calls.append(back)
                return self.target(target, now)
            case Return():
                return self.calls.pop()
            case Fault(site=site):
                raise FaultError(site)
        raise TypeError(f"not a terminator: {block.terminator!r}")

    def step(self, block: Block) -> None:
        """Count a loop turn or a call."""
        if self.limits.max_steps is not None and self.steps >= self.limits.max_steps:
            raise FaultError(block.steps_site)
        self.steps += 1

    def commit(self, block: Block, pops: Counter[str], tops: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Let the block take effect: pops, then pushes below the tops, then the new tops."""
        for name, entries in self.variables.items():
            del entries[len(entries) - 1 - pops[name] :]
            entries += [
                tops[name] if push.saved is None else now[push.saved] for push in block.pushes if push.variable == name
            ]
            entries.append(now[name])

    def body(self, block: Block, now: dict[str, Any]) -> None:
        """Compute what a block assigns, from the values that names have before it and into these."""
        raise NotImplementedError  # by those who know what values are

    def target(self, target: int | Branch, now: Mapping[str, Any]) -> int:
        """The number of the block that `target` means where names have the values `now`."""
        if isinstance(target, int):
            return target
        return target.true if now[target.condition] else target.false


class Lane(Walker):
    """A lane of the reference: its values are those of the backend for one example, computed at once."""

    def __init__(
        self,
        program: Program,
        backend: Backend,
        inputs: Mapping[str, Any],
        shared: Mapping[str, Any],
        limits: Limits,
    ):
        inputs = {name: backend.wrap(value, program.types[name]) for name, value in inputs.items()}
        super().__init__(program, inputs, limits)
        self.backend = backend
        self.shared = {name: backend.wrap(value, program.shared_types[name]) for name, value in shared.items()}
        self.computed: dict[str, Any] = {}
        """The values that the block that ran last has computed, by name: all of them, or those before its fault."""

    def run_to_the_end(self) -> None:
        """Run to the end or to a fault."""
        while self.run_next():
            pass

    def leaves(self, name: str) -> list[Any] | None:
        """The leaves of the top of `name`; None if it never got a value."""
        top = self.variables[name][-1]
        return None if top is None else self.leaves_of(name, top)

    def leaves_of(self, name: str, value: Any) -> list[Any]:
        """The leaves of a value of `name`, as arrays."""
        type_ = self.program.types[name]
        found = values.flatten(type_, self.backend.as_type(value, type_))
        return [self.backend.array(leaf, each.dtype) for leaf, each in zip(found, leaves(type_), strict=True)]

    def body(self, block: Block, now: dict[str, Any]) -> None:
        """Evaluate the items of a block, one after the other."""
        self.computed = {}
        for item in block.body:
            if item.predicate is not None and not now[item.predicate]:
                self.blank(item, now)
                continue
            match item:
                case Piece(reads=reads, writes=writes, shared=shared):
                    operands = [self.shared[name] for name in shared]
                    outputs, site = self.backend.evaluate(item, [now[name] for name in reads], operands)
                    if site:
                        raise FaultError(site - 1)
                    for name, output in zip(writes, outputs, strict=True):
                        type_ = self.program.types[name]
                        now[name] = self.computed[name] = self.backend.wrap(self.backend.as_type(output, type_), type_)
                case Store(array=array, indices=indices, value=value, site=site):
                    try:
                        stored = self.backend.store_element(now[array], tuple(now[n] for n in indices), now[value])
                        now[array] = self.computed[array] = stored
                    except IndexError:
                        assert site is not None, "no index of the store is out of range"
                        raise FaultError(site) from None

    def blank(self, item: Piece | Store, now: dict[str, Any]) -> None:
        """Give what an item that is left out would write, and that never had a value, a zero."""
        for name in item.writes if isinstance(item, Piece) else ():
            if now.get(name) is None:
                type_ = self.program.types[name]
                zeros = [self.backend.zeros(1, leaf)[0] for leaf in leaves(type_)]
                now[name] = self.backend.wrap(values.pack(type_, zeros), type_)


@dataclass(frozen=True)
class Visit:
    """One run of one block, as a lane sees it, and what the lane holds after it; structures of NumPy's values.

    `count` says the how manieth it is, from 1; 0, with no `block`, is before the first. `computed` has what the body
    has assigned, temporaries included: where the lane failed, before that. `stacks` has each variable that ever got a
    value with its entries, the top last, None for an entry without a value; `program_counters` labels, that of the
    next block last, "end" for the lane's end. `steps` are the loop turns plus calls so far.
    """

    count: int
    block: Block | None
    computed: Mapping[str, Any]
    stacks: Mapping[str, tuple[Any, ...]]
    program_counters: tuple[str, ...]
    status: LaneStatus
    steps: int


class Walk:
    """One lane that runs block by block, for those who want to look at it."""

    def __init__(self, lane: Lane, end: Callable[[Program, Backend, Sequence[Lane]], Outcome]):
        self._lane, self._end, self._last = lane, end, -1
        self.count = 0
        """The number of blocks that have run."""

    def go_on(self) -> bool:
        """Run the next block; False where there is none, the lane having returned or failed."""
        last = self._lane.next
        if not self._lane.run_next():
            return False
        self._last, self.count = last, self.count + 1
        return True

    def visit(self) -> Visit:
        """The run of the last block."""
        lane, blocks = self._lane, self._lane.program.blocks
        labels = [*(block.label for block in blocks), "end"]
        return Visit(
            self.count,
            blocks[self._last] if self.count else None,
            {name: self._plain(name, value) for name, value in lane.computed.items()},
            {
                name: tuple(self._plain(name, entry) for entry in entries)
                for name, entries in lane.variables.items()
                if any(entry is not None for entry in entries)
            },
            tuple(labels[place] for place in (*lane.calls, lane.next)),
            lane.status,
            lane.steps,
        )

    def outcome(self) -> Outcome:
        """The outcome of the lane, as a run of this lane alone; it is UNFINISHED where it could go on."""
        lane = self._lane
        if lane.status == LaneStatus.OK and lane.next != len(lane.program.blocks):
            lane.status = LaneStatus.UNFINISHED
        return self._end(lane.program, lane.backend, [lane])

    def _plain(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        type_ = self._lane.program.types[name]
        found = zip(map(np.asarray, self._lane.leaves_of(name, value)), leaves(type_), strict=True)
        return values.pack(type_, [leaf.item() if leaf_type.weak else leaf[()] for leaf, leaf_type in found])


# -- all lanes ---------------------------------------------------------------------------------------------------------


class ReferenceMachine:
    """Runs one program as `Machine` does, by `run_reference`."""

    is_numpys, any_lanes = False, True

    def __init__(
        self, program: Program, backend: Backend, *, max_depth: int | None = None, max_steps: int | None = None
    ):
        validate(program, max_steps)
        self.program, self.backend = program, backend
        self.max_depth, self.max_steps = max_depth, max_steps
        self.statistics = Statistics()
        self.stack_entries = 0  # they are lists
        self.form = "reference"
        self.notes: Sequence[tuple[Span | None, str]] = ()

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> Outcome:
        """Run `lanes` lanes, one after the other. UsageError PCB536 inside a graph, which has no values yet."""
        require_host(self.backend, "backend='reference'", self.program.name)
        return run_reference(self.program, self.backend, arguments, shared, lanes, self.max_depth, self.max_steps)

    def walk(self, arguments: Sequence[Any], shared: Sequence[Any], lane: int) -> Walk:
        """Run `lane` alone, block by block."""
        examples = Examples(self.program, self.backend, arguments, shared, Limits.of(self.max_depth, self.max_steps))
        return Walk(examples.lane(lane), outcome_of)

    def ready(self, arrays: Sequence[Any], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these; there is nothing to make ready."""
        count = sum(1 for name in self.program.parameters for _ in leaves(self.program.types[name]))
        return lambda given: Finished.of(self.run(given[:count], given[count:], lanes))

    def program_for(self, lanes: Any) -> Program:
        """The program that is executed for `lanes` lanes."""
        return self.program

    def check(self, lanes: int) -> None:
        """Nothing is compiled, so nothing can be refused."""

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Nothing is compiled."""


def run_reference(
    program: Program,
    backend: Backend,
    arguments: Sequence[Any],
    shared: Sequence[Any],
    lanes: int,
    max_depth: int | None = None,
    max_steps: int | None = None,
) -> Outcome:
    """Run `program` for each of `lanes` lanes; see `Machine.run`. `trips` is 0: there is no loop over blocks."""
    examples = Examples(program, backend, arguments, shared, Limits.of(max_depth, max_steps))
    return outcome_of(program, backend, [*map(examples.ended, range(lanes))])


class Examples:
    """The arguments of a run, from which its lanes are made."""

    def __init__(
        self, program: Program, backend: Backend, arguments: Sequence[Any], shared: Sequence[Any], limits: Limits
    ):
        def arrays(given: Iterator[Any], type_: Type) -> list[Any]:
            return [backend.array(next(given), leaf.dtype) for leaf in leaves(type_)]

        self.program, self.backend, self.limits = program, backend, limits
        given, given_shared = iter(arguments), iter(shared)
        self.columns = {name: arrays(given, program.types[name]) for name in program.parameters}
        types = {name: program.shared_types[name] for name in program.shared}
        self.shared = {name: values.pack(type_, arrays(given_shared, type_)) for name, type_ in types.items()}

    def lane(self, number: int) -> Lane:
        """The lane of this number, before its first block."""
        types = self.program.types
        inputs = {
            name: values.pack(types[name], [leaf[number] for leaf in each]) for name, each in self.columns.items()
        }
        return Lane(self.program, self.backend, inputs, self.shared, self.limits)

    def ended(self, number: int) -> Lane:
        """The lane of this number, after its last block."""
        lane = self.lane(number)
        lane.run_to_the_end()
        return lane


def outcome_of(program: Program, backend: Backend, finished: Sequence[Any]) -> Outcome:
    """The outcome of a run of these lanes."""

    def column(name: str, failed_too: bool) -> list[Any]:
        """The leaves of the tops of `name` of all lanes; blank for failed lanes and where it never got a value."""
        type_ = program.types[name]
        rows = [lane.leaves(name) if failed_too or lane.status == LaneStatus.OK else None for lane in finished]
        stacked = []
        for place, leaf in enumerate(leaves(type_)):
            blank = _blank(backend, leaf, failed_too)
            # Of arrays, not of what NumPy makes of them: a tape that watches sees it.
            array = [blank if row is None else row[place] for row in rows] if rows else blank[None][:0]
            stacked.append(backend.cast(backend.array(array, leaf.dtype), leaf.dtype if failed_too else leaf.returned))
        return stacked

    names = dict.fromkeys(name for site in program.faults for name in site.arguments)
    executions = np.sum([lane.executions for lane in finished], axis=0, dtype=np.int64, initial=0)
    executions = np.zeros(len(program.blocks), np.int64) + executions
    return Outcome(
        values=tuple(leaf for name in program.results for leaf in column(name, failed_too=False)),
        status=np.array([lane.status for lane in finished], np.int32),
        site=np.array([lane.site for lane in finished], np.int32),
        place=np.array([lane.place for lane in finished], np.int32),
        fault_values={name: column(name, failed_too=True) for name in names},
        # Lane by lane: no row is computed for nobody.
        counting=lambda: Counts(executions, active=executions, rows=executions, trips=np.int64(0)),
        steps=np.array([lane.steps for lane in finished], np.int32),
        backend=backend,
    )


def _blank(backend: Backend, type_: TensorType, zero: bool) -> Any:
    """The value of a lane that has none: NaN for floats unless `zero`, else 0."""
    blank = np.asarray(backend.zeros(1, type_))[0]
    floating = type_.dtype.startswith(("float", "bfloat", "complex"))
    return backend.array(blank + np.asarray(np.nan, blank.dtype) if floating and not zero else blank, type_.dtype)
