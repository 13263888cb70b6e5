"""Curves over the number of chains, as a picture that a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLUE, SKY, GREEN, ORANGE, RED, PURPLE, BLACK, GREY = (
    "#0072B2",
    "#56B4E9",
    "#009E73",
    "#E69F00",
    "#D55E00",
    "#CC79A7",
    "#000000",
    "#7F7F7F",
)
"""Colours that are told apart by everybody (Okabe and Ito, "Color universal design", 2008); markers differ, too."""


@dataclass(frozen=True)
class Style:
    """How a curve is drawn."""

    color: str
    marker: str
    line: str = "-"


@dataclass(frozen=True)
class Curve:
    """Values by number of chains; `solid` says which were measured, the others are drawn hollow."""

    label: str
    style: Style
    chains: Sequence[int]
    values: Sequence[float]
    solid: Sequence[bool] | None = None


def save(path: Path, curves: Sequence[Curve], *, title: str, ylabel: str, logarithmic: bool) -> None:
    """Draw the curves into a file; the legend stands beside them, in the order of their ends."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.5), layout="constrained")
    axes = figure.subplots()
    for curve in sorted(curves, key=lambda curve: -curve.values[-1]):
        draw(axes, curve)
    chains = sorted({each for curve in curves for each in curve.chains})
    axes.set_xscale("log", base=2)
    axes.set_xticks(chains, [f"{each:,}" for each in chains])
    axes.minorticks_off()
    if logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.05)
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(title=title, xlabel="chains", ylabel=ylabel)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def draw(axes: Any, curve: Curve) -> None:
    """A line, and a mark at each value."""
    style, solid = curve.style, curve.solid or [True] * len(curve.values)
    axes.plot(
        curve.chains,
        curve.values,
        color=style.color,
        linestyle=style.line,
        marker=style.marker,
        markersize=6,
        markevery=[place for place, each in enumerate(solid) if each],
        label=curve.label,
    )
    hollow = [place for place, each in enumerate(solid) if not each]
    axes.plot(
        [curve.chains[place] for place in hollow],
        [curve.values[place] for place in hollow],
        linestyle="none",
        marker=style.marker,
        markersize=6,
        color=style.color,
        markerfacecolor="white",
    )
