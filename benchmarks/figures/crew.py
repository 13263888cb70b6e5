"""The contestants of the throughput figure, each in a process of its own, and how they are timed: in turns."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from benchmarks.conversation import ContestantError, Process
from benchmarks.environments import (
    FOLDER,
    JAX,
    JAX_ON_GPU,
    TENSORFLOW_PROBABILITY,
    TENSORFLOW_PROBABILITY_ON_GPU,
    Environment,
    PeerUnavailableError,
)
from benchmarks.figures.agreement import Moments
from benchmarks.figures.paper import Sizes

START_LIMIT = 120.0
"""Seconds that a contestant may take to import what it needs."""
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

STAN = Environment("stan", ("pystan==3.10.0", "httpstan==4.13.0", "setuptools"))
"""Wheels with Stan's compiler and headers; CmdStan itself is no package. A C++ compiler has to be there."""
STAN_CACHE = FOLDER / "stan-cache"


@dataclass(frozen=True)
class Contestant:
    """A script of `contestants/`, one of its variants, and where it runs: beside pcbatch unless said otherwise.

    `at_once` is how many chains it runs at a time, if others wait for these to end: then so many are measured, and the
    throughput of more is the same.
    """

    label: str
    script: str
    variant: str = ""
    environment: Environment | None = None
    at_once: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def process(self, device: str = "cpu") -> Process:
        """A new process on a device, "cpu" or "gpu"; PeerUnavailableError if its environment cannot be made."""
        environment = ON_GPU.get(self.environment, self.environment) if device == "gpu" else self.environment
        python = environment.python() if environment else sys.executable
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
        return Process(f"benchmarks.figures.contestants.{self.script}", python, {**hidden, **self.variables})


ON_GPU: dict[Environment | None, Environment] = {
    JAX: JAX_ON_GPU,
    TENSORFLOW_PROBABILITY: TENSORFLOW_PROBABILITY_ON_GPU,
}
"""The environments with the same packages for a GPU."""


CONTESTANTS = {
    "pc": Contestant("pcbatch (pc)", "pcbatch_machines", "pc"),
    "switch": Contestant("pcbatch, switch", "pcbatch_machines", "switch"),
    "hybrid": Contestant("pcbatch, hybrid", "pcbatch_machines", "hybrid"),
    "local": Contestant("pcbatch, local", "pcbatch_machines", "local"),
    "tfp": Contestant("TFP's NoUTurnSampler", "tfp_samplers", "sampler", TENSORFLOW_PROBABILITY),
    "tfp-machine": Contestant("TFP's machine, XLA", "tfp_samplers", "machine", TENSORFLOW_PROBABILITY),
    "tfp-stackless": Contestant("TFP's local, eager", "tfp_samplers", "stackless", TENSORFLOW_PROBABILITY),
    "numpyro": Contestant("NumPyro", "jax_samplers", "numpyro", JAX),
    "blackjax": Contestant("BlackJAX", "jax_samplers", "blackjax", JAX),
    "eager": Contestant("unbatched, eager", "pcbatch_single", at_once=1),
    "stan": Contestant(
        "Stan", "stan_sampler", environment=STAN, at_once=CORES, variables={"XDG_CACHE_HOME": str(STAN_CACHE)}
    ),
}
MACHINES = ("switch", "hybrid", "local")
"""Those of the paper, which draw what "pc" draws."""


@dataclass
class Figures:
    """One contestant at so many chains; `failure` says why something is missing.

    `measured` is how many chains it was that were measured: fewer, of one whose chains run one after another.
    """

    chains: int
    measured: int
    first: float | None = None
    seconds: list[float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    """Seconds of the calls with all that goes with them; of Stan far more than Stan's own."""
    gradients: list[int] = field(default_factory=list)
    rows: list[int | None] = field(default_factory=list)
    failure: str | None = None

    @property
    def rate(self) -> float | None:
        """Useful gradients per second, the median of the timed calls."""
        rates = [count / seconds for count, seconds in zip(self.gradients, self.seconds, strict=True)]
        return statistics.median(rates) if rates and not self.failure else None

    @property
    def useful(self) -> float | None:
        """Useful gradients over rows computed."""
        rows = [each for each in self.rows if each is not None]
        return sum(self.gradients) / sum(rows) if rows and len(rows) == len(self.gradients) else None


Cell = dict[str, Figures]
"""All contestants by name, at one number of chains."""
Cells = Mapping[int, Cell]
"""By number of chains."""


class Crew:
    """The processes of `names`; a context manager that ends them. One that cannot be had has a failure in each cell."""

    def __init__(self, names: Iterable[str], device: str = "cpu"):
        self._device = device
        self.moments: dict[str, Moments] = {}
        self._processes: dict[str, Process] = {}
        self._known: dict[tuple[str, int], Figures] = {}
        self._missing: dict[str, str] = {}
        for name in names:
            self._start(name)
        for name, process in list(self._processes.items()):  # all import at once; no call is timed beside that
            try:
                process.ask(START_LIMIT, do="start")
            except ContestantError as why:
                self._missing[name] = str(why)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()

    def measured(self, sizes: Sizes, chains: int, *, repeats: int, limit: float, budget: float) -> Cell:
        """All contestants' figures: made ready in turn, then timed by turns.

        Args:
            sizes: of the experiment.
            chains: how many.
            repeats: timed calls of each contestant; every repeat starts with another one.
            limit: seconds after which a call is given up, and with it the contestant at so many chains.
            budget: seconds of timed calls after which a contestant makes no more.
        """
        cell = {}
        for name in [*self._processes, *self._missing]:
            most = CONTESTANTS[name].at_once
            figures = Figures(chains, min(chains, most or chains), failure=self._missing.get(name))
            cell[name] = self._level(name, figures)
        names = [name for name, figures in cell.items() if figures.first is None and not figures.failure]
        for name in names:
            prepare = partial(_prepare, name=name, sizes=sizes, limit=limit)
            self._attempt(name, cell[name], prepare)
        for repeat in range(repeats):
            start = repeat % max(1, len(names))
            for name in names[start:] + names[:start]:
                if sum(cell[name].calls) < budget:
                    self._attempt(name, cell[name], partial(self._run, name=name, repeat=repeat, limit=limit))
        for name in names:
            self._known[name, cell[name].measured] = cell[name]
        return {name: cell[name] for name in CONTESTANTS if name in cell}

    def _level(self, name: str, figures: Figures) -> Figures:
        """What was measured of so many chains already, or nothing yet."""
        known = self._known.get((name, figures.measured))
        if known is None or CONTESTANTS[name].at_once is None:
            return figures
        return replace(known, chains=figures.chains)

    def _run(self, ask: Any, figures: Figures, name: str, repeat: int, limit: float) -> None:
        started = time.perf_counter()
        reply = ask(limit, do="run", seed=1 + repeat)
        figures.calls.append(time.perf_counter() - started)
        figures.seconds.append(reply["seconds"])
        figures.gradients.append(reply["gradients"])
        figures.rows.append(reply["rows"])
        moments = Moments.given(reply["moments"])
        self.moments[name] = self.moments[name] + moments if name in self.moments else moments

    def _start(self, name: str) -> None:
        try:
            self._processes[name] = CONTESTANTS[name].process(self._device)
        except PeerUnavailableError as why:
            self._missing[name] = str(why)

    def _attempt(self, name: str, figures: Figures, action: Callable[..., None]) -> None:
        """Do `action` unless the contestant failed before; if it fails now, its figures say why, and it starts anew."""
        if figures.failure:
            return
        try:
            action(self._processes[name].ask, figures)
        except ContestantError as why:
            figures.failure = str(why)
            self._processes[name].close()
            self._start(name)


def _prepare(ask: Any, figures: Figures, name: str, sizes: Sizes, limit: float) -> None:
    reply = ask(limit, do="prepare", variant=CONTESTANTS[name].variant, **sizes.given(figures.measured))
    figures.first = reply["seconds"]
