"""A run as a sequence of legs: from a machine's state, on until no lane can run or a budget of trips is used up.

What goes from one leg to the next is a `Snapshot`: plain arrays, which may leave the device in between, be given longer
stacks, and go on, with the same results to the bit. Nothing is done twice and nothing is lost: a lane that lacks room
is paused before its block has any effect, and the counters add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pcbatch.ir import values
from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend, Spec, State
from pcbatch.runtime.costs.compaction import Compaction
from pcbatch.runtime.machine.limits import GROWTH, Limits
from pcbatch.runtime.machine.loop import Counters, Loop
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.schedules.trip import Schedule


@dataclass(frozen=True)
class Snapshot:
    """A run between two legs: the machine's state and its counters, each a flat dictionary of arrays."""

    state: State
    counters: Counters


@dataclass(frozen=True)
class Arrived:
    """The end of a leg: where the run stands, and what the user gets to see of it so far.

    Two scalar bools: `can_run`, some lane could go on, the budget is used up; `paused`, none can, and some lanes want
    room on their stacks. `outputs` are the leaves of the Outcome.
    """

    snapshot: Snapshot
    can_run: Array
    paused: Array
    outputs: Sequence[Array]


class Legs:
    """The legs of one program, to be traced for any number of lanes and any capacity of stacks.

    `leaves` of arguments and shared operands come as flat sequences of arrays, in the program's order.
    """

    def __init__(
        self,
        program: Program,
        backend: Backend,
        schedule: Schedule,
        limits: Limits,
        *,
        spread_live: bool,
        compaction: Compaction | None,
        trace: int = 0,
    ):
        self.program, self.backend, self.limits = program, backend, limits
        self.layout = Layout(program)
        self.loop = Loop(
            self.layout, limits, backend, schedule, spread_live=spread_live, compaction=compaction, trace=trace
        )
        self.fault_names = tuple(dict.fromkeys(name for site in program.faults for name in site.arguments))

    # -- a run ---------------------------------------------------------------------------------------------------------

    def begin(self, arguments: Sequence[Array], lanes: Any, capacity: Any) -> Snapshot:
        """A run that has not begun, on stacks with room for `capacity` live calls."""
        remaining = iter(arguments)
        inputs = {name: [next(remaining) for _ in self.layout.leaves(name)] for name in self.program.parameters}
        state = self.layout.start(self.backend, lanes, inputs, capacity)
        return Snapshot(state, self.loop.start())

    def leg(self, snapshot: Snapshot, shared: Sequence[Array], until: Array) -> Arrived:
        """On from `snapshot`, until no lane can run or there have been `until` trips (an int64 scalar) in all."""
        remaining, operands = iter(shared), {}
        for name in self.program.shared:
            type_ = self.program.shared_types[name]
            operands[name] = self.backend.wrap(values.pack(type_, [next(remaining) for _ in leaves(type_)]), type_)
        state, counters, can_run = self.loop.run(snapshot.state, snapshot.counters, operands, until)
        paused = ~can_run & self.backend.any(state["pc"] < self.layout.finished)
        return Arrived(Snapshot(state, counters), can_run, paused, self._outputs(state))

    def all_legs(self, leg: Callable[[Snapshot], Arrived], snapshot: Snapshot) -> Arrived:
        """One `leg` after another, on larger and larger stacks, until no lane wants more room or there is none."""

        def wants_room(carried: Sequence[Array]) -> Array:
            arrived = self.unpack(carried)
            return arrived.paused & (self.capacity(arrived.snapshot) < self.limits.largest_capacity)

        def next_leg(carried: Sequence[Array]) -> list[Array]:
            return self.pack(leg(self.grown(self.unpack(carried).snapshot)))

        first = self.pack(leg(snapshot))

        def more_legs() -> list[Array]:
            return list(self.backend.while_loop(wants_room, next_leg, first))

        # Most runs need no more: to skip a loop in a plain graph takes a tenth of a millisecond less than to enter it.
        return self.unpack(self.backend.cond(wants_room(first), more_legs, first))

    def capacity(self, snapshot: Snapshot) -> Any:
        """How many live calls there is room for: an int where known, else an int32 scalar."""
        return self.layout.capacity(self.backend, snapshot.state)

    def grown(self, snapshot: Snapshot) -> Snapshot:
        """The same run on the next larger stacks."""
        capacity, largest = self.capacity(snapshot), self.limits.largest_capacity
        if isinstance(capacity, int):
            larger = min(capacity * GROWTH, largest)
        else:
            larger = self.backend.where(capacity < largest // GROWTH, capacity * GROWTH, self.backend.constant(largest))
        return Snapshot(self.layout.grown(self.backend, snapshot.state, larger), snapshot.counters)

    # -- flat, as compiled programs take and give it -------------------------------------------------------------------

    def flat(self, snapshot: Snapshot) -> list[Array]:
        """The arrays of `snapshot`, in the order of `specs`."""
        states = (snapshot.state[key] for key in self.layout.arrays)
        return [*states, *(snapshot.counters[key] for key in self.loop.counter_specs)]

    def pack(self, arrived: Arrived) -> list[Array]:
        """All arrays of `arrived`."""
        return [*self.flat(arrived.snapshot), arrived.can_run, arrived.paused, *arrived.outputs]

    def unpack(self, arrays: Sequence[Array]) -> Arrived:
        """The inverse of `pack`."""
        remaining = iter(arrays)
        snapshot = self.snapshot(remaining)
        return Arrived(snapshot, next(remaining), next(remaining), list(remaining))

    def snapshot(self, remaining: Iterator[Array]) -> Snapshot:
        """The inverse of `flat`; takes from `remaining` what belongs to the snapshot."""
        state = {key: next(remaining) for key in self.layout.arrays}
        return Snapshot(state, {key: next(remaining) for key in self.loop.counter_specs})

    def specs(self, lanes: int | None, capacity: int | None) -> list[Spec]:
        """The dtypes and shapes of a flat snapshot; None for what is known only when it runs."""
        entries = None if capacity is None else capacity + 1
        found: list[Spec] = []
        for held in self.layout.arrays.values():
            found.append((held.type.dtype, (lanes, *([entries] if held.stacked else []), *held.type.shape)))
        return [*found, *self.loop.counter_specs.values()]

    # -- the end -------------------------------------------------------------------------------------------------------

    def _outputs(self, state: State) -> list[Array]:
        """Status, site, place, steps, results (of failed lanes, too) and what fault messages show, leaf by leaf."""
        backend = self.backend
        statuses = backend.array([LaneStatus.OK, *(site.status for site in self.program.faults)], "int32")
        status = backend.take(statuses, state["fault"])
        unfinished = (state["fault"] == 0) & (state["pc"] < self.layout.finished)
        status = backend.where(unfinished, backend.constant(LaneStatus.UNFINISHED), status)
        results = [
            backend.cast(leaf, type_.returned)
            for name in self.program.results
            for type_, leaf in zip(self.layout.leaves(name), self.layout.read(backend, state, name), strict=True)
        ]
        shown = chain.from_iterable(self.layout.read(backend, state, name) for name in self.fault_names)
        place = backend.where(state["fault"] > 0, state["pc"] - self.layout.failed(0), backend.constant(-1))
        return [status, state["fault"] - 1, place, state["steps"], *results, *shown]

    def _blanked(self, results: Sequence[Array], status: Array) -> list[Array]:
        """The leaves `results`, those of failed lanes NaN or 0.

        Not a part of the compiled program, which would have a kernel more for each leaf: most runs have no such lane.
        """
        failed = status != LaneStatus.OK
        if self.backend.is_concrete(failed) and not bool(self.backend.any(failed)):
            return list(results)
        types = [type_ for name in self.program.results for type_ in self.layout.leaves(name)]
        lanes = self.backend.lanes_of(status)
        blanks = [self.backend.cast(self._blank(lanes, type_), type_.returned) for type_ in types]
        return [self.backend.where(failed, blank, leaf) for blank, leaf in zip(blanks, results, strict=True)]

    def _blank(self, lanes: Any, type_: TensorType) -> Array:
        """What the outputs of a failed lane read."""
        zeros = self.backend.zeros(lanes, type_)
        return zeros + float("nan") if type_.dtype.startswith(("float", "bfloat", "complex")) else zeros

    def outcome(self, counters: Mapping[str, Array], outputs: Sequence[Array], capacity: Any) -> Outcome:
        """What a run leaves behind."""
        status, site, place, steps, *arrays = outputs
        count = sum(len(self.layout.leaves(name)) for name in self.program.results)
        remaining = iter([*self._blanked(arrays[:count], status), *arrays[count:]])

        def structure(name: str) -> Any:
            return values.pack(self.program.types[name], [next(remaining) for _ in self.layout.leaves(name)])

        results = tuple(structure(name) for name in self.program.results)
        return Outcome(
            values=results,
            status=status,
            site=site,
            place=place,
            fault_values={name: structure(name) for name in self.fault_names},
            executions=counters["executions"],
            active=counters["active"],
            rows=counters["rows"],
            trips=counters["trips"],
            steps=steps,
            stack_entries=capacity + 1 if self.layout.all_stacks else 0,
            backend=self.backend,
            can_fail=self.loop.can_fail,
            trace=counters.get("trace"),
        )
