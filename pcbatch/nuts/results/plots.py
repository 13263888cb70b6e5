"""Pictures of a run, drawn with matplotlib and saved as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pcbatch.errors import needed
from pcbatch.nuts.results.draws import Draws

NUMBERS, CHAINS = 8, 8
"""The numbers of parameters and of chains that the traces show."""
RANKS = 20
"""The bins of ranks."""


def save_pictures(samples: Draws, folder: Path) -> list[Path]:
    """`Samples.plot`."""
    drawn = {"trace.png": _traces(samples), "rank.png": _ranks(samples), "utilization.png": _utilization(samples)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        figure.savefig(folder / name, dpi=120)
    return [folder / name for name in drawn]


def _figure(rows: int, columns: int, **options: Any) -> tuple[Any, np.ndarray]:
    """A figure that belongs to no window, and its axes `[rows, columns]`."""
    with needed("pictures of samples are drawn with matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(layout="constrained", **options)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def numbers(samples: Draws) -> Iterator[tuple[str, np.ndarray]]:
    """Each number that is sampled, by name: `[chains, draws]`."""
    for name, draws in samples.items():
        for place in np.ndindex(draws.shape[2:]):
            label = f"{name}[{', '.join(map(str, place))}]" if place else name
            yield label, draws[(slice(None), slice(None), *place)]


def _traces(samples: Draws) -> Any:
    """A row for each of the first numbers: a histogram and the trace of each chain, divergences as ticks below."""
    shown = [pair for pair, _ in zip(numbers(samples), range(NUMBERS), strict=False)]
    figure, axes = _figure(max(len(shown), 1), 2, figsize=(12, 1 + 1.6 * max(len(shown), 1)))
    diverging = samples.sample_stats["diverging"]
    chains = list(np.flatnonzero(samples.healthy)[:CHAINS]) if samples.draws else []
    for (label, draws), (left, right) in zip(shown, axes, strict=False):
        for chain in chains:
            left.hist(draws[chain], bins=40, density=True, histtype="step", linewidth=0.8)
            (line,) = right.plot(draws[chain], linewidth=0.4)
            at = np.flatnonzero(diverging[chain])
            right.plot(at, np.full(at.shape, np.nanmin(draws)), "|", color=line.get_color())
        left.set(ylabel=label, yticks=[])
        right.set(xlim=(0, max(samples.draws - 1, 1)))
    axes[-1, 0].set(xlabel="value")
    axes[-1, 1].set(xlabel=f"draw; {len(chains)} of {samples.chains} chains, ticks below: divergences")
    return figure


def _ranks(samples: Draws) -> Any:
    """A row for each of the first numbers: how often the ranks of each chain's draws among all lie in each of 20 bins.

    Vehtari et al. 2021, Section 4.3: bars of chains that have mixed are all about as high.
    """
    shown = [pair for pair, _ in zip(numbers(samples), range(NUMBERS), strict=False)]
    figure, axes = _figure(max(len(shown), 1), 1, figsize=(8, 1 + 1.4 * max(len(shown), 1)))
    chains = np.flatnonzero(samples.healthy) if samples.draws else np.zeros(0, int)
    for (label, draws), (axis,) in zip(shown, axes, strict=False):
        kept = draws[chains]
        ranks = kept.ravel().argsort(kind="stable").argsort().reshape(kept.shape)
        edges = np.linspace(0, max(kept.size, 1), RANKS + 1)
        for chain in range(min(len(chains), CHAINS)):
            axis.stairs(np.histogram(ranks[chain], edges)[0], edges, linewidth=0.8)
        axis.axhline(samples.draws / RANKS, color="silver", linewidth=0.8)
        axis.set(ylabel=label, ylim=(0, None))
    axes[-1, 0].set(xlabel=f"rank among the draws of all chains; {min(len(chains), CHAINS)} of {samples.chains} shown")
    return figure


def _utilization(samples: Draws) -> Any:
    """The share of useful gradients, beside the unequal lengths of the trajectories that make chains wait."""
    figure, ((left, right),) = _figure(1, 2, figsize=(12, 4))
    bars = left.bar(
        list(samples.utilizations()), list(samples.utilizations().values()), color=["silver", "tab:blue", "silver"]
    )
    left.bar_label(bars, fmt="%.2f")
    left.set(ylim=(0, 1.1), title="useful share of the gradients computed")
    steps = samples.sample_stats["n_steps"]
    if samples.draws:
        for name, line in (
            ("longest", steps.max(axis=0)),
            ("mean", steps.mean(axis=0)),
            ("shortest", steps.min(axis=0)),
        ):
            right.plot(line, linewidth=0.8, label=name)
        right.legend()
    right.set(
        xlabel="draw",
        ylabel="leapfrog steps",
        ylim=(0, None),
        title="trajectories of the chains: lockstep waits for the longest",
    )
    return figure
