"""Who takes part, each in a process of its own, and how they are timed: in turns, their results compared."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from benchmarks.against.inputs import CHEAP, RECURSIONS
from benchmarks.conversation import ContestantError, Process
from benchmarks.environments import (
    DEVICES,
    JAX,
    NATIVE_LOOPS,
    NUMBA,
    TENSORFLOW_PROBABILITY,
    Environment,
    PeerUnavailableError,
    with_flags,
)

START_LIMIT = 120.0
"""Seconds that a contestant may take to import what it needs."""
OURS = "pcbatch"
"""What all are compared with, so nothing is too long for it but `START_LIMIT`."""
FIRST = 3
"""Times as long as a warm call may a first one take, which compiles."""
LOOPS = ("collatz", "rejection", "bisection", "rk45")
"""The tasks without recursion and without writes to elements."""


@dataclass(frozen=True)
class Contestant:
    """A script of `contestants/`, one of its variants, and where it runs: beside pcbatch unless said otherwise."""

    script: str
    variant: str = ""
    tasks: tuple[str, ...] = (*CHEAP, *RECURSIONS)
    environment: Environment | None = None
    flags: str = ""
    """Of XLA: they hold for a whole process."""
    cores: int | None = None
    """So many cores it may use, if not all."""

    def process(self) -> Process:
        """A new process; PeerUnavailableError if its environment cannot be made."""
        python = self.environment.python() if self.environment else sys.executable
        return Process(f"benchmarks.against.contestants.{self.script}", python, with_flags(self.flags), self.cores)


CONTESTANTS = {
    "pcbatch": Contestant("pcbatch_batched", "auto"),
    "pcbatch, one core": Contestant("pcbatch_batched", "auto", cores=1),
    "lockstep": Contestant("pcbatch_batched", "lockstep"),
    "masked": Contestant("masked_by_hand", tasks=LOOPS),
    "vectorized_map": Contestant("vectorized", tasks=LOOPS),
    "vmap": Contestant("in_jax", "vmap", CHEAP, JAX),
    "vmap, one loop": Contestant("in_jax", "one loop", CHEAP, JAX),
    "vmap, cores": Contestant("in_jax", "vmap, cores", CHEAP, JAX, DEVICES),
    "lax.map": Contestant("in_jax", "map", CHEAP, JAX, NATIVE_LOOPS),
    "lax.map, cores": Contestant("in_jax", "map, cores", CHEAP, JAX, f"{NATIVE_LOOPS} {DEVICES}"),
    "numba": Contestant("numba_loops", "", environment=NUMBA),
    "numba, cores": Contestant("numba_loops", "cores", environment=NUMBA),
    "C": Contestant("in_c", tasks=CHEAP),
    "C, cores": Contestant("in_c", "cores", CHEAP),
    "numpy": Contestant("numpy_arrays", tasks=LOOPS),
    "python": Contestant("plain_python"),
    "python, cores": Contestant("plain_python", "cores"),
    "tfp": Contestant("tfp_machine", tasks=RECURSIONS, environment=TENSORFLOW_PROBABILITY),
}


Clock = Literal["seconds", "cpu"]
"""What a call took: as the wall's clock has it, or of all cores together."""


@dataclass
class Figures:
    """Seconds of one contestant at one task and number of lanes; `failure` says why some are missing."""

    first: float | None = None
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """CPU seconds of the same calls."""
    failure: str | None = None

    def median(self, clock: Clock = "seconds") -> float | None:
        """The median of the timed calls."""
        made = getattr(self, clock)
        return statistics.median(made) if made else None

    def best(self, clock: Clock = "seconds") -> float | None:
        """The shortest of the timed calls: on a shared machine the rest is other people's work."""
        return min(getattr(self, clock), default=None)


Cell = dict[str, Figures]
"""All contestants of a task by name, at one number of lanes."""


class Crew:
    """The processes of `names`; a context manager that ends them. One that cannot be had has a failure in each cell.

    Who they are is in `contestants`, those of this benchmark unless others are given.
    """

    def __init__(self, names: Iterable[str], contestants: Mapping[str, Contestant] | None = None):
        self._known = CONTESTANTS if contestants is None else contestants
        self._processes: dict[str, Process] = {}
        self._missing: dict[str, str] = {}
        self._paces: dict[tuple[str, str], float] = {}
        self._given_up: dict[tuple[str, str], str] = {}
        for name in names:
            self._start(name)
        for name, process in list(self._processes.items()):  # or first calls would be timed beside others' imports
            try:
                process.ask(START_LIMIT, do="start")
            except ContestantError as why:
                self._missing[name] = str(why)
                self._end(name)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._processes):
            self._end(name)

    def measured(self, task: str, lanes: int, *, repeats: int, limit: float, budget: float) -> Cell:
        """Figures of all contestants that have this task.

        Args:
            task: its name.
            lanes: how many.
            repeats: timed calls of each contestant; every repeat starts with another one.
            limit: seconds after which a warm call is given up (`FIRST` times as many for the first one). For more lanes
                that contestant is not asked again, nor one that would take longer by what it took for fewer.
            budget: seconds of timed calls of one contestant, after which it makes no more.

        Raises:
            AssertionError: if two contestants disagree.
        """
        names = [name for name in (*self._processes, *self._missing) if task in self._known[name].tasks]
        cell = {name: Figures(failure=self._missing.get(name)) for name in self._known if name in names}
        expected: tuple[str, np.ndarray] | None = None
        for name, figures in cell.items():
            figures.failure = figures.failure or self._given_up.get((name, task))
            if name != OURS and not figures.failure and (guess := self._paces.get((name, task), 0.0) * lanes) > limit:
                figures.failure = f"would take {guess:.0f} s"
            result = self._prepared(name, figures, task, lanes, limit)
            if result is not None and expected is None:
                expected = name, result
            elif result is not None and expected is not None:
                message = f"{expected[0]} and {name} disagree on {task}"
                np.testing.assert_allclose(result, expected[1], rtol=1e-6, atol=1e-7, err_msg=message)
        order = list(cell)
        for repeat in range(repeats):
            start = repeat % len(order)
            for name in order[start:] + order[:start]:
                if sum(cell[name].seconds) < budget:
                    self._timed(name, cell[name], limit)
        for name, figures in cell.items():
            if best := figures.best():
                self._paces[name, task] = best / lanes
            elif figures.failure:
                self._given_up[name, task] = figures.failure
        return cell

    def memory(self, name: str) -> int | None:
        """The bytes by which a contestant's process grows in a warm call of what was measured last, if it says so."""
        try:
            grown: int | None = self._processes[name].ask(START_LIMIT, do="memory")["bytes"]
        except ContestantError as why:
            self._gave_up(name, Figures(), why)
            return None
        return grown

    def _prepared(self, name: str, figures: Figures, task: str, lanes: int, limit: float) -> np.ndarray | None:
        """What the first call gave."""
        if figures.failure:
            return None
        variant = self._known[name].variant
        patience = START_LIMIT if name == OURS else FIRST * limit
        try:
            reply = self._processes[name].ask(patience, do="prepare", task=task, lanes=lanes, variant=variant)
        except ContestantError as why:
            self._gave_up(name, figures, why)
            return None
        figures.first = reply["seconds"]
        return np.load(reply["result"])

    def _timed(self, name: str, figures: Figures, limit: float) -> None:
        if figures.failure:
            return
        try:
            patience = START_LIMIT if name == OURS else limit
            reply = self._processes[name].ask(patience, do="run")
            figures.seconds.append(reply["seconds"])
            figures.cpu.append(reply["cpu"])
        except ContestantError as why:
            self._gave_up(name, figures, why)

    def _gave_up(self, name: str, figures: Figures, why: ContestantError) -> None:
        """Say why, and have the contestant anew for the next cell."""
        figures.failure = str(why)
        self._end(name)
        self._start(name)

    def _start(self, name: str) -> None:
        try:
            self._processes[name] = self._known[name].process()
        except PeerUnavailableError as why:
            self._missing[name] = str(why)

    def _end(self, name: str) -> None:
        self._processes.pop(name).close()
