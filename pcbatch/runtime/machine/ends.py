"""START and FINISH: the blocks at which an example enters a lane, and at which it has left its results.

They are blocks of the pool, not of the program, with program counters like any other (`Layout.start`, `Layout.finish`),
and they act on the lanes that wait there. Between them every leg's loop lies: START runs before it, FINISH after it, so
a pool pays nothing for them in a trip. Where a pool is whole, START runs once, before the first leg, and FINISH reads
all examples' outputs off their lanes, which stay where they are, as nobody waits for one.

A refill would choose lanes whose program counter is FREE, write into `example` which examples they get, and set their
program counters to START; that is all there is to it, between two legs or, with guards, in a trip.
"""

from __future__ import annotations

from collections.abc import Mapping

from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import Layout, to_stored


def first_state(
    backend: Backend, layout: Layout, pool: Pool, inputs: Mapping[str, Array], capacity: Array | int
) -> State:
    """The state in which a run begins: the first lanes hold the first examples, lanes that are left over are free.

    In a whole pool all have started. The stacks have room for `capacity` live calls.
    """
    state = layout.free_lanes(backend, pool.lanes, capacity)
    lanes = backend.lane_numbers(pool.lanes)
    if pool.whole:
        return start(backend, layout, pool, {**state, "example": lanes}, inputs)
    holds = lanes < pool.examples
    return {
        **state,
        "example": backend.where(holds, lanes, backend.constant(0)),
        "pc": backend.where(holds, backend.constant(layout.start), backend.constant(layout.free)),
    }


def start(backend: Backend, layout: Layout, pool: Pool, state: State, inputs: Mapping[str, Array]) -> State:
    """`state` after START: lanes that wait there have their examples' inputs, empty stacks, and wait at block 0.

    In a whole pool all lanes are new and start.
    """
    program, new = layout.program, dict(state)
    nothing = backend.zeros(backend.lanes_of(state["pc"]), TensorType("int32"))
    starting = nothing == 0 if pool.whole else state["pc"] == layout.start

    def give(key: str, value: Array) -> None:
        new[key] = value if pool.whole else backend.where(starting, value, state[key])

    for key in ("pc", "fault", "steps", *layout.pointers):
        give(key, nothing)
    if layout.has_calls:  # the label at the bottom of `calls` is there from the first
        give("depth", nothing + 1)
    for name in program.parameters if pool.whole else program.storage:  # in a new lane all else reads zero
        types = layout.leaves(name)
        if name in program.parameters:
            given = [inputs[key] for key in layout.keys("input", name)]
            values = given if pool.whole else [backend.take(each, state["example"]) for each in given]
        else:
            values = [backend.zeros(backend.lanes_of(nothing), type_) for type_ in types]
        for key, value in zip(layout.tops(name), values, strict=False):  # no keys for a "stack"
            give(key, value)
        if layout.storage(name) == "stack":
            for key, type_, value in zip(layout.stacks(name), types, values, strict=True):
                new[key] = backend.masked_store(state[key], [nothing], starting, to_stored(backend, value, type_))
    return new


def finish(backend: Backend, layout: Layout, pool: Pool, state: State, outputs: State) -> tuple[State, State]:
    """State and outputs after FINISH: what lanes hold is written by example, and lanes that have ended are free.

    Lanes end at FINISH or by failing. Of an example that has not ended, status and steps are written; its results are
    of no account. In a whole pool `outputs` may be empty, and no lane is freed.
    """
    given = _given(backend, layout, state)
    if pool.whole:
        return state, given
    pc = state["pc"]
    holds = pc != layout.free
    written = {
        key: backend.masked_store(outputs[key], [], holds, value, state["example"]) for key, value in given.items()
    }
    ended = (pc == layout.finish) | (pc > layout.free)
    return {**state, "pc": backend.where(ended, backend.constant(layout.free), pc)}, written


def blank_outputs(backend: Backend, layout: Layout, examples: Array | int) -> State:
    """The outputs of examples of which none has ended."""
    blanks = {key: backend.zeros(examples, held.type) for key, held in layout.outputs.items()}
    unknown = {"status": int(LaneStatus.UNFINISHED), "site": -1, "place": -1}
    return {**blanks, **{key: blanks[key] + number for key, number in unknown.items()}}


def _given(backend: Backend, layout: Layout, state: State) -> State:
    """The outputs of the examples that lanes hold, by lane, in the order of `Layout.outputs`."""
    program, pc, fault = layout.program, state["pc"], state["fault"]
    statuses = backend.array([LaneStatus.OK, *(site.status for site in program.faults)], "int32")
    unfinished = (fault == 0) & (pc < layout.start)
    found = {
        "status": backend.where(unfinished, backend.constant(LaneStatus.UNFINISHED), backend.take(statuses, fault)),
        "site": fault - 1,
        "place": backend.where(fault > 0, pc - layout.failed(0), backend.constant(-1)),
        "steps": state["steps"],
    }
    for name in program.results:
        leaves = zip(layout.keys("result", name), layout.leaves(name), layout.read(backend, state, name), strict=True)
        found.update((key, backend.cast(leaf, type_.returned)) for key, type_, leaf in leaves)
    for name in layout.shown:
        found.update(zip(layout.keys("shown", name), layout.read(backend, state, name), strict=True))
    return found
