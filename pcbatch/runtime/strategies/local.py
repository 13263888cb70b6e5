"""Local static autobatching, and its hybrid: the call stack is the host's (Radul et al., MLSys 2020, Algorithm 1).

A *frame* is the set of lanes that made a call together. The host runs the frame on top: of the blocks at which its
lanes wait that of the least program counter, for those lanes, until all of them have returned or failed; a block that
calls opens a frame for the lanes that go on from it. So lanes at other depths, or in other calls, never share a launch,
which is what program counters and stacks for each lane are there for.

"local" runs each block by TensorFlow's own kernels, "hybrid" by a program that XLA has compiled of it. What a block
does to a lane is the machine's own (`machine.execution`), on the machine's own state: values, statuses and steps are
the same. Frames lie in a list, as Python's own stack ends after a thousand calls.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from pcbatch.ir.machine import Program, PushJump, Return
from pcbatch.runtime.backends.protocol import Array, Backend, Spec, State
from pcbatch.runtime.machine import admission, gc_pause, state
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.outcome import Outcome, Standing
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.result_packing import argument_arrays, operand_arrays
from pcbatch.runtime.machine.state import GROWTH
from pcbatch.runtime.machine.values import Rows
from pcbatch.runtime.strategies.on_host import OnHost

Launch = Callable[..., Sequence[Array]]
"""A function of the state's arrays, the shared leaves and a mask of lanes: gives the arrays that the block changes."""


class LocalMachine(OnHost):
    """Runs one program frame by frame, its blocks compiled by XLA ("hybrid") or not ("local")."""

    any_lanes = False

    def __init__(
        self,
        program: Program,
        backend: Backend,
        *,
        compiled: bool,
        max_depth: int | None = None,
        max_steps: int | None = None,
    ):
        super().__init__(program, backend, "hybrid" if compiled else "local", compiled, max_depth, max_steps)
        self.runners = [BlockRunner(self.context, number) for number in range(len(program.blocks))]
        self._launches: dict[int, list[Launch]] = {}
        self._compiled: set[tuple[int, int, int]] = set()
        """The blocks that XLA has compiled, by number, for so many lanes and stacks of such a capacity."""
        self.watch: Callable[[int, np.ndarray], None] = lambda number, lanes: None
        """Hears of each launch: the number of its block, and the lanes that it is for, bool `[lanes]`."""

    @property
    def stack_entries(self) -> int:
        """The number of entries that the stacks of a run have at first; 0 if there are none."""
        return self.limits.first_capacity + 1 if self.layout.all_stacks else 0

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises what `run` would raise before it runs."""
        specs = self._specs(lanes, self.limits.first_capacity)
        with explaining(self.program, self.backend, self.compiled):
            launches = self._blocks(lanes)
            for launch in launches if self.compiled else []:
                self.backend.lower(launch, specs, True)

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Compile all that a run of `lanes` lanes on such arrays takes: every block is launched, for none of them."""
        given = argument_arrays(self.program, self.backend, arguments, lanes)
        capacity = self.limits.first_capacity
        with explaining(self.program, self.backend, self.compiled):
            launches = self._blocks(lanes)
            state = self.legs.begin(given, Pool.of(lanes), capacity).state
            carried = [state[key] for key in self.layout.carried]
            operands = operand_arrays(self.program, self.backend, shared)
            nobody = self.backend.array(np.zeros(lanes, bool), "bool")
            for number, launch in enumerate(launches if self.compiled else ()):
                with self._timed(number, lanes, capacity):
                    self.backend.forbid_gradients(launch, self.program.name)(*carried, *operands, nobody)

    # -- Algorithm 1 ---------------------------------------------------------------------------------------------------

    def launched(self, arguments: Sequence[Array], shared: Sequence[Array], lanes: int) -> Outcome:
        """Run all lanes to their ends, and count."""
        arrays = [*arguments, *shared]
        executions, active = (np.zeros(len(self.program.blocks), np.int64) for _ in range(2))
        launches = self._launched(arrays, lanes)
        _, _, standing = next(launches)
        for number, going, standing in launches:  # noqa: B007 -- the last one is the end
            self.watch(number, going)
            executions[number] += 1
            active[number] += np.count_nonzero(going)
        pool, state = Pool.of(lanes), {**standing.state}
        _, outputs = admission.finish(self.backend, self.layout, pool, state, {})
        counters = {
            "executions": executions,
            "active": active,
            "rows": executions * lanes,  # lanes that take no part are masked away
            "trips": np.int64(executions.sum()),
        }
        capacity = self.layout.capacity(self.backend, state)
        return replace(self.legs.outcome(counters, outputs, capacity), standing=partial(self._standing, arrays, lanes))

    def _standing(self, arrays: Sequence[Array], lanes: int, launches: int) -> Standing:
        """The lanes, and the frames, after so many launches of a run on these arrays."""
        return next(islice(self._launched(arrays, lanes), launches, None))[2]

    def _launched(self, arrays: Sequence[Array], lanes: int) -> Iterator[tuple[int, np.ndarray, Standing]]:
        """The beginning, and then each launch: its block's number, the lanes that it was for, and all lanes after it.

        There is one frame in the beginning, of all lanes, at the first block.
        """
        launches, blocks, start = self._blocks(lanes), self.program.blocks, self.layout.start
        count = len(self.layout.inputs)
        shared, capacity = arrays[count:], self.limits.first_capacity
        state = self.legs.begin(arrays[:count], Pool.of(lanes), capacity).state
        pc, done = np.zeros(lanes, np.int32), 0
        frames = [np.ones(lanes, bool)]
        yield 0, frames[0], Standing(0, self.layout, state, (*frames,))
        while frames:
            here = frames[-1] & (pc < start)
            if not here.any():
                frames.pop()
                continue
            number = int(pc[here].min())
            going = here & (pc == number)
            while self._lack_room(number, going, state, len(frames), capacity):
                capacity = min(capacity * GROWTH, self.limits.largest_capacity)
                state = self.layout.grown(self.backend, state, capacity)
            launch = self.backend.forbid_gradients(launches[number], self.program.name)
            given = (*(state[key] for key in self.layout.carried), *shared, self.backend.array(going, "bool"))
            with self._timed(number, lanes, capacity):
                after = launch(*given)
            state = {**state, **dict(zip(self._changed(number), after, strict=True))}
            pc = np.asarray(state["pc"])
            match blocks[number].terminator:
                case Return():
                    frames[-1] = frames[-1] & ~going
                case PushJump():
                    frames.append(going & (pc < start))
            done += 1
            yield number, going, Standing(done, self.layout, state, (*frames,))

    def _lack_room(self, number: int, going: np.ndarray, state: State, depth: int, capacity: int) -> bool:
        """Tell whether a lane of `going` lacks room for what the block pushes; all have `depth` program counters."""
        runner = self.runners[number]
        if not runner.can_lack_room or (self.layout.is_framed and depth <= capacity):
            return False
        return not np.asarray(runner.room(state))[going].all() and capacity < self.limits.largest_capacity

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _changed(self, number: int) -> Sequence[str]:
        return state.changes(self.layout, number, self.limits.max_steps)

    def _specs(self, lanes: int, capacity: int | None) -> list[Spec]:
        arrays = self.legs.lane_specs(lanes, capacity)
        return [*(arrays[key] for key in self.layout.carried), *self.legs.shared_specs, ("bool", (lanes,))]

    def _blocks(self, lanes: int) -> list[Launch]:
        """The launch of each block, traced once for so many lanes and stacks of any size.

        All at once: what the user's code reads while it is traced is watched in first runs only.
        """
        if lanes not in self._launches:
            started, specs = time.perf_counter(), self._specs(lanes, None)
            made = [
                self.backend.compile(self._launch(number), self.compiled, specs)
                for number in range(len(self.program.blocks))
            ]
            with gc_pause.paused(), explaining(self.program, self.backend, self.compiled):
                for launch in made:
                    self.backend.lower(launch, specs, False)
            self.statistics.compilations += 0 if self.compiled else len(made)
            self.statistics.trace_seconds += time.perf_counter() - started
            self._launches[lanes] = made
        return self._launches[lanes]

    @contextlib.contextmanager
    def _timed(self, number: int, lanes: int, capacity: int) -> Iterator[None]:
        """Count what XLA compiles inside, for the first launch of a block on arrays of these shapes."""
        started = time.perf_counter()
        yield
        shapes = (number, lanes, capacity)
        if self.compiled and shapes not in self._compiled:
            self._compiled.add(shapes)
            self.statistics.compilations += 1
            self.statistics.compile_seconds += time.perf_counter() - started

    def _launch(self, number: int) -> Launch:
        """The block as a function of arrays."""

        def launch(*arrays: Array) -> list[Array]:
            *given, mask = arrays
            count = len(self.layout.carried)
            state = dict(zip(self.layout.carried, given[:count], strict=True))
            shared = self.legs.operands(given[count:])
            with self.backend.scope(self.program.blocks[number].label):
                execution = Execution(self.context, number, state, shared, Rows.of_all(self.backend, mask))
                execution.execute()
                after = {**state, **execution.updates()}
            return [after[key] for key in self._changed(number)]

        return launch
