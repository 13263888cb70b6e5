"""Tables and data structures of ArviZ's, for its versions 0.2x and 1.x."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcbatch.errors import UsageError, needed
from pcbatch.nuts.results import diagnostics
from pcbatch.nuts.results.draws import Draws
from pcbatch.runtime.report import formatting

# -- plots -------------------------------------------------------------------------------------------------------------
# Pictures of a run, drawn with matplotlib and saved as files.

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


# -- summaries ---------------------------------------------------------------------------------------------------------

SHOWN = 20
"""The numbers that a notebook lists."""
COLUMNS = ("mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat")


Names = Mapping[str, Sequence[Any]] | None
"""Dims or coords, as ArviZ calls them."""
GROUPS = ("log_likelihood", "posterior_predictive", "predictions")
"""Names in `extra` that are groups of ArviZ's."""


def table(samples: Draws, dims: Names = None, coords: Names = None) -> Any:
    """`Samples.summary`."""
    arviz = _arviz()
    axes = _axes(samples, dims, coords)
    healthy = {name: draws[samples.healthy] for name, draws in samples.items() if draws.size}
    with np.errstate(divide="ignore", invalid="ignore"):  # of numbers that are the same in every draw
        return arviz.summary(_converted({"posterior": healthy}, axes), round_to="none")[list(COLUMNS)]


def to_arviz(samples: Draws, dims: Names = None, coords: Names = None) -> Any:
    """`Samples.to_arviz`."""
    groups = {"posterior": dict(samples.posterior), "sample_stats": dict(samples.sample_stats)}
    for name, array in samples.extra.items():
        group, _, inner = name.partition(".")
        if group in GROUPS:
            groups.setdefault(group, {})[inner or group] = array
        else:
            groups["posterior"][name] = array
    if samples.settings.save_warmup:
        groups["warmup_posterior"] = dict(samples.warmup_posterior)
        groups["warmup_sample_stats"] = dict(samples.warmup_sample_stats)
    return _converted(groups, _axes(samples, dims, coords))


def displayed(samples: Draws, title: str, warned: tuple[str, ...]) -> str:
    """A table for notebooks: mean, sd and R-hat of the first numbers, chains that failed left out, and warnings."""
    rows, healthy = [], samples.healthy
    count = sum(draws[0, 0].size for draws in samples.values()) if samples.draws else 0
    for label, draws in itertools.islice(numbers(samples), SHOWN if healthy.any() else 0):
        kept = draws[healthy].astype(np.float64)
        figures = [kept.mean(), kept.std(), float(diagnostics.r_hat(draws[healthy]))] if kept.size else []
        rows.append([*(f"{each:.3g}" if place < 2 else f"{each:.3f}" for place, each in enumerate(figures)), label])
    rows = rows if samples.draws else []
    more = [f"and {count - len(rows):,} more numbers: see summary()"] if count > len(rows) > 0 else []
    return formatting.figures(title, ("mean", "sd", "r_hat", ""), rows, more) + formatting.points(warned)


def _axes(samples: Draws, dims: Names, coords: Names) -> dict[str, Any]:
    """The names of axes and labels along them; UsageError PCB551 where they do not fit."""
    arrays = {**samples.posterior, **samples.extra}
    arrays |= {name.partition(".")[2]: array for name, array in samples.extra.items() if "." in name}
    lengths: dict[str, int] = {}
    for name, axes in (dims or {}).items():
        if name not in arrays:
            raise UsageError("PCB551", f"dims names {name!r}, and the arrays are {', '.join(arrays)}")
        shape = arrays[name].shape[2:]
        if isinstance(axes, str) or len(axes) != len(shape):
            raise UsageError("PCB551", f"dims of {name!r} must be {len(shape)} names, not {axes!r}")
        for axis, length in zip(axes, shape, strict=True):
            if lengths.setdefault(axis, length) != length:
                raise UsageError(
                    "PCB551", f"the axis {axis!r} has {lengths[axis]} places elsewhere, {length} in {name!r}"
                )
    for axis, labels in (coords or {}).items():
        if len(labels) != lengths.get(axis, len(labels)):
            raise UsageError("PCB551", f"coords of {axis!r} must be {lengths[axis]} labels, not {len(labels)}")
    return {
        "dims": {name: list(axes) for name, axes in (dims or {}).items()},
        "coords": {axis: list(labels) for axis, labels in (coords or {}).items()},
    }


def _converted(groups: dict[str, Any], axes: dict[str, Any]) -> Any:
    """An `InferenceData`, or from 1.0 on a `DataTree`, with these groups of arrays `[chains, draws, ..]`."""
    arviz = _arviz()
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, save_warmup=True, **axes)
    return arviz.from_dict(**groups, save_warmup=True, **axes)


def _arviz() -> Any:
    """ArviZ, which at its first import of a day announces its next version: to whoever imports it himself."""
    with needed("tables of samples are made by ArviZ"), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz
