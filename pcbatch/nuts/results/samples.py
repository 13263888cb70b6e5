"""What sampling gives back: draws by name, statistics under ArviZ's names, what it cost, how to go on with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pcbatch.nuts.results import plots, reports, savefile, summaries

if TYPE_CHECKING:
    from pcbatch.nuts.results.savefile import Origin
    from pcbatch.nuts.settings import Settings


@dataclass(frozen=True)
class Cost:
    """What a run computed, warm-up included.

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
        """That of as many gradients for each."""
        return Cost(gradients * self.gradients, gradients * self.rows)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.gradients + other.gradients, self.rows + other.rows)


@dataclass(frozen=True, eq=False)
class Samples(Mapping[str, np.ndarray]):
    """Draws of several chains: a mapping from parameter name to array `[chains, draws, ...]`.

    `sample_stats` maps ArviZ's names (`acceptance_rate`, `diverging`, `energy`, `lp`, `n_steps`, `step_size`,
    `tree_depth`) to arrays `[chains, draws]`. `warmup_posterior` and `warmup_sample_stats` are the same of the warm-up,
    empty unless `save_warmup` was asked for. Draws of chains that failed are NaN; `failed` says why, by chain.

    `cost` is what the run computed, `stats` what compiling this sampler has cost so far (as `Batched.stats()`),
    `settings` what it was asked for, `interrupted` whether Ctrl-C ended it; `inverse_mass_matrix` is the metric at the
    end, `[chains, ..]` in the order of the parameters, before bijectors.
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
    """What is needed to go on: the density, the data, and where the chains stand."""

    def __getitem__(self, name: str) -> np.ndarray:
        return self.posterior[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.posterior)

    def __len__(self) -> int:
        return len(self.posterior)

    @property
    def chains(self) -> int:
        """How many chains."""
        return int(self.sample_stats["lp"].shape[0])

    @property
    def draws(self) -> int:
        """How many draws of each chain are here."""
        return int(self.sample_stats["lp"].shape[1])

    @property
    def healthy(self) -> np.ndarray:
        """Which chains did not fail, bool `[chains]`."""
        return np.array([chain not in self.failed for chain in range(self.chains)], bool)

    @property
    def inverse_mass_matrix(self) -> np.ndarray:
        """The metric at the end: `[chains, size]`, or `[chains, size, size]` if it is dense."""
        return np.asarray(self.origin.state.metric.inverse)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against trusting the draws, a sentence or two each; also given as Python warnings once."""
        return reports.findings(self)

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

    def summary(self) -> Any:
        """ArviZ's table of the draws, a row for each number: mean, sd, their errors, effective sizes, R-hat.

        Returns:
            A pandas DataFrame with the columns `mean`, `sd`, `mcse_mean`, `mcse_sd`, `ess_bulk`, `ess_tail`, `r_hat`;
            chains that failed are left out.
        """
        return summaries.table(self)

    def to_arviz(self) -> Any:
        """The draws and statistics as ArviZ has them: an `InferenceData` (0.2x) or a `DataTree` (1.x)."""
        return summaries.to_arviz(self)

    def plot(self, folder: str | os.PathLike[str] = "out") -> list[Path]:
        """Save pictures to `folder`, `trace.png` and `utilization.png`; returns their paths. Needs matplotlib."""
        return plots.save_pictures(self, Path(folder))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save draws, settings, data and where the chains stand to `path` (npz); `pcbatch.nuts.resume` goes on.

        A file of this name is replaced once the new one is written. Raises OSError where it cannot be written,
        UsageError PCB595 for what is no path.
        """
        savefile.save(self, path)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{list(array.shape[2:])}" for name, array in self.items())
        state = " interrupted," if self.interrupted else ""
        failed = f" {len(self.failed)} failed," if self.failed else ""
        diverging = int(np.count_nonzero(self.sample_stats["diverging"]))
        return (
            f"<pcbatch.nuts.Samples: {self.chains} chains of {self.draws} draws of {shapes};{state}{failed} "
            f"{diverging} diverging, {self.cost.gradients} gradients, utilisation {self.cost.utilization:.2f}>"
        )
