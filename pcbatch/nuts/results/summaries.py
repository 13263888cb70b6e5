"""Tables and data structures of ArviZ's, for its versions 0.2x and 1.x."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import UsageError, needed
from pcbatch.nuts.results import diagnostics, plots
from pcbatch.nuts.results.draws import Draws
from pcbatch.runtime.report import formatting

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
    for label, draws in itertools.islice(plots.numbers(samples), SHOWN if healthy.any() else 0):
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
