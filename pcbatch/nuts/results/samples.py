"""Samples: draws by name, statistics under ArviZ's names, the cost, and all that is needed to go on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pcbatch.nuts.results import reports, savefile, summaries
from pcbatch.nuts.results.draws import Draws


@dataclass(frozen=True, eq=False)
class Samples(Draws):
    """Draws of several chains: a mapping from parameter name to array `[chains, draws, ...]`.

    `sample_stats` maps ArviZ's names (`acceptance_rate`, `diverging`, `energy`, `lp`, `n_steps`, `step_size`,
    `tree_depth`) to arrays `[chains, draws]`. `warmup_posterior` and `warmup_sample_stats` are the same of the warm-up,
    empty unless `save_warmup` was asked for. Draws of chains that failed are NaN; `failed` says why, by chain.

    `cost` is what the run computed, `stats` what compiling this sampler has cost so far (as `Batched.stats()`),
    `settings` what it was asked for, `interrupted` whether Ctrl-C ended it; `inverse_mass_matrix` is the metric at the
    end, `[chains, ..]` in the order of the parameters, before bijectors. `extra` has what the function `extra=` gave
    for each draw, by name `[chains, draws, ..]`; it is in no file.
    """

    @property
    def inverse_mass_matrix(self) -> np.ndarray:
        """The metric at the end: `[chains, size]`, or `[chains, size, size]` if it is dense."""
        return np.asarray(self.origin.state.metric.inverse)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the draws, a sentence or two each; they are also Python warnings, once."""
        return reports.findings(self)

    def summary(
        self, *, dims: Mapping[str, Sequence[str]] | None = None, coords: Mapping[str, Sequence[Any]] | None = None
    ) -> Any:
        """ArviZ's table of the draws, a row for each number: mean, sd, their errors, effective sizes, R-hat.

        Arguments:
            dims: names of axes, by parameter, as in `to_arviz`; rows are labelled by them.
            coords: labels along axes, by the name of the axis.

        Returns:
            A pandas DataFrame with the columns `mean`, `sd`, `mcse_mean`, `mcse_sd`, `ess_bulk`, `ess_tail`, `r_hat`;
            chains that failed are left out. Raises UsageError PCB564 where ArviZ is not installed.
        """
        return summaries.table(self, dims, coords)

    def to_arviz(
        self, *, dims: Mapping[str, Sequence[str]] | None = None, coords: Mapping[str, Sequence[Any]] | None = None
    ) -> Any:
        """The draws and statistics as ArviZ has them: an `InferenceData` (0.2x) or a `DataTree` (1.x).

        Of `extra` what is called `log_likelihood`, or is inside of it, is in the group of that name, and so are
        `posterior_predictive` and `predictions`; the rest is with the posterior.

        Arguments:
            dims: names of axes, by parameter, behind chains and draws: `{"theta": ["school"]}`.
            coords: labels along axes, by the name of the axis: `{"school": ["A", "B"]}`.

        Raises:
            UsageError: PCB551 where names or labels do not fit an array, PCB564 where ArviZ is not installed.
        """
        return summaries.to_arviz(self, dims, coords)

    def plot(self, folder: str | os.PathLike[str] = "out") -> list[Path]:
        """Save pictures to `folder`, `trace.png`, `rank.png` and `utilization.png`; returns their paths.

        Raises UsageError PCB564 where matplotlib is not installed.
        """
        return summaries.save_pictures(self, Path(folder))

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

    def _repr_html_(self) -> str:
        """A table of the numbers, in notebooks, and what is wrong with them."""
        return summaries.displayed(self, repr(self)[1:-1], self.warnings)
