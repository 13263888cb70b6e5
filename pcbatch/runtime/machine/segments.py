"""A run as a sequence of legs: from a machine's state, on until no lane can run or a budget of trips is used up.

What goes from one leg to the next is a `Snapshot`: plain arrays, which may leave the device in between, be given longer
stacks, and go on, with the same results to the bit. Nothing is done twice and nothing is lost: a lane that lacks room
is paused before its block has any effect, and the counters add up.

A leg is START for the lanes that wait there, the loop, FINISH for those that have ended, and again, as long as free
lanes can take examples from the queue. Of a `whole` pool all lanes have started before the first leg, so a leg takes no
inputs, and FINISH needs nothing of the outputs before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend, Spec, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine import admission
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.guarded import MakeRunner
from pcbatch.runtime.machine.loop import COUNTED, Counters, Loop
from pcbatch.runtime.machine.outcome import Counts, Outcome
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import GROWTH
from pcbatch.runtime.machine.values import Rows

QUEUE: dict[str, Spec] = {"examples": ("int32", ()), "begun": ("int32", ())}
"""The arrays of a queue (`admission.first_queue`), in the order in which they are passed on."""

_Round = dict[str, Any]
"""The state of a round. It is the `run`, a dictionary of what changes, and two bools, whether it `can_run`, and whether
there is to be a round `again`."""


@dataclass(frozen=True)
class Snapshot:
    """A run between two legs, each part a flat dictionary of arrays: see `Layout` and `Loop` for the keys.

    `state` is by lane; `inputs` and `outputs` are by example, `outputs` as the last leg has left them: in a whole pool
    nothing before the first. `queue` is of the examples that are to begin, and empty in a whole pool.
    """

    pool: Pool
    state: State
    counters: Counters
    inputs: State = field(default_factory=dict)
    outputs: State = field(default_factory=dict)
    queue: State = field(default_factory=dict)

    @property
    def examples(self) -> Any:
        """The number of examples of the run; its arrays by example may have room for more."""
        return self.pool.examples if self.pool.whole else self.queue["examples"]


@dataclass(frozen=True)
class SegmentResult:
    """The end of a leg: the standing of the run, whose `outputs` are the user's so far.

    Two scalar bools: `can_run`, some lane could go on or begin, the budget is used up; `paused`, none can, and some
    lanes want room on their stacks.
    """

    snapshot: Snapshot
    can_run: Array
    paused: Array


def _same(counts: Counts) -> Counts:
    return counts


def _moving(snapshot: Snapshot) -> dict[str, State]:
    """The parts of a snapshot that change in a leg."""
    return {name: getattr(snapshot, name) for name in ("state", "counters", "outputs", "queue")}


class Legs:
    """The legs of one program, to be traced for any pool and any capacity of stacks.

    `leaves` of arguments and shared operands come as flat sequences of arrays, in the program's order.
    """

    def __init__(self, context: Context, runner: MakeRunner = BlockRunner):
        self.context, self.program, self.backend = context, context.program, context.backend
        self.layout, self.limits, self.notes = context.layout, context.limits, context.notes
        self.loop = Loop(context, runner)

    # -- a run ---------------------------------------------------------------------------------------------------------

    def begin(self, arguments: Sequence[Array], pool: Pool, capacity: Any, examples: Any = None) -> Snapshot:
        """A run that has not begun, on stacks with room for `capacity` live calls.

        It is of so many `examples`; if that is not given, of as many as the pool has arrays for.
        """
        inputs = dict(zip(self.layout.inputs, arguments, strict=True))
        state = admission.first_state(self.backend, self.layout, pool, inputs, capacity, examples)
        if pool.whole:
            return Snapshot(pool, state, self.loop.start(), inputs)
        outputs = admission.blank_outputs(self.backend, self.layout, pool.examples)
        queue = admission.first_queue(self.backend, pool.examples if examples is None else examples)
        return Snapshot(pool, state, self.loop.start(), inputs, outputs, queue)

    def once(self, arguments: Sequence[Array], shared: Sequence[Array], lanes: Any) -> State:
        """The state after the first block has run, once, for all of `lanes` lanes that begin with it."""
        state = self.begin(arguments, Pool.of(lanes), 0).state
        every = Rows.everyone(self.backend, ~self.backend.zeros(lanes, TensorType("bool")))
        changed, _ = BlockRunner(self.context, 0).run(state, self.operands(shared), every)
        return {**state, **changed}

    def leg(self, snapshot: Snapshot, shared: Sequence[Array], until: Array) -> SegmentResult:
        """Go on from `snapshot`, until no lane can run or there have been `until` trips (an int64 scalar) in all."""
        if not snapshot.pool.whole:
            return self._rounds(snapshot, shared, until)
        after, can_run = self._trips(snapshot, shared, until)
        paused = ~can_run & self.backend.any(after.state["pc"] < self.layout.start)
        return SegmentResult(self._finished(after), can_run, paused)

    def _rounds(self, snapshot: Snapshot, shared: Sequence[Array], until: Array) -> SegmentResult:
        """A leg of a pool that examples enter: rounds of trips, free lanes taking the next examples before each."""
        backend, begin = self.backend, self.backend.constant(0) == 0

        def goes_on(carried: _Round) -> Array:
            return carried["again"] & (carried["run"]["counters"]["trips"] < until)

        def one(carried: _Round) -> _Round:
            now = self._refilled(replace(snapshot, **carried["run"]))
            after, can_run = self._trips(now, shared, until)
            after = self._finished(after)
            is_free = backend.any(after.state["pc"] == self.layout.free)
            takes = is_free & (after.queue["begun"] < after.queue["examples"])
            again = can_run | takes
            return {"run": _moving(after), "can_run": again, "again": again}

        carried: _Round = {"run": _moving(self._finished(snapshot)), "can_run": begin, "again": begin}
        end = backend.while_loop(goes_on, one, carried, stops=True)
        after, can_run = replace(snapshot, **end["run"]), end["can_run"]
        return SegmentResult(after, can_run, ~can_run & backend.any(after.state["pc"] < self.layout.start))

    def _trips(self, snapshot: Snapshot, shared: Sequence[Array], until: Array) -> tuple[Snapshot, Array]:
        """The run after trips until no lane can run, the budget is used up, or a refill pays; and whether one could."""
        carried = {key: snapshot.state[key] for key in self.layout.carried}
        stop = None if snapshot.pool.whole else partial(self._refill_pays, snapshot)
        examples = self._examples(snapshot) if snapshot.pool.whole else None
        after, counters, can_run = self.loop.run_trips(
            carried, snapshot.counters, self.operands(shared), until, stop, examples
        )
        return replace(snapshot, state={**snapshot.state, **after}, counters=counters), can_run

    def _examples(self, snapshot: Snapshot) -> Array:
        """Count the examples of a whole pool, whose last lanes may have none."""
        return self.backend.sum(snapshot.state["pc"] != self.layout.free)

    def _refill_pays(self, snapshot: Snapshot, state: State) -> Array:
        """Return whether examples wait and enough lanes have ended for a refill."""
        backend = self.backend
        ended = backend.sum(state["pc"] > self.layout.start)
        waits = snapshot.queue["begun"] < snapshot.queue["examples"]
        return waits & (ended * CPU.refilled >= snapshot.pool.lanes)

    def _refilled(self, snapshot: Snapshot) -> Snapshot:
        """Give free lanes the next examples, and start those that are to start."""
        state, queue = admission.take_next(self.backend, self.layout, snapshot.state, snapshot.queue)
        state = admission.start(self.backend, self.layout, snapshot.pool, state, snapshot.inputs)
        return replace(snapshot, state=state, queue=queue)

    def _finished(self, snapshot: Snapshot) -> Snapshot:
        """Finish the lanes at FINISH."""
        state, outputs = admission.finish(self.backend, self.layout, snapshot.pool, snapshot.state, snapshot.outputs)
        return replace(snapshot, state=state, outputs=outputs)

    def operands(self, shared: Sequence[Array]) -> dict[str, list[Array]]:
        """The leaves of each shared operand, by name."""
        remaining, types = iter(shared), self.program.shared_types
        return {name: [next(remaining) for _ in leaves(types[name])] for name in self.program.shared}

    def all_legs(self, leg: Callable[[Snapshot], SegmentResult], snapshot: Snapshot) -> SegmentResult:
        """One `leg` after another, on larger and larger stacks, until no lane wants more room or there is none."""

        def wants_room(carried: Sequence[Array]) -> Array:
            arrived = self.unpack(carried, snapshot)
            return arrived.paused & (self.capacity(arrived.snapshot) < self.limits.largest_capacity)

        def next_leg(carried: Sequence[Array]) -> list[Array]:
            return self.pack(leg(self.grown(self.unpack(carried, snapshot).snapshot)))

        first = self.pack(leg(snapshot))

        def more_legs() -> list[Array]:
            return list(self.backend.while_loop(wants_room, next_leg, first))

        # Most runs need no more: to skip a loop in a plain graph takes a tenth of a millisecond less than to enter it.
        return self.unpack(self.backend.cond(wants_room(first), more_legs, first), snapshot)

    def capacity(self, snapshot: Snapshot) -> Any:
        """Return the capacity of the stacks, in live calls: an int where known, else an int32 scalar."""
        return self.layout.capacity(self.backend, snapshot.state)

    def grown(self, snapshot: Snapshot) -> Snapshot:
        """The same run on the next larger stacks."""
        capacity, largest = self.capacity(snapshot), self.limits.largest_capacity
        if isinstance(capacity, int):
            larger = min(capacity * GROWTH, largest)
        else:
            larger = self.backend.where(capacity < largest // GROWTH, capacity * GROWTH, self.backend.constant(largest))
        return replace(snapshot, state=self.layout.grown(self.backend, snapshot.state, larger))

    # -- flat, as compiled programs take and give it -------------------------------------------------------------------

    def flat(self, snapshot: Snapshot) -> list[Array]:
        """The arrays of `snapshot` that a leg needs, in the order of `specs`."""
        found = [snapshot.state[key] for key in self.layout.carried]
        found += [snapshot.counters[key] for key in self.loop.counter_specs]
        if not snapshot.pool.whole:
            found += [snapshot.state["example"], *(snapshot.queue[key] for key in QUEUE)]
            found += [snapshot.inputs[key] for key in self.layout.inputs]
            found += [snapshot.outputs[key] for key in self.layout.outputs]
        return found

    def snapshot(self, remaining: Iterator[Array], pool: Pool) -> Snapshot:
        """Invert `flat`; take the snapshot's arrays from `remaining`."""
        state = {key: next(remaining) for key in self.layout.carried}
        counters = {key: next(remaining) for key in self.loop.counter_specs}
        if pool.whole:
            return Snapshot(pool, state, counters)
        state["example"] = next(remaining)
        queue = {key: next(remaining) for key in QUEUE}
        inputs = {key: next(remaining) for key in self.layout.inputs}
        outputs = {key: next(remaining) for key in self.layout.outputs}
        return Snapshot(pool, state, counters, inputs, outputs, queue)

    def specs(self, pool: Pool, capacity: int | None) -> list[Spec]:
        """Return the dtypes and shapes of a flat snapshot; None for those known only when it runs."""
        lanes = self.lane_specs(pool.static.lanes, capacity)
        found = [*(lanes[key] for key in self.layout.carried), *self.loop.counter_specs.values()]
        if not pool.whole:
            examples = self.example_specs(pool.static.examples)
            found += [
                lanes["example"],
                *QUEUE.values(),
                *(examples[key] for key in (*self.layout.inputs, *self.layout.outputs)),
            ]
        return found

    def lane_specs(self, lanes: int | None, capacity: int | None) -> dict[str, Spec]:
        """The dtypes and shapes of all arrays by lane."""
        entries = None if capacity is None else capacity + 1
        return {
            key: (held.type.dtype, (lanes, *([entries] if held.stacked else []), *held.type.shape))
            for key, held in self.layout.arrays.items()
        }

    def example_specs(self, examples: int | None) -> dict[str, Spec]:
        """The dtypes and shapes of all arrays by example, outputs and inputs."""
        arrays = {**self.layout.outputs, **self.layout.inputs}
        return {key: (held.type.dtype, (examples, *held.type.shape)) for key, held in arrays.items()}

    @property
    def shared_specs(self) -> list[Spec]:
        """The dtypes and shapes of the leaves of all shared operands."""
        types = (self.program.shared_types[name] for name in self.program.shared)
        return [(leaf.dtype, leaf.shape) for type_ in types for leaf in leaves(type_)]

    def given_specs(self, examples: int | None) -> list[Spec]:
        """The dtypes and shapes of the leaves of all arguments and shared operands."""
        arrays = self.example_specs(examples)
        return [*(arrays[key] for key in self.layout.inputs), *self.shared_specs]

    def pack(self, arrived: SegmentResult) -> list[Array]:
        """All arrays of `arrived` that a leg makes."""
        now = arrived.snapshot
        return [
            *(now.state[key] for key in self.layout.carried),
            *(now.counters[key] for key in self.loop.counter_specs),
            arrived.can_run,
            arrived.paused,
            *(now.outputs[key] for key in self.layout.outputs),
            *([] if now.pool.whole else [now.state["example"], *(now.queue[key] for key in QUEUE)]),
        ]

    def unpack(self, arrays: Sequence[Array], before: Snapshot) -> SegmentResult:
        """The inverse of `pack`, after a leg on from `before`."""
        remaining = iter(arrays)
        state = {**before.state, **{key: next(remaining) for key in self.layout.carried}}
        counters = {key: next(remaining) for key in self.loop.counter_specs}
        can_run, paused = next(remaining), next(remaining)
        outputs = {key: next(remaining) for key in self.layout.outputs}
        queue: State = {}
        if not before.pool.whole:
            state["example"] = next(remaining)
            queue = {key: next(remaining) for key in QUEUE}
        after = replace(before, state=state, counters=counters, outputs=outputs, queue=queue)
        return SegmentResult(after, can_run, paused)

    # -- the end -------------------------------------------------------------------------------------------------------

    def outcome(
        self,
        counters: Mapping[str, Array],
        outputs: Mapping[str, Array],
        capacity: Any,
        examples: Any = None,
    ) -> Outcome:
        """Make the outcome of a run; `examples` is their number, where outputs have room for more."""
        layout = self.layout
        if examples is not None:
            outputs = {key: self.backend.rows_at(array, 0, examples) for key, array in outputs.items()}
        keys = [key for name in self.program.results for key in layout.keys("result", name)]
        counts = Counts(*(counters[name] for name in (*COUNTED, "trips")))
        return Outcome(
            values=tuple(blanked(self.program, self.backend, [outputs[key] for key in keys], outputs["status"])),
            status=outputs["status"],
            site=outputs["site"],
            place=outputs["place"],
            fault_values={name: [outputs[key] for key in layout.keys("shown", name)] for name in layout.shown},
            counting=partial(_same, counts),
            steps=outputs["steps"],
            stack_entries=capacity + 1 if layout.all_stacks else 0,
            backend=self.backend,
            can_fail=self.loop.can_fail,
            trace=counters.get("trace"),
            notes=tuple(self.notes),
        )


def blanked(program: Program, backend: Backend, results: Sequence[Array], status: Array) -> list[Array]:
    """The leaves `results` of a program, those of failed lanes NaN or 0.

    Not a part of the compiled program, which would have a kernel more for each leaf: most runs have no such lane.
    """
    if backend.is_concrete(status) and not np.asarray(status).any():
        return list(results)
    failed = backend.array(status, "int32") != LaneStatus.OK
    types = [type_ for name in program.results for type_ in leaves(program.types[name])]
    lanes = backend.lanes_of(status)
    blanks = [backend.cast(_blank(backend, lanes, type_), type_.returned) for type_ in types]
    return [backend.where(failed, blank, leaf) for blank, leaf in zip(blanks, results, strict=True)]


def _blank(backend: Backend, lanes: Any, type_: TensorType) -> Array:
    """Return the outputs of a failed lane: NaN, or zeros."""
    zeros = backend.zeros(lanes, type_)
    return zeros + float("nan") if type_.dtype.startswith(("float", "bfloat", "complex")) else zeros
