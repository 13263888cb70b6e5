"""Pictures that pages show: curves over the number of chains or examples, and bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Values by number of chains, or of examples; `solid` says which were measured, the others are drawn hollow."""

    label: str
    style: Style
    chains: Sequence[int]
    values: Sequence[float]
    solid: Sequence[bool] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves with their axes. `formatted` writes values of a logarithmic axis, if powers of ten are not wanted."""

    title: str
    xlabel: str
    ylabel: str
    curves: Sequence[Curve]
    logarithmic: bool = True
    formatted: Callable[[float], str] | None = None


def save(path: Path, curves: Sequence[Curve], *, title: str, ylabel: str, logarithmic: bool) -> None:
    """Draw the curves into a file; the legend stands beside them, in the order of their ends."""
    curves = sorted(curves, key=lambda curve: -curve.values[-1])
    figure = _figure((10, 5.5))
    axes = figure.subplots()
    _fill(axes, Panel(title, "chains", ylabel, curves, logarithmic))
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    _write(figure, path)


def save_panels(path: Path, panels: Sequence[Panel]) -> None:
    """Draw panels into a file, two in a row, with one legend for all below them."""
    rows = (len(panels) + 1) // 2
    figure = _figure((11, 3.2 * rows + 0.4))
    found = figure.subplots(rows, 2, squeeze=False).ravel()
    for axes, panel in zip(found, panels, strict=False):
        _fill(axes, panel)
    for axes in found[len(panels) :]:
        axes.set_visible(False)
    lines = {line.get_label(): line for axes in found for line in axes.get_lines()}  # not all are in all panels
    lines = {label: line for label, line in lines.items() if not label.startswith("_")}
    figure.legend(handles=list(lines.values()), loc="outside lower center", ncols=min(len(lines), 6), frameon=False)
    _write(figure, path)


def save_bars(
    path: Path, bars: Mapping[str, Mapping[str, float]], parts: Sequence[str], *, title: str, xlabel: str
) -> None:
    """Draw a bar for each name, whose `parts` lie one behind the other, its sum at its end.

    One that is far longer than all others is cut.
    """
    figure = _figure((10, 1.2 + 0.5 * len(bars)))
    axes, ends = figure.subplots(), dict.fromkeys(bars, 0.0)
    for part, color in zip(parts, (SKY, RED, BLUE, ORANGE, GREY, GREEN, PURPLE), strict=False):
        lengths = [bar.get(part, 0.0) for bar in bars.values()]
        axes.barh([*bars], lengths, left=[*ends.values()], color=color, label=part)
        ends = {name: ends[name] + length for name, length in zip(bars, lengths, strict=True)}
    *others, longest = sorted(ends.values())
    end = 1.3 * others[-1] if others and others[-1] and longest > 3 * others[-1] else 1.1 * longest
    for name, length in ends.items():
        axes.text(min(length, 0.9 * end), name, f" {length:,.0f}" if length >= 100 else f" {length:.3g}", va="center")
    axes.set_xlim(0, end or 1)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(title=title, xlabel=xlabel)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    _write(figure, path)


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _write(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def _fill(axes: Any, panel: Panel) -> None:
    """Draw the curves of a panel."""
    for curve in panel.curves:
        draw(axes, curve)
    sizes = sorted({each for curve in panel.curves for each in curve.chains})
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{each:,}" for each in sizes])
    if panel.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.05)
    if panel.formatted:
        from matplotlib.ticker import LogLocator

        formatted = panel.formatted
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: formatted(value))
    axes.minorticks_off()
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)


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
