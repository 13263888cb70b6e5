"""A program over all its lanes, a tile of them at a time; those that have ended make room for others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.native.code import EXECUTIONS
from pcbatch.runtime.native.lanes import Lanes, failed_too
from pcbatch.runtime.native.registers import Registers
from pcbatch.runtime.native.tile import Tile
from pcbatch.runtime.native.tile_code import TURNS, TileCode

AT_A_TIME = 8
"""Lanes of which a CPU computes numbers at a time: some eight of float32, and four of float64, two at once."""


class Tiles(Lanes):
    """The program over all lanes, `width` at a time: see `Lanes`.

    Where half of a tile have ended, lanes that come after take their places: so none waits long for the
    slowest. Each slot of a tile is of a `lane`, or of nobody, which is the lane behind all.
    """

    def __init__(self, backend: Backend, registers: Registers, max_steps: int | None, width: int):
        super().__init__(backend, registers, max_steps)
        self.tile, self.at_once = Tile(backend, width), width

    def run(
        self, lanes: int, bounds: Array, arrays: Sequence[Array], counts: bool = False, carried: Sequence[Array] = ()
    ) -> list[Array]:
        """See `Lanes.run`: what is said of a lane there is so of a tile, and the budget is of turns of its loops.

        All lanes before the one that would be next have ended, but some behind it may have, too.
        """
        backend, registers, program, tile = self.backend, self.registers, self.program, self.tile
        goes_on, width = bool(carried), self.tile.width
        remaining = iter(arrays)
        inputs = {key: next(remaining) for name in program.parameters for key in registers.keys("top", name)}
        shared = {name: [next(remaining) for _ in leaves(program.shared_types[name])] for name in program.shared}
        first, behind, budget, began = (backend.element(bounds, [backend.constant(place)]) for place in range(4))
        code = TileCode(tile, registers, self.max_steps, self.row_costs, shared, first < 0, counts)
        ended = tile.constant(code.places.ended)
        most = budget if goes_on else budget + budget
        # A tile that is gone on with is one of successive lanes; and how often a block has run is known of whole tiles.
        most_left = backend.constant(0 if goes_on or counts else width // 2)

        def few(now: State) -> Array:
            """So few lanes may be left that have not ended, and others join them."""
            are_others = backend.both(now["next"] < behind, now[TURNS] < budget)
            return backend.choose(are_others, most_left, backend.constant(0))

        def is_left(now: State) -> Array:
            return backend.both(tile.count(now["lane"] < lanes) > 0, now[TURNS] < most)

        def one(now: State) -> State:
            state = {key: now[key] for key in (*registers.types, TURNS, *([EXECUTIONS] if counts else []))}
            after = code.passed(state, most, few(now))
            end = {key: after[key] for key in state}
            has_ended = code.has_ended(end)
            left = tile.count(~has_ended)
            if counts and not goes_on:
                end[EXECUTIONS] = backend.choose(backend.equal(left, 0), end[EXECUTIONS], now[EXECUTIONS])
            joining = backend.choose(end[TURNS] < budget, behind, now["next"])
            # A pass costs something, even if no loop turns in it.
            passed = {**now, **end, TURNS: backend.add(end[TURNS], backend.constant(1))}
            return self._joined(passed, has_ended & (left <= few(now)), joining, inputs, code)

        nobody = tile.constant(lanes)
        start = {**code.start({}), "pc": ended, TURNS: backend.constant(0), "lane": nobody, "next": first}
        start["failed"] = backend.constant(0)
        start |= {f"all {key}": backend.zeros(lanes + 1, type_) for key, type_ in self.outputs.items()}
        if counts:
            start[EXECUTIONS] = backend.zeros(len(program.blocks), TensorType("int64", (width,)))
        start = self._joined(start, tile.constant_bool(True), behind, inputs, code)
        if goes_on:
            has_begun = tile.each(began > 0)
            known = dict(zip(self.carried, carried, strict=True))
            start |= {key: backend.choose(has_begun, known[key], start[key]) for key in registers.types}
        end = backend.while_loop(is_left, one, start)
        reached = backend.min(end["lane"])
        return [
            *(end[f"all {key}"][:lanes] for key in self.outputs),
            backend.choose(reached < end["next"], reached, end["next"]),
            backend.cast(reached < lanes, "int32"),
            end["failed"],
            *([end[EXECUTIONS]] if counts else []),
            *(end[key] for key in (registers.types if goes_on else ())),
        ]

    def _joined(self, now: State, is_over: Array, behind: Array, inputs: State, code: TileCode) -> State:
        """The tile `now`, with the outputs of its lanes beside those of all; lanes that come next join it for others.

        That is for those that are over, and as long as there are next ones up to the one `behind` them.
        """
        backend, tile = self.backend, self.tile
        outputs = self.kept(now)
        lanes = backend.lanes_of(now[f"all {next(iter(self.outputs))}"]) - 1
        before = now["lane"]  # not what is written: XLA would copy that to read it

        def over_from(slot: Array) -> Array:
            """The first slot from this one on whose lane is over; `width` if there is none."""

            def is_on(at: Array) -> Array:
                return backend.both(at < tile.width, ~backend.element(is_over, [at]))

            return backend.while_loop(is_on, lambda at: backend.add(at, backend.constant(1)), slot)

        def is_left(moved: State) -> Array:
            return moved["slot"] < tile.width

        def one(moved: State) -> State:
            slot, after = moved["slot"], moved["next"]
            lane, joins = backend.element(before, [slot]), after < behind
            kept = {key: backend.element(value, [slot]) for key, value in outputs.items()}
            found = {f"all {key}": backend.with_element(moved[f"all {key}"], [lane], kept[key]) for key in kept}
            found["failed"] = failed_too(backend, moved["failed"], kept)
            for key, array in inputs.items():  # anything where nobody joins
                found[key] = backend.with_element(moved[key], [slot], backend.element(array, [after]))
            here = backend.choose(joins, after, backend.constant(lanes))
            found["lane"] = backend.with_element(moved["lane"], [slot], here)
            found["next"] = backend.add(after, backend.cast(joins, "int32"))
            return {**found, "slot": over_from(backend.add(slot, backend.constant(1)))}

        start = {key: now[key] for key in (*(f"all {key}" for key in outputs), *inputs, "lane", "next", "failed")}
        moved = backend.while_loop(is_left, one, {**start, "slot": over_from(backend.constant(0))})
        begun, joined = code.start({}), is_over & (moved["lane"] < lanes)
        reset = {key: backend.choose(joined, begun[key], now[key]) for key in self.registers.types if key not in inputs}
        return {**now, **reset, **{key: moved[key] for key in start}}

    @property
    def work(self) -> float:
        """The estimated work of a turn of a tile, of which a CPU does several lanes' at a time."""
        return super().work * self.tile.width / AT_A_TIME

    @cached_property
    def carried(self) -> dict[str, TensorType]:
        """What a tile that was stopped holds, by key."""
        return {key: TensorType(type_.dtype, (self.tile.width,)) for key, type_ in self.registers.types.items()}

    def nothing_carried(self) -> list[Array]:
        """Arrays in the place of what is carried, for a tile that is to begin."""
        return [self.backend.zeros_of(type_) for type_ in self.carried.values()]
