"""START and FINISH: the blocks at which an example enters a lane, and at which it has left its results.

They are blocks of the pool, not of the program, with program counters like any other (`Layout.start`, `Layout.finish`),
and they act on the lanes that wait there. Between them the loop of trips lies: START runs before it, FINISH after it.
Where a pool is whole, START runs once, before the first leg, and FINISH reads all examples' outputs off their lanes,
which stay where they are, as nobody waits for one.

In any other pool examples wait in a queue, and free lanes take the next ones from it: a prefix sum gives every free
lane a number of its own. So a leg is a loop of rounds: FINISH, a refill, START, and trips until lanes enough have ended
for another round to pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import Layout, to_stored


def first_state(
    backend: Backend,
    layout: Layout,
    pool: Pool,
    inputs: Mapping[str, Array],
    capacity: Array | int,
    examples: Any = None,
) -> State:
    """The state in which a run begins: all lanes are free, but in a whole pool, in which all have started.

    There, if it is said how many `examples` there are, lanes beyond them are free, too, though they have inputs. The
    stacks have room for `capacity` live calls.
    """
    state = layout.free_lanes(backend, pool.lanes, capacity)
    if not pool.whole:
        return state
    lanes = backend.lane_numbers(pool.lanes)
    state = start(backend, layout, pool, {**state, "example": lanes}, inputs)
    if examples is None:
        return state
    return {**state, "pc": backend.where(lanes < examples, state["pc"], backend.constant(layout.free))}


def first_queue(backend: Backend, examples: Any) -> State:
    """The queue in which so many examples wait (int32 scalars): how many there are, and how many have begun.

    They begin in order.
    """
    return {"examples": backend.constant(0) + examples, "begun": backend.constant(0)}


def take_next(backend: Backend, layout: Layout, state: State, queue: State) -> tuple[State, State]:
    """State and queue after free lanes have taken the next examples, as far as there are: they are to start."""
    pc, begun, count = state["pc"], queue["begun"], queue["examples"]
    is_free = pc == layout.free
    number = backend.counted(is_free)
    takes = is_free & (number <= count - begun)
    taken = {
        "example": backend.where(takes, begun - 1 + number, state["example"]),
        "pc": backend.where(takes, backend.constant(layout.start), pc),
    }
    return {**state, **taken}, {**queue, "begun": begun + backend.sum(takes)}


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
    kept = program.parameters if pool.whole else program.storage  # in a new lane all else reads zero
    for name in (name for name in kept if layout.storage(name) != "example"):
        types = layout.leaves(name)
        if name in program.parameters:
            given = [inputs[key] for key in layout.keys("input", name)]
            values = given if pool.whole else [backend.load(each, [], state["example"]) for each in given]
        else:
            values = [backend.zeros(backend.lanes_of(nothing), type_) for type_ in types]
        for key, value in zip(layout.tops(name), values, strict=False):  # no keys for a "stack"
            give(key, value)
        if layout.storage(name) == "stack":
            for key, type_, value in zip(layout.stacks(name), types, values, strict=True):
                new[key] = backend.masked_store(state[key], [nothing], starting, to_stored(backend, value, type_))
    return new


def finish(backend: Backend, layout: Layout, pool: Pool, state: State, outputs: State) -> tuple[State, State]:
    """Return state and outputs after FINISH: lanes' results are written by example, and ended lanes are free.

    Lanes end at FINISH or by failing. Of an example that has not ended, status and steps are written; its results are
    of no account. In a whole pool `outputs` may be empty, and no lane is freed; what is beyond its examples reads as
    if it had not failed.
    """
    given = given_by(backend, layout, state)
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


def given_by(backend: Backend, layout: Layout, state: State) -> State:
    """The outputs of the examples that lanes hold, by lane, in the order of `Layout.outputs`."""
    program, pc, fault = layout.program, state["pc"], state["fault"]
    statuses = backend.array([LaneStatus.OK, *(site.status for site in program.faults)], "int32")
    unfinished = (fault == 0) & (pc < layout.start)
    found = {
        "status": backend.where(unfinished, backend.constant(LaneStatus.UNFINISHED), backend.load(statuses, [], fault)),
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
