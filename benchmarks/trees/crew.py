"""Who takes part, each in a process of its own on one thread, and how they are timed: in turns, results compared."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import conversation
from benchmarks.conversation import ContestantError, Process
from benchmarks.environments import DYNET, FOLDER, Environment, PeerUnavailableError
from benchmarks.trees.networks import NETWORKS, units

LIMIT = 300.0
"""Seconds after which a contestant is given up."""
SEED = 1


@dataclass(frozen=True)
class Contestant:
    """A script of `contestants/`, one of its variants, and where it runs: beside pcbatch unless said otherwise."""

    script: str
    variant: str = ""
    environment: Environment | None = None

    def process(self) -> Process:
        """A new process; PeerUnavailableError if its environment cannot be made."""
        python = self.environment.python(conversation.ROOT / FOLDER) if self.environment else sys.executable
        variables = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return Process(f"benchmarks.trees.contestants.{self.script}", python, variables)


CONTESTANTS = {
    "pcbatch": Contestant("pcbatch_batched"),
    "pcbatch, forks": Contestant("pcbatch_batched", "forks"),
    "by hand": Contestant("by_hand"),
    "DyNet, agenda": Contestant("dynet_graphs", "agenda", DYNET),
    "DyNet, depth": Contestant("dynet_graphs", "depth", DYNET),
    "DyNet, unbatched": Contestant("dynet_graphs", "none", DYNET),
}


@dataclass
class Figures:
    """One contestant of one network at so many examples; `failure` says why something is missing."""

    units: int
    first: float | None = None
    seconds: list[float] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    failure: str | None = None

    @property
    def rate(self) -> float | None:
        """Leaves or tokens per CPU second of the best call: on a shared machine the rest is others' work."""
        return self.units / min(self.seconds) if self.seconds and not self.failure else None


Cell = dict[str, Figures]
"""All contestants by name, of one network at one number of examples."""


class Crew:
    """The processes of `names`; a context manager that ends them. One that cannot be had has a failure in each cell."""

    def __init__(self, names: Iterable[str]):
        self._processes: dict[str, Process] = {}
        self._missing: dict[str, str] = {}
        for name in names:
            try:
                self._processes[name] = CONTESTANTS[name].process()
            except PeerUnavailableError as why:
                self._missing[name] = str(why)
        for name, process in list(self._processes.items()):  # or first calls would be timed beside others' imports
            try:
                process.ask(LIMIT, do="start", variant=CONTESTANTS[name].variant)
            except ContestantError as why:
                self._gave_up(name, str(why))

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()

    def measured(self, network: str, examples: int, *, repeats: int) -> Cell:
        """Figures of all contestants, `repeats` timed calls of each; every repeat starts with another one.

        Raises:
            AssertionError: if two contestants disagree.
        """
        count = units(NETWORKS[network], NETWORKS[network].batch(examples, SEED))
        names = [name for name in CONTESTANTS if name in self._processes or name in self._missing]
        cell = {name: Figures(count, failure=self._missing.get(name)) for name in names}
        expected: tuple[str, np.ndarray] | None = None
        for name, figures in cell.items():
            reply = self._asked(name, figures, do="prepare", network=network, examples=examples, seed=SEED)
            if reply is None:
                continue
            figures.first, figures.counts = reply["seconds"], reply["counts"]
            result = np.load(reply["result"])
            if expected is None:
                expected = name, result
            message = f"{expected[0]} and {name} disagree on {network}"
            np.testing.assert_allclose(result, expected[1], rtol=1e-3, atol=1e-5, err_msg=message)
        for repeat in range(repeats):
            start = repeat % len(names)
            for name in names[start:] + names[:start]:
                reply = self._asked(name, cell[name], do="run")
                if reply is not None:
                    cell[name].seconds.append(reply["seconds"])
        return cell

    def _asked(self, name: str, figures: Figures, **command: Any) -> dict[str, Any] | None:
        """The reply of a contestant, None if it has failed."""
        if figures.failure:
            return None
        try:
            return self._processes[name].ask(LIMIT, **command)
        except ContestantError as why:
            figures.failure = self._gave_up(name, str(why))
            return None

    def _gave_up(self, name: str, why: str) -> str:
        """A contestant that has failed once takes no more part."""
        self._missing[name] = why
        self._processes.pop(name).close()
        return why
