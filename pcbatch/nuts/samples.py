"""What sampling gives back: draws by name, statistics under ArviZ's names, and what the run cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import pcbatch


@dataclass(frozen=True)
class Cost:
    """What a run computed.

    `gradients` is the number of gradients that the chains needed, `rows` how many the batched program computed, those
    of lanes that were masked away included, and `utilization` their ratio.
    """

    gradients: int
    rows: int

    @property
    def utilization(self) -> float:
        """Needed gradients divided by computed ones: 1 if no lane ever waited."""
        return self.gradients / self.rows


@dataclass(frozen=True, eq=False)
class Samples(Mapping[str, np.ndarray]):
    """Draws of several chains: a mapping from parameter name to array `[chains, draws, ...]`.

    `sample_stats` maps ArviZ's names (`acceptance_rate`, `diverging`, `energy`, `lp`, `n_steps`, `step_size`,
    `tree_depth`) to arrays `[chains, draws]`; `stats` is what compiling this sampler has cost so far (as
    `Batched.stats()`); `runs` are the machine's runs, one for each chunk of draws.
    """

    posterior: Mapping[str, np.ndarray]
    sample_stats: Mapping[str, np.ndarray]
    cost: Cost
    stats: Any
    runs: tuple[pcbatch.Run, ...]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.posterior[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.posterior)

    def __len__(self) -> int:
        return len(self.posterior)

    def to_arviz(self) -> Any:
        """The draws and statistics as ArviZ has them: an `InferenceData` (0.2x) or a `DataTree` (1.x)."""
        import arviz

        groups = {"posterior": dict(self.posterior), "sample_stats": dict(self.sample_stats)}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(groups)
        return arviz.from_dict(**groups)
