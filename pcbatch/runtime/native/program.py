"""The native form of a program: an executable in which one lane runs after another."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import Event
from typing import Any

import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import TensorType
from pcbatch.once import once
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Counts, Finished, Outcome, Run
from pcbatch.runtime.machine.rooms import Rooms, spare_lanes
from pcbatch.runtime.native.chunks import Bounds, Chunk, Chunks, Pace
from pcbatch.runtime.native.code import EXECUTIONS
from pcbatch.runtime.native.cores import Cores, Part
from pcbatch.runtime.native.lanes import ENDS, Lanes
from pcbatch.runtime.native.registers import Registers
from pcbatch.runtime.native.tile import fits, has_floats
from pcbatch.runtime.native.tiles import Tiles
from pcbatch.runtime.native.whole import WholeRuns

TOLD = 4
"""How many numbers come behind the `ENDS` of all lanes: what a chunk tells of itself (`Lanes.run`), and a witness."""
Direct = Callable[[Sequence[Array]], Sequence[Array]]
"""A compiled program on arrays of known shapes and dtypes."""
FAULTS = ENDS.index("fault")
"""Which of the `ENDS` says whether a lane has failed."""


class NativeProgram(WholeRuns):
    """Runs the program of a machine in the native form; what that cannot do, the machine does.

    These are runs in a caller's graph, runs in slices, and runs of no lanes.
    """

    def __init__(self, machine: Machine):
        super().__init__(machine)
        limits = machine.context.limits
        self.registers = Registers(self.program, limits.max_depth)
        self.one = Lanes(self.backend, self.registers, limits.max_steps)
        low = self.registers.with_low_stacks()
        self.low = self.one if low is None else Lanes(self.backend, low, limits.max_steps)
        self._is_low = low is not None
        self.tiles: Tiles | None = None
        # In a tile a function of floats may round otherwise than of a lane alone.
        apart = machine.context.is_deterministic and has_floats(self.program)
        if not apart and fits(self.program, self.backend):
            self.tiles = Tiles(self.backend, self.registers, limits.max_steps, CPU.native_tile)
        self.form = "native" if self.tiles is None else f"native: of {CPU.native_tile} lanes or more so many at a time"
        self._bounds: dict[Bounds, Array] = {}
        self._chunks: dict[int, Chunks] = {}
        self._blank: dict[int, Sequence[Array]] = {}
        self._cores = Cores(self.backend)
        self._compiled: dict[tuple[int, int, int, bool, bool], Callable[..., Any]] = {}

    @cached_property
    def _statuses(self) -> np.ndarray:
        """What becomes of a lane, by its fault site plus one."""
        return np.array([LaneStatus.OK, *(site.status for site in self.program.faults)], np.int32)

    @property
    def stack_entries(self) -> int:
        registers = (self.low if self._is_low else self.one).registers
        return registers.entries if registers.stacks else 0

    @once
    def rooms(self) -> Rooms:
        # Lanes that are idle cost nothing but room.
        return Rooms(lambda: spare_lanes([], self.machine.legs.layout.elements))

    def program_for(self, lanes: Any) -> Program:
        return replace(self.program, native=tuple(range(len(self.program.blocks))))

    _told_first = (("int32", (4,)),)

    def _compiled_for(self, lanes: int) -> Callable[..., Any]:
        return self._whole(lanes, counts=False, is_low=self._is_low)

    def _ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        chunks, all_lanes = self._chunks_of(lanes), (0, lanes)
        room, extended = self._room(lanes), self.machine.extended
        is_full, count = room == lanes, sum(map(len, map(self.registers.leaves, self.program.results)))
        cores, clock = self._cores, time.perf_counter
        budget, first = chunks.pace.budget, self._first(lanes, all_lanes)

        def bound(given: Sequence[Array], is_low: bool) -> Direct:
            whole = self._whole(lanes, counts=False, is_low=is_low)
            return self.backend.direct(whole, [first, *extended(given, lanes, room)])

        way = (self._is_low, bound(arrays, self._is_low))  # together: another thread may change it

        def run(given: Sequence[Array]) -> Finished:
            """As one part, in as little time as that takes: of few lanes a call is all that there is."""
            nonlocal budget, first, way
            if chunks.goes_on:
                return Finished.of(self._run_arrays(given, lanes))
            if way[0] and not self._is_low:
                way = (False, bound(given, is_low=False))
            is_low, direct = way
            is_short = cores.is_short(lanes)
            if not is_short and cores.would_split(lanes):
                return in_parts(given, cores.parts(lanes), is_low, direct)
            if chunks.pace.budget != budget:
                budget, first = chunks.pace.budget, self._first(lanes, all_lanes)
            started = clock()
            found = direct([first, *(given if is_full else extended(given, lanes, room))])
            reached, _, failed, _ = memoryview(found[0])[-TOLD:].tolist()
            if reached < lanes or failed:
                chunk = self._chunk(all_lanes, found)
                if self._needs_more(chunk, lanes, is_low):
                    return Finished.of(self._run_arrays(given, lanes))
                if reached < lanes:
                    return Finished.of(self._run_arrays(given, lanes, {all_lanes: chunk}))
            seconds = clock() - started
            if not is_short or seconds > CPU.native_split:
                cores.note(lanes, seconds)

            def outcome() -> Outcome:
                ends = np.asarray(found[0])
                return self._ended(self._of_all(ends, found[1:], lanes, counts=False), given, lanes)

            if failed:
                return Finished(None, outcome)
            values = found[1 : 1 + count]
            return Finished(values if is_full else self._of_examples(values, lanes), outcome)

        def in_parts(given: Sequence[Array], parts: Sequence[Part], is_low: bool, direct: Direct) -> Finished:
            flat = extended(given, lanes, room)

            def call(part: Part) -> Chunk:
                return self._chunk(part, direct([self._first(lanes, part), *flat]))

            found = self._cores.run(call, lanes, parts)
            if any(self._needs_more(chunk, lanes, is_low) for chunk in found):
                return Finished.of(self._run_arrays(given, lanes))
            if any(chunk.part[1] < part[1] for chunk, part in zip(found, parts, strict=True)):
                return Finished.of(self._run_arrays(given, lanes, dict(zip(parts, found, strict=True))))

            def outcome() -> Outcome:
                return self._ended(self._joined(found, lanes, counts=False, is_seen=False), given, lanes)

            failed = any(chunk.failed for chunk in found)
            return Finished(None if failed else self._columns(found, range(1, 1 + count)), outcome)

        return self._explained(run)

    def _run_arrays(self, flat: Sequence[Array], lanes: int, done: Mapping[Part, Chunk] | None = None) -> Outcome:
        return self._ended(self._run(flat, lanes, counts=False, done=done), flat, lanes)

    def _ended(self, arrays: State, flat: Sequence[Array], lanes: int) -> Outcome:
        def counting() -> Counts:
            found = np.asarray(self._run(flat, lanes, counts=True)[EXECUTIONS])
            executions = found.reshape(len(self.program.blocks), -1).sum(axis=1)  # of the slots of a tile
            return Counts(executions, active=executions, rows=executions, trips=np.int64(0))

        return self._outcome(arrays, counting)

    def _run(self, flat: Sequence[Array], lanes: int, counts: bool, done: Mapping[Part, Chunk] | None = None) -> State:
        """The outputs of all lanes by key, the `ENDS` as NumPy arrays; where it `counts`, `EXECUTIONS`, too.

        If some chunks are `done`, they are the first ones of the parts of all lanes.
        """
        flat, chunks = self.machine.extended(flat, lanes, self._room(lanes)), self._chunks_of(lanes)

        def call(bounds: Bounds, carried: Sequence[Array]) -> Chunk:
            told, is_low = self._told(bounds), self._is_low and not counts
            if carried:
                program = self._sealed(lanes, counts, goes_on=True)
                return self._chunk(bounds[:2], program(told, *carried, *flat), carried=len(carried))
            if is_low:
                chunk = self._chunk(bounds[:2], self._sealed(lanes, counts, is_low=True)(told, *flat))
                if not self._needs_more(chunk, lanes, is_low):
                    return chunk
            return self._chunk(bounds[:2], self._sealed(lanes, counts)(told, *flat))

        stop = Event()

        def run(part: Part) -> list[Chunk]:
            first = [done[part]] if done else []
            blank, cut = partial(self._nothing_carried, lanes), partial(self._cut, lanes=lanes, is_seen=is_seen)
            return chunks.run(part, call, blank, cut, stop, first)

        is_seen = self._sealed(lanes, counts) is not self._whole(lanes, counts)
        with self._timed():
            if is_seen or counts:  # a tape sees what its own thread does; and how long counting takes is of no account
                found: Sequence[list[Chunk]] = [run((0, lanes))]
            elif done:
                found = self._cores.all_of(run, [*done], stop)
            else:
                found = self._cores.run(run, lanes, self._cores.parts(lanes), stop)
        return self._joined([chunk for each in found for chunk in each], lanes, counts, is_seen)

    def _nothing_carried(self, lanes: int) -> Sequence[Array]:
        """What stands for what is carried where a lane begins; kept if it is small, as the sampler's 80 arrays are."""
        over = self._lanes(lanes)
        if over.at_once not in self._blank:
            made = over.nothing_carried()
            if sum(map(_size, self.registers.stacks.values())) * self.registers.entries > CPU.native_kept:
                return made
            self._blank[over.at_once] = made
        return self._blank[over.at_once]

    def _sealed(self, lanes: int, counts: bool, goes_on: bool = False, is_low: bool = False) -> Callable[..., Any]:
        return self.backend.forbid_gradients(self._whole(lanes, counts, goes_on, is_low), self.program.name)

    def _chunk(self, part: Part, found: Sequence[Array], carried: int = 0) -> Chunk:
        """The chunk of which a program has `found` this."""
        ends = np.asarray(found[0])
        reached, began, failed, _ = ends[-TOLD:].tolist()
        behind = len(found) - carried
        return Chunk((part[0], reached), bool(began), bool(failed), [ends, *found[1:behind]], found[behind:])

    def _needs_more(self, chunk: Chunk, lanes: int, is_low: bool) -> bool:
        """Whether a lane had not enough of low stacks, if the chunk had such; then they are high from now on."""
        if not (is_low and chunk.failed):
            return False
        failures = self._ends(chunk.arrays[0], lanes)[FAULTS]
        sites, _ = self.registers.sites_and_blocks(failures)
        is_lacking = bool((self._statuses[sites + 1] == LaneStatus.MAX_DEPTH).any())
        self._is_low = self._is_low and not is_lacking
        return is_lacking

    def _joined(self, chunks: Sequence[Chunk], lanes: int, counts: bool, is_seen: bool) -> State:
        """The outputs of all lanes, of chunks of which each has those of its part; a tape must know if it `is_seen`.

        If not, the parts are taken by NumPy: an array of TensorFlow's takes 0.1 ms to slice, the sampler's program has
        19 results.
        """
        if len(chunks) == 1 and not chunks[0].cut:
            packed, *others = chunks[0].arrays
            return self._of_all(packed, others, lanes, counts)
        pieces = [self._cut(chunk, lanes, is_seen) for chunk in chunks]
        used = [chunk.arrays for chunk in pieces if chunk.part[0] < chunk.part[1]]
        places = range(1, 1 + len(self._names(counts=False)))
        others = []
        for place in places:
            column = [arrays[place] for arrays in used]
            for arrays in used:  # what is put together is free to go
                arrays[place] = None
            others.append(self.backend.joined(*column) if is_seen else self._put_together(column))
        if counts:
            others.append(sum(np.asarray(chunk.arrays[places.stop]) for chunk in pieces))
        return self._kept(np.hstack([arrays[0] for arrays in used]), others, counts)

    def _cut(self, chunk: Chunk, lanes: int, is_seen: bool) -> Chunk:
        """A chunk without the lanes that are not its own; see `_joined`."""
        if chunk.cut:
            return chunk
        own, behind = slice(*chunk.part), 1 + len(self._names(counts=False))
        packed, others = chunk.arrays[0], chunk.arrays[1:behind]
        ends = self._ends(packed, lanes)[:, own].copy()
        rows = [array[own] if is_seen else np.asarray(array)[own].copy() for array in others]
        return replace(chunk, arrays=[ends, *rows, *chunk.arrays[behind:]], cut=True)

    def _columns(self, chunks: Sequence[Chunk], places: Iterable[int]) -> list[Array]:
        """Some of the arrays of chunks, each of its part of the lanes, put together by NumPy."""
        columns = ([np.asarray(chunk.arrays[place])[slice(*chunk.part)] for chunk in chunks] for place in places)
        return [self._put_together(column) for column in columns]

    def _put_together(self, column: Sequence[np.ndarray]) -> Array:
        return self.backend.array(np.concatenate(column), column[0].dtype.name)

    def _of_all(self, packed: np.ndarray, others: Sequence[Array], lanes: int, counts: bool) -> State:
        """The outputs by key, of one chunk of all lanes."""
        behind = len(self._names(counts=False))
        found = [*self._of_examples(others[:behind], lanes), *others[behind:]]
        return self._kept(self._ends(packed, lanes)[:, :lanes], found, counts)

    def _kept(self, ends: np.ndarray, others: Sequence[Array], counts: bool) -> State:
        """The outputs by key: the `ENDS`, `[ENDS, lanes]`, and the others."""
        return dict(zip(ENDS, ends, strict=True)) | dict(zip(self._names(counts), others, strict=True))

    def _ends(self, packed: np.ndarray, lanes: int) -> np.ndarray:
        """The `ENDS` of all lanes of a room, as a chunk packs them: `[ENDS, room]`."""
        room = self._room(lanes)
        return packed[: len(ENDS) * room].reshape(len(ENDS), room)

    def _of_examples(self, arrays: Sequence[Array], lanes: int) -> Sequence[Array]:
        """The first `lanes` rows of arrays that have a row for each lane of a room."""
        return arrays if self._room(lanes) == lanes else [self.backend.first(array, lanes) for array in arrays]

    def _lanes(self, lanes: int, is_low: bool = False) -> Lanes:
        """The program over so many lanes: in tiles where there are enough for one, and that is better."""
        if self.tiles is not None and lanes >= self.tiles.tile.width:
            return self.tiles
        return self.low if is_low else self.one

    def _names(self, counts: bool) -> list[str]:
        """The keys of all outputs but `ENDS`."""
        return [*self.one.outputs][len(ENDS) :] + [EXECUTIONS] * counts

    def _first(self, lanes: int, part: Part) -> Array:
        """What the first chunk of a part of the lanes is told."""
        bounds = (*part, self._chunks_of(lanes).pace.budget, 0)
        if bounds not in self._bounds:
            self._bounds[bounds] = self._told(bounds)
        return self._bounds[bounds]

    def _told(self, bounds: Bounds) -> Array:
        return self.backend.array(bounds, "int32")

    def _chunks_of(self, lanes: int) -> Chunks:
        """How runs of so many lanes are cut into chunks."""
        if lanes not in self._chunks:
            stacks = self.registers.entries * sum(map(_size, self.registers.stacks.values()))
            moved = stacks + lanes * sum(map(_size, self.one.outputs.values()))
            self._chunks[lanes] = Chunks(Pace(self._lanes(lanes).work, moved))
        return self._chunks[lanes]

    def _whole(self, lanes: int, counts: bool, goes_on: bool = False, is_low: bool = False) -> Callable[..., Any]:
        """The program of a chunk of so many lanes, perhaps one that `counts` what blocks run, or `goes_on` with a lane.

        Or one whose stacks are low: there a lane fails that needs more, and what it does is to be done anew. What it
        gives is packed where it is of one type: each array that comes back costs the call a microsecond.
        """
        over, room = self._lanes(lanes, is_low), self._room(lanes)

        def program(*arrays: Array) -> list[Array]:
            with self.machine.statistics.tracing(counts=True):
                held = len(over.carried) if goes_on else 0
                run = partial(over.run, room, counts=counts)
                found = self.backend.natively(
                    lambda bounds, *given: run(bounds, given[held:], carried=given[:held]), arrays
                )
                *outputs, witness = found
                behind = len(over.outputs)
                kept, told, others = outputs[:behind], outputs[behind:][: TOLD - 1], outputs[behind:][TOLD - 1 :]
                ends = self.backend.joined(*kept[: len(ENDS)], self.backend.stack([*told, witness]))
                return [ends, *kept[len(ENDS) :], *others]

        key = (room, over.at_once, over.registers.max_depth, counts, goes_on)
        if key not in self._compiled:
            name = self.machine.programs.name_of("native", *key)
            self._compiled[key] = self.backend.compile(program, jit=True, name=name)
        return self._compiled[key]

    def _outcome(self, arrays: State, counting: Callable[[], Counts]) -> Outcome:
        registers, legs = self.registers, self.machine.legs
        failures = arrays["fault"]
        site, place = registers.sites_and_blocks(failures) if failures.any() else (failures - 1,) * 2
        status = self._statuses[site + 1]

        def columns(what: str, name: str) -> list[Array]:
            return [arrays[key] for key in registers.keys(what, name)]

        results = [leaf for name in self.program.results for leaf in columns("result", name)]
        return Outcome(
            values=tuple(legs.blanked(results, status)),
            status=status,
            site=site,
            place=place,
            fault_values={name: columns("shown", name) for name in registers.shown},
            counting=counting,
            steps=arrays["steps"],
            stack_entries=self.stack_entries,
            backend=self.backend,
            can_fail=legs.loop.can_fail,
            native_lanes=self._lanes(len(status)).at_once,
        )


def _size(type_: TensorType) -> int:
    """The bytes of one value."""
    return np.dtype(type_.dtype).itemsize * math.prod(type_.shape)
