"""Records of a run: its draws and statistics, its cost, and the state of its chains.

`samples.py` adds what users do with it; reports, summaries, pictures and the saved file need no more than this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.results import diagnostics
from pcbatch.nuts.settings import Settings

GROUPS = ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats")
"""The fields of `Draws` that are arrays by name."""


@dataclass(frozen=True)
class Cost:
    """The work of a run, warm-up included.

    `gradients` is the number of gradients that the chains needed, `rows` how many the batched program computed, those
    of lanes that were masked away included, and `utilization` their ratio.
    """

    gradients: int
    rows: int

    @property
    def utilization(self) -> float:
        """Needed gradients divided by computed ones: 1 if no lane ever waited, 1 of nothing."""
        return self.gradients / self.rows if self.rows else 1.0

    def times(self, gradients: int) -> Cost:
        """The cost if each gradient stands for so many."""
        return Cost(gradients * self.gradients, gradients * self.rows)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.gradients + other.gradients, self.rows + other.rows)


@dataclass(frozen=True)
class Origin:
    """The origin of samples, and the state of their chains.

    `state` is the chains' state (arrays `[chains, ..]`) after `done` trajectories, `keys` their keys, `pool` what
    pooled adaptation knows.
    """

    density: Any
    data: Any
    transform: Transform
    keys: np.ndarray
    state: Any
    done: int
    pool: Any = None


@dataclass(frozen=True, eq=False)
class Draws(Mapping[str, np.ndarray]):
    """The draws of several chains, by parameter `[chains, draws, ...]`, with all that is known of them.

    The fields are described at `Samples`.
    """

    posterior: Mapping[str, np.ndarray]
    sample_stats: Mapping[str, np.ndarray]
    warmup_posterior: Mapping[str, np.ndarray]
    warmup_sample_stats: Mapping[str, np.ndarray]
    cost: Cost
    stats: Any
    settings: Settings
    failed: Mapping[int, str]
    interrupted: bool
    origin: Origin = field(repr=False)
    """All that is needed to go on: the density, the data, and the state of the chains."""
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.posterior[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.posterior)

    def __len__(self) -> int:
        return len(self.posterior)

    @property
    def chains(self) -> int:
        """The number of chains."""
        return int(self.sample_stats["lp"].shape[0])

    @property
    def draws(self) -> int:
        """The number of draws of each chain."""
        return int(self.sample_stats["lp"].shape[1])

    @property
    def healthy(self) -> np.ndarray:
        """A mask of the chains that did not fail, bool `[chains]`."""
        return np.array([chain not in self.failed for chain in range(self.chains)], bool)

    @cached_property
    def r_hats(self) -> Mapping[str, np.ndarray]:
        """R-hat of each number, by parameter, of the chains that did not fail; NaN for fewer than 4 draws."""
        return {name: diagnostics.r_hat(draws[self.healthy]) for name, draws in self.items()}

    @cached_property
    def nested_r_hats(self) -> Mapping[str, np.ndarray]:
        """Nested R-hat of each number, by parameter, for runs with `superchains`; NaN where a chain failed."""
        groups = self.settings.superchains or 1
        return {name: diagnostics.nested_r_hat(draws, groups) for name, draws in self.items()}

    def utilizations(self) -> dict[str, float]:
        """Useful share of the gradients computed: here, and for two other ways to run the same draws.

        "measured" is that of the run, warm-up included. The others are counted from the same trajectories: "lockstep",
        where all chains wait for the longest trajectory of each draw, and "waiting at the end", where chains wait only
        for each other's last draw. Chains that run in groups, one on each core, wait only within their group, so that
        the run can do better than either.
        """
        steps = self.sample_stats["n_steps"]
        if not steps.sum():
            return {"lockstep": 1.0, "measured": self.cost.utilization, "waiting at the end": 1.0}
        return {
            "lockstep": float(steps.sum() / (steps.max(axis=0).sum() * len(steps))),
            "measured": self.cost.utilization,
            "waiting at the end": float(steps.sum() / (steps.sum(axis=1).max() * len(steps))),
        }
