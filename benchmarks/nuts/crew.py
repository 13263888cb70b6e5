"""All contestants at work, one process each. One that fails in a cell says so there and starts anew for the next."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.conversation import ContestantError
from benchmarks.environments import PeerUnavailableError
from benchmarks.nuts.effective import least_sizes
from benchmarks.nuts.processes import CONTESTANTS, Process
from benchmarks.nuts.report import Cell, Figures
from benchmarks.nuts.targets import Target

START_LIMIT = 120.0
"""Seconds that a contestant may take to import what it needs."""


class Crew:
    """The processes of `names`, those whose environment can be made; a context manager that ends them."""

    def __init__(self, names: Iterable[str]):
        self._processes: dict[str, Process] = {}
        self._folder = tempfile.TemporaryDirectory()
        for name in names:
            try:
                self._processes[name] = Process(CONTESTANTS[name])
            except PeerUnavailableError as why:
                print(f"{name} is left out: {why}", file=sys.stderr, flush=True)
        for process in self._processes.values():  # or one's first call would be timed beside the others' imports
            with contextlib.suppress(ContestantError):  # which its cells will say
                process.ask(START_LIMIT, do="start")

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()
        self._folder.cleanup()

    def measured(
        self, target: Target, chains: int, trajectories: int, *, repeats: int, limit: float, budget: float
    ) -> Cell:
        """All contestants' figures at one target: made ready in turn, timed by turns, and rows counted last.

        Args:
            target: the density.
            chains: how many.
            trajectories: of each chain.
            repeats: timed calls of each contestant; every repeat starts with another one.
            limit: seconds after which a call is given up, and the contestant with it.
            budget: seconds of timed calls after which a contestant makes no more.
        """
        cell = {name: Figures(chains, trajectories, draws=CONTESTANTS[name].has_draws) for name in self._processes}
        for name, figures in cell.items():
            self._attempt(name, figures, partial(_prepare, name=name, target=target, limit=limit))
        names, file = list(cell), Path(self._folder.name) / "draws.npy"
        for repeat in range(repeats):
            start = repeat % len(names)
            for name in names[start:] + names[:start]:
                if sum(cell[name].wall) < budget:
                    self._attempt(name, cell[name], partial(_run, repeat=repeat, limit=limit, file=file))
        for name, figures in cell.items():
            self._attempt(name, figures, partial(_count, limit=limit))
        return cell

    def _attempt(self, name: str, figures: Figures, action: Callable[..., None]) -> None:
        """Do `action` unless the contestant failed before; if it fails now, say why in its figures."""
        if figures.failure:
            return
        try:
            action(self._processes[name].ask, figures)
        except ContestantError as why:
            figures.failure = str(why)
            self._processes[name].close()
            self._processes[name] = Process(CONTESTANTS[name])


def _prepare(ask: Any, figures: Figures, name: str, target: Target, limit: float) -> None:
    variant = CONTESTANTS[name].variant
    reply = ask(
        limit,
        do="prepare",
        target=target.name,
        chains=figures.chains,
        trajectories=figures.trajectories,
        variant=variant,
    )
    figures.first = reply["seconds"]


def _run(ask: Any, figures: Figures, repeat: int, limit: float, file: Path) -> None:
    reply = ask(limit, do="run", seed=1 + repeat, draws=str(file))
    figures.wall.append(reply["wall"])
    figures.cpu.append(reply["cpu"])
    figures.leapfrogs.append(reply["leapfrogs"])
    sizes = least_sizes(np.load(reply["draws"])) if reply["draws"] else None
    if sizes:
        figures.sizes.append(sizes)


def _count(ask: Any, figures: Figures, limit: float) -> None:
    figures.count = ask(limit, do="count", seed=1)
