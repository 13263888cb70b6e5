"""Who takes part, each in a process of its own on one thread, and how they are timed: in turns, results compared."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from benchmarks.conversation import ContestantError, Process
from benchmarks.environments import DYNET, Environment, PeerUnavailableError
from benchmarks.trees.networks import NETWORKS, Network, units

LIMIT = 300.0
"""Seconds after which a contestant is given up."""
SEED = 1


@dataclass(frozen=True)
class Contestant:
    """A module, one of its variants, and where it runs: beside pcbatch unless said otherwise."""

    module: str
    variant: str = ""
    environment: Environment | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def on(self, cores: int) -> Contestant:
        """The same on so many cores."""
        number = str(cores)
        flags = self.variables if cores == 1 else {k: v for k, v in self.variables.items() if k != "XLA_FLAGS"}
        return replace(self, variables={"BENCHMARK_CORES": number, "OMP_NUM_THREADS": number, **flags})

    def process(self) -> Process:
        """A new process; PeerUnavailableError if its environment cannot be made."""
        python = self.environment.python() if self.environment else sys.executable
        variables = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **self.variables}
        return Process(self.module, python, variables)


_HERE = "benchmarks.trees.contestants"
CONTESTANTS = {
    "pcbatch": Contestant(f"{_HERE}.pcbatch_batched"),
    "pcbatch, forks": Contestant(f"{_HERE}.pcbatch_batched", "forks"),
    "by hand + automatic": Contestant(f"{_HERE}.pcbatch_batched", "heads"),
    "by hand": Contestant(f"{_HERE}.by_hand"),
    "DyNet, agenda": Contestant(f"{_HERE}.dynet_graphs", "agenda", DYNET),
    "DyNet, depth": Contestant(f"{_HERE}.dynet_graphs", "depth", DYNET),
    "DyNet, unbatched": Contestant(f"{_HERE}.dynet_graphs", "none", DYNET),
}


def takes_part(name: str, network: Network) -> bool:
    """Return whether a contestant has such a network: heads by word can be moved by hand in taggers alone."""
    return name != "by hand + automatic" or network.cell == "tagger"


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


Crowd = TypeVar("Crowd", bound="Processes")


class Processes:
    """The processes of contestants; a context manager that ends them. One that cannot be had has a reason, by name."""

    def __init__(self, contestants: Mapping[str, Contestant]):
        self.names = tuple(contestants)
        self.missing: dict[str, str] = {}
        self._processes: dict[str, Process] = {}
        for name, contestant in contestants.items():
            try:
                self._processes[name] = contestant.process()
            except PeerUnavailableError as why:
                self.missing[name] = str(why)
        for name, contestant in contestants.items():  # or first calls would be timed beside others' imports
            self.asked(name, do="start", variant=contestant.variant)

    def __enter__(self: Crowd) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()

    def asked(self, name: str, **command: Any) -> dict[str, Any] | None:
        """The reply of a contestant, None if it has failed: then it takes no more part."""
        if name in self.missing:
            return None
        try:
            return self._processes[name].ask(LIMIT, **command)
        except ContestantError as why:
            self.missing[name] = str(why)
            self._processes.pop(name).close()
            return None

    def turns(self, repeats: int) -> Iterator[str]:
        """Names, all of them `repeats` times; every repeat starts with another one."""
        for repeat in range(repeats):
            start = repeat % len(self.names)
            yield from self.names[start:] + self.names[:start]


class Crew(Processes):
    """Contestants by name, in the order of `CONTESTANTS`. One that cannot be had has a failure in each cell."""

    def __init__(self, names: Iterable[str]):
        wanted = set(names)
        super().__init__({name: each for name, each in CONTESTANTS.items() if name in wanted})

    def measured(self, network: str, examples: int, *, repeats: int) -> Cell:
        """Figures of all contestants, `repeats` timed calls of each.

        Raises:
            AssertionError: if two contestants disagree.
        """
        count = units(NETWORKS[network], NETWORKS[network].batch(examples, SEED))
        cell = {name: Figures(count) for name in self.names if takes_part(name, NETWORKS[network])}
        expected: tuple[str, np.ndarray] | None = None
        for name, figures in cell.items():
            reply = self.asked(name, do="prepare", network=network, examples=examples, seed=SEED)
            if reply is None:
                continue
            figures.first, figures.counts = reply["seconds"], reply["counts"]
            result = np.load(reply["result"])
            if expected is None:
                expected = name, result
            message = f"{expected[0]} and {name} disagree on {network}"
            np.testing.assert_allclose(result, expected[1], rtol=1e-3, atol=1e-5, err_msg=message)
        for name in (each for each in self.turns(repeats) if each in cell):
            reply = self.asked(name, do="run")
            if reply is not None:
                cell[name].seconds.append(reply["seconds"])
        for name, figures in cell.items():
            figures.failure = self.missing.get(name)
        return cell
