"""The page of docs/figures: what pcbatch makes of the best peer, and a table of each target."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.harness import table
from benchmarks.nuts.report import MEASURES, Cell, over_best_peer, verdicts
from benchmarks.nuts.targets import TARGETS

OURS = "pcbatch"
INTRODUCTION = """\
# The sampler beside others

What does a second of sampling yield? [Another page](nuts-end-to-end.md) asks a user's question: how long does it take
from nothing, warm-up included, to a given effective size?

All samplers have the same

- density, starting points and number of trajectories; starting points are draws of the density, so nothing warms up;
- step size, which stays fixed, unit metric, greatest depth (10) and precision (float32).

Timed calls take turns. pcbatch, BlackJAX and NumPyro share the chains among one device for each core (`jax.pmap`), TFP
among threads. `blackjax-native` and `numpyro-native` run the chains of a device one after another (`jax.lax.map`), with
XLA's native loops. `blackjax-one-device` runs on one of these devices. `loop-xla` draws nothing: it makes leapfrog
steps of all chains in a loop, compiled by XLA.

- A *useful gradient* is a leapfrog step that a chain needed, by the sampler's own statistics. "Of use" is useful
  gradients over computed ones. Those of the native loops are not counted: no chain computes any for another.
- *Effective sizes* (ESS) are ArviZ's estimates for means, of x and of the squared distance to the mean ("x^2"). The
  tables have the least of all coordinates, and none where a chain has fewer than 20 draws.
- Not all samplers stop a trajectory by the same criterion, so gradients per draw differ. Effective sizes are what a
  user gets.
"""


def page(found: Mapping[str, list[Cell]], origin: str) -> list[str]:
    """The whole page, of cells by target."""
    lines = [INTRODUCTION, origin, "", *_ratios(found), "", *_losses(found)]
    for name, cells in found.items():
        target, trajectories = TARGETS[name], next(iter(cells[0].values())).trajectories
        lines += ["", f"## {target.title}", "", f"{trajectories} trajectories of each chain.", ""]
        head = ("chains", "", "first call, s", "gradients/s", "gradients/draw", "draws/s", "ESS x /s", "ESS x^2 /s")
        lines += table((*head, "of use"), [_row(who, cell) for cell in cells for who in cell])
        missing = [
            f"- {who}, {figures.chains} chains: {figures.failure}"
            for c in cells
            for who, figures in c.items()
            if figures.failure
        ]
        lines += ["", "Missing:", "", *missing] if missing else []
    return lines


def _ratios(found: Mapping[str, list[Cell]]) -> list[str]:
    """Of pcbatch to the best of the others in each measure, who need not be the same."""
    rows = []
    for name, cells in found.items():
        for cell in cells:
            if OURS in cell:
                ratios = [over_best_peer(cell, OURS, measure) for measure in MEASURES]
                shown = [f"{ratio[0]:.2f} ({ratio[1]})" if ratio else "-" for ratio in ratios]
                rows.append([name, str(cell[OURS].chains), *shown])
    title = "## pcbatch over the best of the others"
    return [title, "", *table(("density", "chains", *(f"{words} per second" for words in MEASURES.values())), rows)]


def _losses(found: Mapping[str, list[Cell]]) -> list[str]:
    said = [
        f"- {name}, {text.strip()}"
        for name, cells in found.items()
        for cell in cells
        for text in verdicts(name, cell)
        if "loses" in text
    ]
    return ["## Where pcbatch loses", "", *(said or ["Nowhere in this run."])]


def _row(who: str, cell: Cell) -> list[str]:
    figures = cell[who]
    per_draw = figures.gradients_of_a_draw
    return [
        str(figures.chains),
        who,
        f"{figures.first:.1f}" if figures.first is not None else "-",
        _shown(figures.rate("gradients")),
        f"{per_draw:.0f}" if per_draw else "-",
        *(_shown(figures.rate(measure)) for measure in ("draws", "x", "x2")),
        f"{figures.utilization:.2f}" if figures.utilization else "-",
    ]


def _shown(rate: float | None) -> str:
    """Three digits and thousands."""
    if not rate:
        return "-"
    return (
        f"{rate / 1000:,.3g}k"
        if 1000 <= rate < 1e6
        else f"{float(f'{rate:.3g}'):,.0f}"
        if rate >= 100
        else f"{rate:.3g}"
    )
