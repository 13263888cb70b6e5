"""The tables: what each contestant's figures mean beside the others', and where pcbatch falls short."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import Any

from benchmarks.nuts.processes import CONTESTANTS

GOAL_OF_BOUND = 0.97
"""Of the utilisation of chains that wait only for each other's last trajectory."""
GOAL_OF_PEER = {64: 1.5, 512: 1.5}
"""Useful gradients per second over those of the best peer, for the long Gaussian, by number of chains."""
GOAL_OF_LOOP, GOAL_FIRST = 0.9, 8.0
"""Useful gradients per second over those of the better bare loop, and seconds of the first call: logistic-large."""

MEASURES = {
    "gradients": "useful gradients",
    "draws": "draws",
    "x": "least effective size of x",
    "x2": "least effective size of x^2",
}
"""What is counted per second. Gradients are what a sampler spends, effective sizes what a user gets."""
COLUMNS = (
    "chains",
    "first s",
    "wall s",
    "cpu s",
    "grad/s",
    "grad/cpu s",
    "grad/draw",
    "draws/s",
    "ESS x /s",
    "ESS x2 /s",
    "useful",
    "lockstep",
    "at end",
)
WIDTH = max(map(len, CONTESTANTS)) + 1


@dataclass
class Figures:
    """One contestant at one target and number of chains.

    `wall`, `cpu`, `leapfrogs` and `sizes` (`effective.least_sizes`, where there are draws and enough of them) are of
    each timed call, `count` of the call whose rows were counted (`worker.serve`); `failure` says why some are missing.
    `draws` says whether trajectories are draws.
    """

    chains: int
    trajectories: int
    first: float | None = None
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    leapfrogs: list[int] = field(default_factory=list)
    count: dict[str, Any] | None = None
    failure: str | None = None
    sizes: list[tuple[float, float]] = field(default_factory=list)
    draws: bool = True

    def rate(self, measure: str, clock: str = "wall") -> float | None:
        """One of `MEASURES` per second of "wall" or "cpu" time, the median of the timed calls."""
        seconds: list[float] = getattr(self, clock)
        amounts: dict[str, list[float]] = {
            "gradients": [float(count) for count in self.leapfrogs],
            "draws": [float(self.chains * self.trajectories)] * len(seconds) if self.draws else [],
            "x": [x for x, _ in self.sizes],
            "x2": [x2 for _, x2 in self.sizes],
        }
        if not amounts[measure]:
            return None
        rate = statistics.median(amount / each for amount, each in zip(amounts[measure], seconds, strict=True))
        return rate if math.isfinite(rate) else None

    @property
    def gradients_of_a_draw(self) -> float | None:
        """In the mean of all timed calls."""
        draws = self.chains * self.trajectories * len(self.leapfrogs)
        return sum(self.leapfrogs) / draws if draws and self.draws else None

    @property
    def utilization(self) -> float | None:
        """Leapfrogs over rows computed; None where these were not counted."""
        return self.count["leapfrogs"] / self.count["rows"] if self.count and self.count["rows"] else None


Cell = dict[str, Figures]
"""All contestants by name, at one target and number of chains."""


def best_peer(cell: Cell, measure: str, clock: str = "wall") -> tuple[str, float] | None:
    """The fastest of the other samplers and its rate."""
    rates = {name: figures.rate(measure, clock) for name, figures in cell.items() if CONTESTANTS[name].is_peer}
    known = {name: rate for name, rate in rates.items() if rate}
    best = max(known, key=lambda name: known[name], default=None)
    return (best, known[best]) if best else None


def over_best_peer(cell: Cell, name: str, measure: str, clock: str = "wall") -> tuple[float, str] | None:
    """How many times the rate of the best peer `name` makes, and who that is."""
    best, rate = best_peer(cell, measure, clock), cell[name].rate(measure, clock)
    return (rate / best[1], best[0]) if best and rate else None


def heading() -> str:
    """The head of a table."""
    return (
        f"{'':<{WIDTH}}" + "".join(f"{column:>11}" for column in COLUMNS) + "   over the best peer: grad, of cpu, x, x2"
    )


def line(name: str, cell: Cell) -> str:
    """One contestant's line; the ratios are of useful gradients per second of wall and CPU time, and of ESS."""
    figures = cell[name]
    if figures.failure:
        return f"{name:<{WIDTH}}{figures.chains:>11}  {figures.failure}"
    count = figures.count or {}
    rates = [figures.rate(*which) for which in (("gradients", "wall"), ("gradients", "cpu"))]
    sampled = [figures.gradients_of_a_draw, *(figures.rate(measure) for measure in ("draws", "x", "x2"))]
    cells = [
        f"{figures.chains}",
        f"{figures.first:.1f}",
        f"{statistics.median(figures.wall):.3f}",
        f"{statistics.median(figures.cpu):.3f}",
        *(f"{value:,.0f}" if value else "-" for value in (*rates, *sampled)),
        *(f"{value:.3f}" if value else "-" for value in (figures.utilization, count["lockstep"], count["at_end"])),
    ]
    ratios = [
        over_best_peer(cell, name, *which)
        for which in (("gradients", "wall"), ("gradients", "cpu"), ("x", "wall"), ("x2", "wall"))
    ]
    shown = " ".join(f"{ratio[0]:.2f}" if ratio else "-" for ratio in ratios)
    return f"{name:<{WIDTH}}" + "".join(f"{text:>11}" for text in cells) + f"   {shown}"


def verdicts(target: str, cell: Cell) -> list[str]:
    """What pcbatch was to reach there and whether it did, and to whom it loses. Nothing where it was not run."""
    ours = {name: figures for name, figures in cell.items() if name.startswith("pcbatch") and figures.wall}
    if not ours:
        return []
    name = max(ours, key=lambda name: ours[name].rate("gradients") or 0)
    figures, found = ours[name], []
    for measure, words in MEASURES.items():
        ratio = over_best_peer(cell, name, measure)
        if ratio and ratio[0] < 1:
            found.append(f"loses to {ratio[1]}: {ratio[0]:.2f} of its {words} per second")
    rate, peer = figures.rate("gradients") or 0, best_peer(cell, "gradients")
    if target.startswith("gaussian"):
        share = max((f.utilization or 0) / f.count["at_end"] for f in ours.values() if f.count)
        found.append(goal("utilisation over the bound", share, GOAL_OF_BOUND))
    if target == "gaussian" and peer and figures.chains in GOAL_OF_PEER:
        found.append(goal(f"over the best peer, {peer[0]}", rate / peer[1], GOAL_OF_PEER[figures.chains]))
    if target == "logistic-large":
        loops = [f.rate("gradients") or 0 for name, f in cell.items() if name.startswith("loop") and f.wall]
        if loops:
            found.append(goal("over the better bare loop", rate / max(loops), GOAL_OF_LOOP))
        found.append(
            f"first call of {name}: {figures.first:.1f} s, goal below {GOAL_FIRST}: "
            + ("reached" if figures.first < GOAL_FIRST else "NOT REACHED")
        )
    return [f"  {figures.chains} chains, {name}: {text}" for text in found]


def goal(what: str, value: float, least: float) -> str:
    """A goal beside what was found."""
    return f"{what} {value:.2f}, goal {least}: {'reached' if value >= least else 'NOT REACHED'}"
