"""The slow truth: a table run lane by lane, stacks as Python lists, pieces run at once for one example.

It shares with the machine the table and nothing else: no masks, no junk lanes, no pfor, no XLA. What the machine
gives must equal what this gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir import values
from pcbatch.ir.machine import Block, Branch, Fault, Jump, Piece, Program, PushJump, Return, Store
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import TensorType, Type, leaves
from pcbatch.ir.verify.machine import validate
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.limits import Limits
from pcbatch.runtime.machine.outcome import Counts, Finished, Outcome, Run, Statistics


class ReferenceMachine:
    """Runs one program as `Machine` does, by `run_reference`."""

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
        """Run `lanes` lanes, one after the other."""
        return run_reference(self.program, self.backend, arguments, shared, lanes, self.max_depth, self.max_steps)

    def ready(self, arrays: Sequence[Any], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these; there is nothing to make ready."""
        count = sum(1 for name in self.program.parameters for _ in leaves(self.program.types[name]))
        return lambda given: Finished.of(self.run(given[:count], given[count:], lanes))

    def program_for(self, lanes: Any) -> Program:
        """What is executed for `lanes` lanes."""
        return self.program

    def check(self, lanes: int) -> None:
        """Nothing is compiled, so nothing can be refused."""


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

    def arrays(given: Iterator[Any], type_: Type) -> list[Any]:
        return [backend.array(next(given), leaf.dtype) for leaf in leaves(type_)]

    given, given_shared = iter(arguments), iter(shared)
    columns = {name: arrays(given, program.types[name]) for name in program.parameters}
    types = {name: program.shared_types[name] for name in program.shared}
    per_shared = {name: values.pack(type_, arrays(given_shared, type_)) for name, type_ in types.items()}
    finished = []
    for lane in range(lanes):
        inputs = {n: values.pack(program.types[n], [leaf[lane] for leaf in column]) for n, column in columns.items()}
        finished.append(_Lane(program, backend, inputs, per_shared, Limits.of(max_depth, max_steps)))
        finished[-1].run_to_the_end()

    def column(name: str, failed_too: bool) -> list[Any]:
        """The leaves of the tops of `name` of all lanes; blank for failed lanes and where it never got a value."""
        type_ = program.types[name]
        rows = [lane.leaves(name) if failed_too or lane.status == LaneStatus.OK else None for lane in finished]
        stacked = []
        for place, leaf in enumerate(leaves(type_)):
            blank = _blank(backend, leaf, failed_too)
            array = np.stack([blank if row is None else row[place] for row in rows]) if rows else blank[None][:0]
            stacked.append(backend.array(array, leaf.dtype if failed_too else leaf.returned))
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


def _blank(backend: Backend, type_: TensorType, zero: bool) -> np.ndarray:
    """What a lane without a value reads: NaN for floats unless `zero`, else 0."""
    blank = np.asarray(backend.zeros(1, type_))[0]
    floating = type_.dtype.startswith(("float", "bfloat", "complex"))
    return blank + np.asarray(np.nan, blank.dtype) if floating and not zero else blank


class _FaultError(Exception):
    """The lane fails at `site`."""

    def __init__(self, site: int):
        self.site = site


class _Lane:
    """One example on its way through the blocks; the newest entry of a variable's list is its top."""

    def __init__(
        self,
        program: Program,
        backend: Backend,
        inputs: Mapping[str, Any],
        shared: Mapping[str, Any],
        limits: Limits,
    ):
        self.program, self.backend, self.limits = program, backend, limits
        self.shared = {name: backend.wrap(value, program.shared_types[name]) for name, value in shared.items()}
        inputs = {name: backend.wrap(value, program.types[name]) for name, value in inputs.items()}
        self.variables: dict[str, list[Any]] = {name: [inputs.get(name)] for name in program.storage}
        self.calls = [len(program.blocks)]
        self.status, self.site, self.place, self.steps = LaneStatus.OK, -1, -1, 0
        self.executions = np.zeros(len(program.blocks), np.int64)

    def run_to_the_end(self) -> None:
        """Run to the end or to a fault."""
        place = 0
        try:
            while place != len(self.program.blocks):
                self.executions[place] += 1
                place = self.block(self.program.blocks[place])
        except _FaultError as fault:
            self.place, self.site, self.status = place, fault.site, self.program.faults[fault.site].status

    def leaves(self, name: str) -> list[np.ndarray] | None:
        """The leaves of the top of `name`; None if it never got a value."""
        top = self.variables[name][-1]
        if top is None:
            return None
        type_ = self.program.types[name]
        return [np.asarray(leaf) for leaf in values.flatten(type_, self.backend.as_type(top, type_))]

    def block(self, block: Block) -> int:
        """Run one block: the number of the next. Nothing is changed where the block's body fails."""
        pops = Counter(block.pops)
        tops = {name: entries[-1 - pops[name]] for name, entries in self.variables.items()}
        now = dict(tops)
        for item in block.body:
            if item.predicate is not None and not now[item.predicate]:
                self.blank(item, now)
                continue
            match item:
                case Piece(reads=reads, writes=writes, shared=shared):
                    operands = [self.shared[name] for name in shared]
                    outputs, site = self.backend.evaluate(item, [now[name] for name in reads], operands)
                    if site:
                        raise _FaultError(site - 1)
                    for name, output in zip(writes, outputs, strict=True):
                        type_ = self.program.types[name]
                        now[name] = self.backend.wrap(self.backend.as_type(output, type_), type_)
                case Store(array=array, indices=indices, value=value, site=site):
                    try:
                        now[array] = self.backend.store_element(now[array], tuple(now[n] for n in indices), now[value])
                    except IndexError:
                        raise _FaultError(site) from None
        if isinstance(block.terminator, Fault):
            self.commit(block, pops, tops, now)
        place = self.leave(block, now)
        self.commit(block, pops, tops, now)
        return place

    def blank(self, item: Piece | Store, now: dict[str, Any]) -> None:
        """Give what an item that is left out would write, and that never had a value, a zero."""
        for name in item.writes if isinstance(item, Piece) else ():
            if now.get(name) is None:
                type_ = self.program.types[name]
                zeros = [self.backend.zeros(1, leaf)[0] for leaf in leaves(type_)]
                now[name] = self.backend.wrap(values.pack(type_, zeros), type_)

    def leave(self, block: Block, now: Mapping[str, Any]) -> int:
        """The number of the block that the terminator of `block` goes to."""
        match block.terminator:
            case Jump(target=target, turn=turn):
                if turn:
                    self.step(block)
                return _place(target, now)
            case Branch() as branch:
                return _place(branch, now)
            case PushJump(target=target, back=back, site=site):
                if len(self.calls) > self.limits.max_depth:
                    raise _FaultError(site)
                self.step(block)
                self.calls.append(back)
                return _place(target, now)
            case Return():
                return self.calls.pop()
            case Fault(site=site):
                raise _FaultError(site)
        raise TypeError(f"not a terminator: {block.terminator!r}")

    def step(self, block: Block) -> None:
        """Count a loop turn or a call."""
        if self.limits.max_steps is not None and self.steps >= self.limits.max_steps:
            raise _FaultError(block.steps_site)
        self.steps += 1

    def commit(self, block: Block, pops: Counter[str], tops: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Let the block take effect: pops, then pushes below the tops, then the new tops."""
        for name, entries in self.variables.items():
            del entries[len(entries) - 1 - pops[name] :]
            entries += [
                tops[name] if push.saved is None else now[push.saved] for push in block.pushes if push.variable == name
            ]
            entries.append(now[name])


def _place(target: int | Branch, now: Mapping[str, Any]) -> int:
    """The number of the block that `target` means where variables have the values `now`."""
    if isinstance(target, int):
        return target
    return target.true if now[target.condition] else target.false
