"""A run that can be saved: its standing, its inputs, and its program's identity.

Such a run goes in slices: legs with budgets of trips, so that Python gets a turn about four times a second.
Budgets are an argument of the compiled leg, so nothing is compiled for them; and a slice is a leg, so how a run is
sliced changes nothing in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.notice import silent
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.segments import QUEUE, Legs, Snapshot
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.resume import savefile
from pcbatch.threads import Interrupts

# -- numbers -----------------------------------------------------------------------------------------------------------
# Checks that the numbers of a saved state fit each other: they are indices, and must lead to something.
#
# A file's checksum says that it is whole, not that a run has written it.

Arrays = Mapping[str, np.ndarray]


def wrong(
    layout: Layout, state: Arrays, examples: Arrays, counters: Arrays, queue: Arrays, capacity: int
) -> str | None:
    """A fault of the arrays of a run, of the right dtypes and shapes, on stacks of this `capacity`; None if none."""
    named = {f"state/{key}": array for key, array in state.items()}
    named |= {f"example/{key}": array for key, array in examples.items()}
    named |= {f"counter/{key}": array for key, array in counters.items()}
    named |= {f"queue/{key}": array for key, array in queue.items()}
    for name, (first, last) in _ranges(layout, len(examples["status"]), capacity).items():
        array = named.get(name)
        if array is not None and array.size and not first <= array.min() <= array.max() <= last:
            return f"its array {name!r} has numbers beyond {first} to {last}"
    return next((why for holds, why in _relations(layout, state, examples, queue) if not holds), None)


def _ranges(layout: Layout, examples: int, capacity: int) -> dict[str, tuple[int, int]]:
    """The least and the greatest number that an array may have."""
    faults, largest = len(layout.program.faults), 2**31 - 1
    ends = {"pc": layout.failed(layout.start - 1), "example": examples - 1, "fault": faults, "steps": largest}
    ends |= {
        "calls": layout.finish,
        "depth": capacity + 1,
        "room": capacity,
        **dict.fromkeys(layout.pointers, capacity),
    }
    found = {f"state/{key}": (0, end) for key, end in ends.items()}
    found |= {"example/site": (-1, faults - 1), "example/place": (-1, layout.start - 1), "example/steps": (0, largest)}
    found |= {"queue/examples": (0, examples), "queue/begun": (0, examples)}
    return found | {f"counter/{key}": (0, savefile.LARGEST) for key in ("trips", "executions", "active", "rows")}


def _relations(layout: Layout, state: Arrays, examples: Arrays, queue: Arrays) -> Iterator[tuple[bool, str]]:
    """Conditions on the numbers, each with the fault where it does not hold."""
    pc, held = state["pc"], state["example"][state["pc"] != layout.free]
    yield len(np.unique(held)) == len(held), "two lanes hold the same example"
    is_right = (pc == layout.free) | ((pc > layout.free) == (state["fault"] > 0))
    yield bool(is_right.all()), "lanes have failed in it for no reason, or go on after they have failed"
    if layout.has_calls:
        yield _leads_back(layout, state), "its stacks of program counters do not lead back to the end"
    status, site, place = examples["status"], examples["site"], examples["place"]
    statuses = np.array([LaneStatus.OK, *(fault.status for fault in layout.program.faults)], np.int32)
    is_open = (status == LaneStatus.UNFINISHED) & (site < 0)
    is_right = (is_open | (status == statuses[site + 1])) & ((site < 0) == (place < 0))
    yield bool(is_right.all()), "the status of an example is not that of its fault"
    running = state["example"][pc <= layout.start]
    yield bool((status[running] == LaneStatus.UNFINISHED).all()), "lanes run examples that have ended"
    begun = int(queue["begun"])
    yield begun <= int(queue["examples"]), "more examples have begun than there are"
    yield bool((held < begun).all()), "lanes hold examples that are still to begin"
    yield bool((status[begun:] == LaneStatus.UNFINISHED).all()), "examples have ended that are still to begin"


def _leads_back(layout: Layout, state: Arrays) -> bool:
    """Return whether each running lane has FINISH at the bottom of its stack of program counters, and blocks above."""
    calls, depth, runs = state["calls"], state["depth"], state["pc"] < layout.start
    entries = np.arange(calls.shape[1])
    above = runs[:, None] & (entries > 0) & (entries < depth[:, None])
    return bool(
        (calls[:, 0] == layout.finish).all() and (depth[runs] > 0).all() and (calls[above] < layout.start).all()
    )


# -- checkpoint --------------------------------------------------------------------------------------------------------

FORMAT = 3
"""The version of the file's contents. It goes up with every change of the header or of the arrays' names.

2: which example each lane holds, and inputs and outputs by example; labels behind the blocks' numbers.
3: the queue of examples that are to begin.
"""

FORM = {
    "format": int,
    "pcbatch": str,
    "python": str,
    "captured": {str: str},
    "program": str,
    "options": {str: object},
    "types": {str: str},
    "shared": [str],
    "defaults": {str: int},
    "records": [str],
}
"""The fields of a header."""

Origin = Mapping[str, Any]
"""A description of a run for JSON: "program" (a digest), "options", and whatever is needed to find the program."""
Operands = Mapping[str, Sequence[Array]]
"""The leaves of shared operands by their names."""


@dataclass(frozen=True)
class Checkpoint:
    """A run between two slices. `shared` are the arguments that all lanes share, `captured` what the function captures.

    Captured arrays are not saved, as the function has them, only their digests.
    """

    snapshot: Snapshot
    shared: Operands
    captured: Operands
    origin: Origin
    version: str
    interrupted: bool

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to `path`; OSError where that fails, and then a file that was there is as it was."""
        header = {
            "format": FORMAT,
            "pcbatch": self.version,
            "python": python_version(),
            "captured": digests(self.captured),
            **self.origin,
        }
        now = self.snapshot
        parts = {
            "state": now.state,
            "example": {**now.inputs, **now.outputs},
            "counter": now.counters,
            "queue": now.queue or dict.fromkeys(QUEUE, np.int32(now.examples)),
        }
        arrays = {f"{part}/{key}": np.asarray(array) for part, found in parts.items() for key, array in found.items()}
        arrays |= {f"shared/{n}/{i}": np.asarray(a) for n, found in self.shared.items() for i, a in enumerate(found)}
        savefile.write(path, header, arrays)


@dataclass(frozen=True)
class Saved:
    """A run as it was read from `path`; its versions fit."""

    path: str
    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]

    def snapshot(self, legs: Legs) -> Snapshot:
        """The state of the run: arrays of exactly the dtypes and shapes of `legs`, or PCB592."""
        layout = legs.layout
        stacks = [self.arrays.get(f"state/{key}") for key in layout.all_stacks]
        capacity = stacks[0].shape[1] - 1 if stacks and stacks[0] is not None and stacks[0].ndim > 1 else 0
        if stacks and not 0 <= capacity <= legs.limits.largest_capacity:
            raise self.refusal("PCB592", f"its stacks have room for {capacity} calls")
        specs: dict[str, Mapping[str, Spec]] = {
            "state": legs.lane_specs(self._length("state/pc"), capacity),
            "example": legs.example_specs(self._length("example/status")),
            "counter": legs.loop.counter_specs,
            "queue": QUEUE,
        }
        found = [name for name in self.arrays if not name.startswith("shared/")]
        if sorted(found) != sorted(f"{part}/{key}" for part, each in specs.items() for key in each):
            raise self.refusal("PCB592", "it does not hold the variables of this program")
        state, examples, counters, queue = (
            {key: self._array(f"{part}/{key}", *spec) for key, spec in each.items()} for part, each in specs.items()
        )
        if why := wrong(layout, state, examples, counters, queue, capacity):
            raise self.refusal("PCB592", why)
        inputs = {key: examples[key] for key in layout.inputs}
        outputs = {key: examples[key] for key in layout.outputs}
        pool = _pool(layout, state, outputs)
        return Snapshot(pool, state, counters, inputs, outputs, {} if pool.whole else queue)

    def _length(self, name: str) -> int:
        """The number of lanes or examples that an array has."""
        array = self.arrays.get(name)
        return 0 if array is None or not array.shape else len(array)

    def shared(self, name: str, leaves: Sequence[tuple[str, tuple[int, ...]]]) -> list[np.ndarray]:
        """The leaves of a shared argument, of these dtypes and shapes."""
        return [self._array(f"shared/{name}/{i}", dtype, shape) for i, (dtype, shape) in enumerate(leaves)]

    def _array(self, name: str, dtype: str, shape: tuple[int | None, ...]) -> np.ndarray:
        array = self.arrays.get(name)
        wanted = np.dtype(dtype)
        if array is not None and array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
            array = array.view(wanted)  # NumPy's files know bfloat16 only as two bytes
        if array is None or array.dtype != wanted or array.shape != shape:
            is_ = "missing" if array is None else f"{array.dtype}{list(array.shape)}"
            raise self.refusal("PCB592", f"its array {name!r} is {is_}, not {dtype}{list(shape)}")
        return array

    def check_captured(self, captured: Operands) -> None:
        """PCB594 if the function captures other arrays now than when the run was saved."""
        before, now = self.header["captured"], digests(captured)
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        if changed:
            names = ", ".join(f"`{name}`" for name in changed)
            raise self.refusal(
                "PCB594",
                f"the function captures other arrays now ({names}): a run that began with some and went on with others "
                "would be no run of either; give them the values back that they had",
            )

    def check_options(self, options: Mapping[str, Any], later: Mapping[str, Any]) -> None:
        """PCB593 if the run began under other options; `later` are those that a file may lack, as they were then."""
        before = {**later, **self.header["options"]}
        for name in sorted(before.keys() | options.keys()):
            if before.get(name) != options.get(name):
                raise self.refusal(
                    "PCB593",
                    f"it runs under {name}={before.get(name)!r:.60}, not {options.get(name)!r}; go on with the same",
                )

    def refusal(self, code: str, why: str) -> UsageError:
        """The error that says why this run cannot go on."""
        return UsageError(code, f"the run in {self.path} cannot go on here: {why}")


def read(path: str, version: str) -> Saved:
    """The run that was saved to `path`: OSError, PCB590 (damaged) or PCB591 (of another version)."""
    header, arrays = savefile.read(path)
    saved = Saved(path, header, arrays)
    for name, now in (("format", FORMAT), ("pcbatch", version), ("python", python_version())):
        if header.get(name) != now:
            what = "file format" if name == "format" else name
            raise saved.refusal("PCB591", f"it was saved by {what} {header.get(name)!s:.60}, this is {now}")
    with savefile.interpreting(path):
        savefile.check(header, FORM)
    return saved


def _pool(layout: Layout, state: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> Pool:
    """The pool that a saved run is in."""
    lanes, examples = len(state["pc"]), len(outputs["status"])
    each_its_own = np.array_equal(state["example"], np.arange(examples))
    busy = (state["pc"] != layout.start) & (state["pc"] != layout.free)
    return Pool(lanes, examples, whole=bool(each_its_own and busy.all()))


def digests(operands: Operands) -> dict[str, str]:
    """A digest of each operand's dtypes, shapes and bytes."""
    found = {}
    for name, leaves in operands.items():
        digest = hashlib.sha256()
        for leaf in leaves:
            array = np.ascontiguousarray(leaf)
            digest.update(f"{array.dtype.name} {np.shape(leaf)} ".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
        found[name] = digest.hexdigest()
    return found


def python_version() -> str:
    """The version of Python, without its last number: programs are told apart by their byte code."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


# -- slices ------------------------------------------------------------------------------------------------------------


SLICE_SECONDS = 0.25
"""Seconds that a slice is to last."""
FIRST_TRIPS = 64
"""The budget of the first slice, of which nothing is known yet."""
STEEPEST = 4
"""The factor by which a budget may change from one slice to the next: one may have waited for the compiler."""


@dataclass(frozen=True)
class SliceState:
    """The state of a run after its last slice, and whether it was interrupted then: by Ctrl-C, or by an exception."""

    snapshot: Snapshot
    outcome: Outcome
    interrupted: bool


def run_slices(
    machine: Machine,
    snapshot: Snapshot,
    shared: Sequence[Any],
    watch: Watch | None = None,
    guard: Callable[[Snapshot], AbstractContextManager[Any]] = lambda snapshot: contextlib.nullcontext(),
) -> SliceState:
    """Go on from `snapshot` to the end of the run or to a KeyboardInterrupt.

    Each slice runs inside `guard(snapshot)`, and `watch` is told of its end. A KeyboardInterrupt before the first slice
    has ended goes through: nothing has happened yet. After that nothing is lost but a slice, if even that.
    """
    trips, last, raised = FIRST_TRIPS, None, False
    with Interrupts() as interrupts:
        try:
            while True:
                started = perf_counter()
                with guard(snapshot):
                    arrived, outcome = machine.leg(snapshot, shared, trips)
                    can_run, paused = bool(arrived.can_run), bool(arrived.paused)  # waits for the device
                last = (arrived.snapshot, outcome)
                if watch is not None:
                    watch(outcome)
                larger = machine.grown(arrived.snapshot) if paused else None
                if larger is not None:
                    last = (larger, outcome)  # or a run interrupted and resumed right here would not go on
                if interrupts.pending or (larger is None and not can_run):
                    break
                snapshot = last[0]
                trips = next_budget(trips, perf_counter() - started)
        except KeyboardInterrupt:
            if last is None:
                raise
            raised = True
    return SliceState(*last, raised or interrupts.pending)


def next_budget(trips: int, seconds: float) -> int:
    """The trips of the next slice, after one of so many trips took so many seconds."""
    factor = SLICE_SECONDS / max(seconds, SLICE_SECONDS / STEEPEST)
    return max(1, int(trips * max(factor, 1 / STEEPEST)))


Watch = Callable[[Outcome], None]
"""A callback for the standing of the run after each slice."""


@contextmanager
def bar(program: Program, examples: int) -> Iterator[Watch]:
    """A bar of tqdm's, in a notebook or a terminal; tqdm's own environment variables (TQDM_DISABLE, ..) hold."""
    from tqdm.auto import tqdm  # only now: it looks for a notebook

    with silent(), tqdm(total=examples, desc=program.name, unit="lane") as shown:

        def watch(outcome: Outcome) -> None:
            run = Run.of(program, outcome)
            ended = int(np.count_nonzero(run.status != LaneStatus.UNFINISHED))
            text = f"{run.trips} trips, {run.utilization.overall:.0%} of rows of use"
            shown.set_postfix_str(text, refresh=False)
            shown.update(ended - shown.n)

        yield watch
