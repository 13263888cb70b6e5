"""The contestants at work: draws doubled until there are enough, in new processes; then warm calls in turns."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.conversation import ContestantError, Process
from benchmarks.environments import (
    DEVICES,
    JAX,
    NATIVE_LOOPS,
    NUTPIE,
    TENSORFLOW_PROBABILITY,
    Environment,
    PeerUnavailableError,
    with_flags,
)
from benchmarks.nuts.effective import errors, least_sizes
from benchmarks.nuts.end_to_end.contestants.worker import Job
from benchmarks.nuts.end_to_end.posteriors import POSTERIORS

START_LIMIT = 120.0
"""Seconds that a contestant may take to import what it needs."""
ALLOWED = 6.0
"""Distance of a mean or a standard deviation from the reference, in combined standard errors, at which draws are wrong.
There are ninety figures in a run on three posteriors, and the errors are estimates themselves, of 3,200 draws."""


@dataclass(frozen=True)
class Contestant:
    """A script of `contestants/`, one of its variants, and where it runs: beside pcbatch unless said otherwise."""

    script: str
    variant: str = ""
    environment: Environment | None = None
    flags: str = ""

    def process(self) -> Process:
        """A new process; PeerUnavailableError if its environment cannot be made."""
        python = self.environment.python() if self.environment else sys.executable
        module = f"benchmarks.nuts.end_to_end.contestants.{self.script}"
        return Process(module, python, {**with_flags(self.flags), "PCBATCH_CACHE": ""})


CONTESTANTS = {
    "pcbatch": Contestant("pcbatch_run", "per_chain"),
    "pcbatch-diag": Contestant("pcbatch_run", "per_chain diag"),
    "pcbatch-pooled": Contestant("pcbatch_run", "pooled"),
    "blackjax": Contestant("blackjax_run", "", JAX, DEVICES),
    "blackjax-native": Contestant("blackjax_run", "native", JAX, f"{DEVICES} {NATIVE_LOOPS}"),
    "blackjax-native-dense": Contestant("blackjax_run", "native dense", JAX, f"{DEVICES} {NATIVE_LOOPS}"),
    "blackjax-one-device": Contestant("blackjax_run", "", JAX),
    "numpyro": Contestant("numpyro_run", "", JAX, DEVICES),
    "numpyro-native": Contestant("numpyro_run", "native", JAX, f"{DEVICES} {NATIVE_LOOPS}"),
    "numpyro-native-dense": Contestant("numpyro_run", "native dense", JAX, f"{DEVICES} {NATIVE_LOOPS}"),
    "numpyro-one-device": Contestant("numpyro_run", "", JAX),
    "nutpie": Contestant("nutpie_run", "", NUTPIE),
    "nutpie-low-rank": Contestant("nutpie_run", "low-rank", NUTPIE),
    "tfp": Contestant("tfp_run", "cores", TENSORFLOW_PROBABILITY),
    "tfp-one-device": Contestant("tfp_run", "", TENSORFLOW_PROBABILITY),
}


@dataclass
class Figures:
    """One contestant at one posterior, with so many draws of each chain.

    `imports` are seconds until a new process has imported all, `cold` those of the first run after that, with tracing
    and compiling, `warm` of later runs with other seeds and starting points. `sizes` are the least effective sizes of x
    and x^2 of each run, the cold one first, `worst` the largest distance of a mean or standard deviation of all runs
    from the reference, in combined standard errors.
    """

    draws: int = 0
    imports: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    sizes: list[tuple[float, float]] = field(default_factory=list)
    worst: float = 0.0
    failure: str | None = None

    @property
    def times(self) -> tuple[float, float, float] | None:
        """Medians: imports, cold, warm."""
        if not (self.imports and self.cold and self.warm):
            return None
        return median(self.imports), median(self.cold), median(self.warm)


Row = Mapping[str, Figures]
"""All contestants by name, at one posterior."""


@dataclass(frozen=True)
class Question:
    """What is asked of all: chains, trajectories of warm-up, draws at first, the least size that ends the search."""

    chains: int
    warmup: int
    draws: int
    enough: float
    most: int
    """Draws of each chain at which the search is given up."""
    limit: float
    """Seconds after which a run is given up."""


class Run:
    """The contestants at one posterior, each with a process; a context manager that ends them."""

    def __init__(self, posterior: str, names: Sequence[str], question: Question):
        self._posterior, self._question = posterior, question
        self._model = POSTERIORS[posterior]
        self._data = {name: array.astype(np.float32) for name, array in self._model.data().items()}
        self._reference = (
            self._model.reference() if self._model.reference else np.full((4, self._model.numbers), np.nan)
        )
        self._processes: dict[str, Process] = {}
        self._folder = tempfile.TemporaryDirectory()
        self.found = {name: Figures() for name in names}

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()
        self._folder.cleanup()

    def measure(self, repeats: int, cold: int) -> Row:
        """All figures: cold runs one after another, then warm ones in turns."""
        for name in self.found:
            self._attempt(name, self._search)
        for _ in range(cold - 1):
            for name in self.found:
                self._attempt(name, self._cold)
        names = list(self.found)
        for repeat in range(repeats):
            start = repeat % len(names)
            for name in names[start:] + names[:start]:
                self._attempt(name, self._warm, seed=1 + repeat)
        return self.found

    def _attempt(self, name: str, action: Any, **options: Any) -> None:
        """Do `action` unless the contestant failed before; if it fails now, say why in its figures."""
        figures = self.found[name]
        if not figures.failure:
            try:
                action(name, figures, **options)
            except (ContestantError, PeerUnavailableError) as why:
                figures.failure = str(why)

    def _search(self, name: str, figures: Figures) -> None:
        """Runs in new processes, each with twice the draws of the one before, until the last one's are enough."""
        question = self._question
        figures.draws = question.draws
        self._cold(name, figures)
        while min(figures.sizes[-1]) < question.enough:
            if 2 * figures.draws > question.most:
                x, x2 = figures.sizes[-1]
                raise ContestantError(f"{figures.draws} draws of each chain have effective sizes of {x:.0f}, {x2:.0f}")
            figures.draws *= 2
            figures.cold.clear()
            figures.sizes.clear()
            self._cold(name, figures)

    def _cold(self, name: str, figures: Figures) -> None:
        if name in self._processes:
            self._processes.pop(name).close()
        started = time.perf_counter()
        self._processes[name] = CONTESTANTS[name].process()
        self._processes[name].ask(START_LIMIT, do="start")
        figures.imports.append(time.perf_counter() - started)
        figures.cold.append(self._seconds(name, figures, seed=0))

    def _warm(self, name: str, figures: Figures, seed: int) -> None:
        figures.warm.append(self._seconds(name, figures, seed))

    def _seconds(self, name: str, figures: Figures, seed: int) -> float:
        """Of one run, whose draws are judged."""
        question = self._question
        inputs, drawn = (str(Path(self._folder.name) / file) for file in ("inputs.npz", "draws.npy"))
        np.savez(inputs, starts=self._model.starts(question.chains, seed), **self._data)
        job = Job(self._posterior, question.chains, question.warmup, figures.draws, CONTESTANTS[name].variant)
        reply = self._processes[name].ask(
            question.limit, do="run", seed=seed, inputs=inputs, draws=drawn, job=asdict(job)
        )
        draws = np.load(drawn)
        figures.worst = max(figures.worst, distance(draws, self._reference))
        if not figures.worst < ALLOWED:
            raise ContestantError(f"a figure is {figures.worst:.1f} standard errors from the reference")
        figures.sizes.append(least_sizes(draws) or (0.0, 0.0))
        return reply["wall"]


def distance(draws: np.ndarray, reference: np.ndarray) -> float:
    """Of means and standard deviations from the reference, the largest, in combined Monte Carlo standard errors.

    Infinite where draws are not finite.

    Args:
        draws: `[chains, draws, numbers]`.
        reference: mean, its error, standard deviation, its error, `[4, numbers]`; NaN where they are not known.
    """
    if not np.isfinite(draws).all():
        return np.inf
    draws = draws.astype(float)
    found = np.array([draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))])
    combined = np.hypot(np.array(errors(draws)), reference[1::2])
    return float(np.nanmax(np.abs((found - reference[::2]) / combined), initial=0.0))
