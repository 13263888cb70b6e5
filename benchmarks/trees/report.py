"""The tables and the picture: thousands of leaves or tokens per CPU second, and pcbatch's over those of others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.figures.pictures import BLUE, GREEN, GREY, ORANGE, RED, SKY, Curve, Panel, Style, save_panels
from benchmarks.harness import table
from benchmarks.trees.crew import Cell, Figures
from benchmarks.trees.networks import NETWORKS, TRAINED

Found = dict[str, Mapping[int, Cell]]
"""Cells by network and number of examples."""

STYLES = {
    "pcbatch": Style(BLUE, "o"),
    "pcbatch, forks": Style(SKY, "D", "--"),
    "by hand + automatic": Style(BLUE, "x", ":"),
    "by hand": Style(GREEN, "s"),
    "DyNet, agenda": Style(RED, "^"),
    "DyNet, depth": Style(ORANGE, "v"),
    "DyNet, unbatched": Style(GREY, "x"),
}


def line(network: str, examples: int, cell: Cell) -> str:
    """One cell: thousands per CPU second of each contestant, its first call in seconds, and pcbatch's counts."""
    figures = "   ".join(f"{name} {_shown(each)}" for name, each in cell.items())
    counts = ", ".join(f"{name} {value}" for each in cell.values() for name, value in each.counts.items())
    return f"{network:>12}, {examples:>3}  {figures}   ({counts})"


def _shown(figures: Figures) -> str:
    return "--" if figures.rate is None else f"{_thousands(figures.rate)} [{figures.first:.1f}]"


def page(found: Found, picture: str, measured: str) -> list[str]:
    """The page, as lines of Markdown."""
    said = [
        "# Trees and sentences",
        "",
        f"![Leaves and tokens per CPU second by number of examples]({picture})",
        "",
        "Thousands of leaves or tokens per CPU second on one thread, by the number of examples in a batch. In brackets "
        "is pcbatch's speed over it. A call goes from trees as arrays to results as arrays. All contestants compute "
        "the same results.",
        "",
        "- *DyNet* builds its graph in each call.",
        "- *By hand* is TensorFlow under XLA, which makes its schedule in each call. It computes trees level by level "
        "in chunks of rows. It pads and masks sentences.",
        "",
        measured,
        "",
    ]
    for network, cells in found.items():
        described = NETWORKS[network]
        kind = {"binary": "a binary TreeLSTM", "tagger": "a BiLSTM tagger", "child-sum": "a child-sum TreeLSTM"}
        said += [f"## {network.capitalize()}: {kind[described.cell]} of {described.width}, {described.unit}", ""]
        said += [*speeds(cells), ""]
    return [*said, *missing(found)]


def speeds(cells: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """The table of a network: a row for each contestant, a column for each number of examples."""
    names = list(dict.fromkeys(name for cell in cells.values() for name in cell))
    rows = [[name, *(_against(cell, name) for cell in cells.values()), _first(cells, name)] for name in names]
    head = ["", *(f"{each} {'example' if each == 1 else 'examples'}" for each in cells), "first call, s"]
    return table(head, rows)


def missing(found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> list[str]:
    """What a page says of who is not there."""
    reasons = failures(found)
    return ["What is missing:", "", *reasons] if reasons else []


def _against(cell: Mapping[str, Any], name: str) -> str:
    figures, ours = cell.get(name), cell.get("pcbatch")
    if figures is None or figures.rate is None:
        return "--"
    shown = _thousands(figures.rate)
    if ours is None or ours.rate is None or name == "pcbatch":
        return shown
    return f"{shown} ({ours.rate / figures.rate:.2f})"


def _first(cells: Mapping[int, Mapping[str, Any]], name: str) -> str:
    """The longest first call, at whatever number of examples."""
    firsts = [cell[name].first for cell in cells.values() if name in cell and cell[name].first is not None]
    return f"{max(each for each in firsts if each is not None):.1f}" if firsts else "--"


def failures(found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> list[str]:
    """Every reason for which figures are missing, once."""
    reasons = {
        f"- {name}: {figures.failure}"
        for cells in found.values()
        for cell in cells.values()
        for name, figures in cell.items()
        if figures.failure
    }
    return sorted(reasons)


def picture(path: Path, found: Mapping[str, Mapping[int, Mapping[str, Any]]], styles: Mapping[str, Style]) -> None:
    """Speed by number of examples, a panel for each network; both axes are logarithmic."""
    panels = []
    for network, cells in found.items():
        curves = []
        for name, style in styles.items():
            points = {n: cell[name].rate for n, cell in cells.items() if name in cell and cell[name].rate}
            if points:
                curves.append(Curve(name, style, [*points], [*points.values()]))
        unit = {**NETWORKS, **TRAINED}[network].unit
        panels.append(Panel(network, "examples in a batch", f"{unit} per CPU second", curves, formatted=_thousands))
    save_panels(path, panels)


def _thousands(rate: float) -> str:
    """Two or three digits, in thousands."""
    return f"{rate / 1e3:.0f}k" if rate >= 1e5 else f"{rate / 1e3:.1f}k"
