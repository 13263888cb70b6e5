"""Who takes part, each in a process of its own on one thread, and how they are timed: in turns, gradients compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.environments import DYNET, JAX
from benchmarks.trees.crew import SEED, Contestant, Processes
from benchmarks.trees.networks import TRAINED, Arrays, Network, units

_HERE = "benchmarks.training.contestants"
ONE_THREAD = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
SAME = 1e-3
"""How much gradients may differ, of the largest of the same weight."""

CONTESTANTS = {
    "pcbatch": Contestant(f"{_HERE}.pcbatch_steps"),
    "pcbatch, forks": Contestant(f"{_HERE}.pcbatch_steps", "forks"),
    "pcbatch, replay": Contestant(f"{_HERE}.pcbatch_steps", "replay"),
    "by hand + automatic": Contestant(f"{_HERE}.pcbatch_steps", "heads"),
    "by hand": Contestant(f"{_HERE}.by_hand_steps"),
    "JAX": Contestant(f"{_HERE}.jax_steps", environment=JAX, variables=ONE_THREAD),
    "DyNet, agenda": Contestant(f"{_HERE}.dynet_steps", "agenda", DYNET),
}
POLICIES = ("pcbatch", "pcbatch, replay")
"""Those whose memory is measured."""


def takes_part(name: str, network: Network) -> bool:
    """Whether a contestant has such a network: JAX takes no recursion, loops fork nothing, taggers have heads."""
    if name == "pcbatch, forks":
        return network.cell == "binary"
    if name == "by hand + automatic":
        return network.cell == "tagger"
    return name != "JAX" or network.cell in ("lstm", "tagger")


@dataclass
class Figures:
    """One contestant of one network at so many examples; `failure` says why something is missing.

    `firsts` has CPU seconds of the first call of each part, `seconds` those of warm ones.
    """

    units: int
    firsts: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failure: str | None = None

    @property
    def rate(self) -> float | None:
        """Leaves or tokens per CPU second of the best step: on a shared machine the rest is others' work."""
        return self.units / min(self.seconds["step"]) if "step" in self.seconds and not self.failure else None

    @property
    def first(self) -> float | None:
        """The first step's CPU seconds."""
        return self.firsts.get("step")

    def over(self, part: str, other: str) -> float | None:
        """How often the best of `part` takes the time of the best of `other`."""
        if self.failure or not {part, other} <= self.seconds.keys():
            return None
        return min(self.seconds[part]) / min(self.seconds[other])


Cell = dict[str, Figures]
"""All contestants by name, of one network at one number of examples."""


class Crew(Processes):
    """Contestants by name, in the order of `CONTESTANTS`. One that cannot be had has a failure in each cell."""

    def __init__(self, names: Iterable[str]):
        wanted = set(names)
        super().__init__({name: each for name, each in CONTESTANTS.items() if name in wanted})

    def measured(self, network: str, examples: int, *, repeats: int) -> Cell:
        """Figures of all contestants that take part, `repeats` timed calls of each part of each.

        Raises:
            AssertionError: if two contestants disagree about a gradient.
        """
        described = TRAINED[network]
        count = units(described, described.batch(examples, SEED))
        cell = {name: Figures(count) for name in self.names if takes_part(name, described)}
        expected: tuple[str, Arrays] | None = None
        for name, figures in cell.items():
            reply = self.asked(name, do="prepare", network=network, examples=examples, seed=SEED)
            if reply is None:
                continue
            figures.firsts = reply["first"]
            gradients = read(Path(reply["gradients"]))
            if expected is None:
                expected = name, gradients
            agree(expected[1], gradients, f"{expected[0]} and {name} disagree on {network}")
        for name in self.turns(repeats):
            reply = self.asked(name, do="run") if name in cell else None
            for part, seconds in (reply or {"seconds": {}})["seconds"].items():
                cell[name].seconds.setdefault(part, []).append(seconds)
        for name, figures in cell.items():
            figures.failure = self.missing.get(name)
        return cell

    def memory(self, network: str, examples: int, lengths: Sequence[int]) -> dict[str, list[int]]:
        """Bytes by which each process grows in a step on sentences of each length."""
        found = {}
        for name in self.names:
            reply = self.asked(name, do="memory", network=network, examples=examples, lengths=list(lengths))
            if reply is not None:
                found[name] = reply["bytes"]
        return found


def read(path: Path) -> Arrays:
    """Arrays of a file by name."""
    with np.load(path) as arrays:
        return dict(arrays)


def agree(expected: Mapping[str, np.ndarray], actual: Mapping[str, np.ndarray], message: str) -> None:
    """AssertionError if a gradient is missing or another one."""
    assert expected.keys() == actual.keys(), message
    for name, each in expected.items():
        largest = float(np.abs(each).max())
        assert largest > 0, f"{message}: no gradient of {name}"
        np.testing.assert_allclose(actual[name], each, rtol=0, atol=SAME * largest, err_msg=f"{message}: {name}")
