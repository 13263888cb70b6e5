"""Programs of one block as what they are: the batch goes through its pieces once, without the machine's loop.

In a machine program every block lies in a loop and under a guard. XLA runs convolutions and large products badly in
both: there each is one thread's work, and of convolutions not even the fast one's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.machine import LaneStatus, Program, Return
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.protocol import Array, Spec, State
from pcbatch.runtime.machine import admission
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Finished, Outcome, Run, Statistics
from pcbatch.runtime.machine.pool import BatchBuckets, Pool

ENDS = {"status": int(LaneStatus.OK), "site": -1, "place": -1, "steps": 0}
"""The end of every lane in a block that cannot fail, as in `Layout.outputs`. No step is made without a jump."""


def is_straight(program: Program) -> bool:
    """Tell whether every lane runs one block, once, and has returned then."""
    block = program.blocks[0]
    return len(program.blocks) == 1 and isinstance(block.terminator, Return) and not (block.pops or block.pushes)


class StraightLine:
    """Runs the program of a machine, which `is_straight`; in slices the machine does.

    A whole run is one execution of the block for all lanes, as the machine's is, so all that the machine says of a run
    is said of this one, too. Of no lanes there is none.
    """

    is_numpys = any_lanes = False

    def __init__(self, machine: Machine, form: str):
        self.machine, self.program, self.backend = machine, machine.program, machine.backend
        self.statistics: Statistics = machine.statistics
        self.form = form
        self.stack_entries = 0
        self._compiled: dict[int | None, Callable[..., Any]] = {}

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """Findings about places in the source, made while the program was traced."""
        return self.machine.notes

    def program_for(self, lanes: Any) -> Program:
        """The program that is executed for `lanes` lanes."""
        return self.program

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises what `run` would raise before it runs."""
        room = self._room(lanes)
        specs = self.machine.legs.given_specs(room)
        with self.machine.statistics.timed(), explaining(self.program, self.backend, self.machine.jit):
            self.backend.lower(self._whole(room), specs, self.machine.jit)

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Compile all that a run of `lanes` lanes on such arrays takes; by XLA, this is one."""
        room = self._room(lanes)
        if self.machine.jit:
            self.run(arguments, shared, lanes)
        else:
            given = self.machine.arrays_given(arguments, shared, lanes)
            with self.machine.statistics.timed(), explaining(self.program, self.backend, self.machine.jit):
                self.backend.direct(self._whole(room), self.machine.extended(given, lanes, room))

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`."""
        room = self._room(lanes)
        flat = self.machine.extended(self.machine.arrays_given(arguments, shared, lanes), lanes, room)
        if not isinstance(lanes, int):
            flat.append(lanes)
        sealed = self.backend.forbid_gradients(self._whole(room), self.program.name)
        with self.machine.statistics.timed(), explaining(self.program, self.backend, self.machine.jit):
            computed = sealed(*flat) if isinstance(lanes, int) else self._if_any(lanes, lambda: list(sealed(*flat)))
            return self._outcome(self._of_examples(computed, lanes), lanes)

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these; see `Machine.ready`."""
        room, extended = self._room(lanes), self.machine.extended
        direct = self.backend.direct(self._whole(room), extended(arrays, lanes, room))
        layout = self.machine.legs.layout
        results = [self._computed.index(key) for name in self.program.results for key in layout.keys("result", name)]
        status = self._computed.index("status") if "status" in self._computed else None

        def run(given: Sequence[Array]) -> Finished:
            try:
                computed = self._of_examples(direct(extended(given, lanes, room)), lanes)
                failed = status is not None and np.count_nonzero(np.asarray(computed[status]))
            except Exception:
                with explaining(self.program, self.backend, self.machine.jit):
                    raise
            values = None if failed else [computed[place] for place in results]
            return Finished(values, lambda: self._outcome(computed, lanes))

        return run

    @property
    def function_specs(self) -> list[Spec]:
        """The dtypes and shapes of what `as_function` takes."""
        return self.machine.function_specs

    def as_function(self) -> Callable[..., list[Array]]:
        """A whole run as one function; see `Machine.as_function`."""
        count = len(self.machine.legs.layout.inputs)

        def whole(present: Array, *arrays: Array) -> list[Array]:
            lanes = self.backend.lanes_of(present)
            computed = self._executed(arrays[:count], arrays[count:], lanes)
            return self._outcome(computed, lanes).arrays

        return whole

    def _room(self, lanes: Any) -> Any:
        """The number of lanes that the program for so many computes: those beyond them are thrown away."""
        return self.rooms.of(lanes) if isinstance(lanes, int) and self.backend.runs_now() else lanes

    @property
    def rooms(self) -> BatchBuckets:
        """The numbers of lanes for which programs are compiled."""
        return self.machine.rooms

    def _of_examples(self, arrays: Sequence[Array], lanes: Any) -> Sequence[Array]:
        room = self._room(lanes)
        return arrays if room is lanes or room == lanes else [self.backend.rows_at(array, 0, lanes) for array in arrays]

    def _outcome(self, computed: Sequence[Array], lanes: Any) -> Outcome:
        outputs = {**self._settled(lanes), **dict(zip(self._computed, computed, strict=True))}
        counters = dict(zip(("executions", "active", "rows", "trips"), self._counts(lanes), strict=True))
        return self.machine.legs.outcome(counters, outputs, 0)

    @cached_property
    def _computed(self) -> list[str]:
        """The keys of the outputs that have to be computed: where no lane can fail, no ends are among them."""
        legs = self.machine.legs
        return [key for key in legs.layout.outputs if legs.loop.can_fail or key not in ENDS]

    def _settled(self, lanes: Any) -> State:
        """The outputs that need not be computed."""
        if self.machine.legs.loop.can_fail:
            return {}
        if isinstance(lanes, int) and self.backend.is_concrete(self.backend.constant(0)):
            return {key: np.full(lanes, number, np.int32) for key, number in ENDS.items()}
        zeros = self.backend.zeros(lanes, TensorType("int32"))
        return {key: zeros + number for key, number in ENDS.items()}

    def _counts(self, lanes: Any) -> tuple[Array, ...]:
        """The block's runs, lanes and rows; and the trips that a machine would make."""
        if isinstance(lanes, int):
            ran, rows = np.array([lanes > 0], np.int64), np.array([lanes], np.int64)
            return ran, rows, rows, ran[0]
        rows = self.backend.cast(self.backend.stack([lanes]), "int64")
        ran = self.backend.cast(rows > 0, "int64")
        return ran, rows, rows, self.backend.sum(ran)

    def _whole(self, lanes: Any) -> Callable[..., Any]:
        """The program for a static number of lanes, or the one for all others.

        It takes the leaves of arguments and shared operands, and the number of lanes where it is not static; it gives
        the outputs that have to be computed.
        """
        key = lanes if isinstance(lanes, int) else None

        def program(*arrays: Array) -> list[Array]:
            with self.machine.statistics.tracing(counts=True):
                return self._traced(list(arrays), key)

        if key not in self._compiled:
            name = self.machine.programs.name_of("straight", key)
            self._compiled[key] = self.backend.compile(program, self.machine.jit, name=name)
        return self._compiled[key]

    def _traced(self, arrays: list[Array], lanes: Array | int | None) -> list[Array]:
        """The outputs of all lanes that have to be computed."""
        legs, backend = self.machine.legs, self.backend
        count = len(legs.layout.inputs)
        arguments, rest = arrays[:count], arrays[count:]
        if lanes is not None:
            return self._executed(arguments, rest, lanes)
        given = rest.pop()  # a shape is a constant to the compiler, a value need not be
        return self._executed(arguments, rest, backend.lanes_of(arguments[0]) if arguments else given)

    def _if_any(self, lanes: Array, run: Callable[[], list[Array]]) -> list[Array]:
        """The outcome for a number of lanes that is not known; of no lanes nothing is run.

        Some operations cannot be compiled for arrays without elements, so what is compiled lies in the condition, not
        the condition in it.
        """
        blank = admission.blank_outputs(self.backend, self.machine.legs.layout, lanes)
        return self.backend.cond(lanes > 0, run, [blank[key] for key in self._computed])

    def _executed(self, arguments: Sequence[Array], shared: Sequence[Array], lanes: Array | int) -> list[Array]:
        legs = self.machine.legs
        state = legs.once(arguments, shared, lanes)
        _, outputs = admission.finish(self.backend, legs.layout, Pool.of(lanes), state, {})
        return [outputs[key] for key in self._computed]
