"""The tables: what each contestant's figures mean beside the others', and where pcbatch falls short."""

from __future__ import annotations

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

COLUMNS = ("chains", "first s", "wall s", "cpu s", "per wall s", "per cpu s", "useful", "lockstep", "at end")
WIDTH = max(map(len, CONTESTANTS)) + 1


@dataclass
class Figures:
    """One contestant at one target and number of chains.

    `wall`, `cpu` and `leapfrogs` are of each timed call, `count` of the call whose rows were counted
    (`worker.serve`); `failure` says why some are missing.
    """

    chains: int
    trajectories: int
    first: float | None = None
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    leapfrogs: list[int] = field(default_factory=list)
    count: dict[str, Any] | None = None
    failure: str | None = None

    def rate(self, clock: str) -> float | None:
        """Useful gradients per second of "wall" or "cpu" time, the median of the timed calls."""
        rates = [count / seconds for count, seconds in zip(self.leapfrogs, getattr(self, clock), strict=True)]
        return statistics.median(rates) if rates else None

    @property
    def utilization(self) -> float | None:
        """Leapfrogs over rows computed."""
        return self.count["leapfrogs"] / self.count["rows"] if self.count else None


Cell = dict[str, Figures]
"""All contestants by name, at one target and number of chains."""


def best_peer(cell: Cell, clock: str) -> tuple[str, float] | None:
    """The fastest of the other samplers and its rate."""
    rates = {name: figures.rate(clock) for name, figures in cell.items() if CONTESTANTS[name].is_peer}
    known = {name: rate for name, rate in rates.items() if rate}
    best = max(known, key=lambda name: known[name], default=None)
    return (best, known[best]) if best else None


def heading() -> str:
    """The head of a table."""
    return f"{'':<{WIDTH}}" + "".join(f"{column:>11}" for column in COLUMNS) + f"{'ratio to best peer':>20}"


def line(name: str, cell: Cell) -> str:
    """One contestant's line: its ratios to the best peer are of useful gradients per second of wall and CPU time."""
    figures = cell[name]
    if figures.failure:
        return f"{name:<{WIDTH}}{figures.chains:>11}  {figures.failure}"
    count = figures.count or {}
    cells = [
        f"{figures.chains}",
        f"{figures.first:.1f}",
        f"{statistics.median(figures.wall):.3f}",
        f"{statistics.median(figures.cpu):.3f}",
        f"{figures.rate('wall'):,.0f}",
        f"{figures.rate('cpu'):,.0f}",
        *(f"{value:.3f}" if value else "-" for value in (figures.utilization, count["lockstep"], count["at_end"])),
    ]
    ratios = []
    for clock in ("wall", "cpu"):
        best = best_peer(cell, clock)
        ratios.append(f"{figures.rate(clock) / best[1]:.2f}" if best else "-")
    return f"{name:<{WIDTH}}" + "".join(f"{text:>11}" for text in cells) + f"{' '.join(ratios):>20}"


def verdicts(target: str, cell: Cell) -> list[str]:
    """What pcbatch was to reach there and whether it did, and to whom it loses. Nothing where it was not run."""
    ours = {name: figures for name, figures in cell.items() if name.startswith("pcbatch") and figures.wall}
    if not ours:
        return []
    name = max(ours, key=lambda name: ours[name].rate("wall") or 0)
    figures, found = ours[name], []
    rate = figures.rate("wall") or 0
    peer = best_peer(cell, "wall")
    if peer and rate < peer[1]:
        found.append(f"pcbatch loses to {peer[0]}: {rate / peer[1]:.2f} of its useful gradients per second")
    if target.startswith("gaussian"):
        share = max((f.utilization or 0) / f.count["at_end"] for f in ours.values() if f.count)
        found.append(goal("utilisation over the bound", share, GOAL_OF_BOUND))
    if target == "gaussian" and peer and figures.chains in GOAL_OF_PEER:
        found.append(goal(f"over the best peer, {peer[0]}", rate / peer[1], GOAL_OF_PEER[figures.chains]))
    if target == "logistic-large":
        loops = [f.rate("wall") or 0 for name, f in cell.items() if name.startswith("loop") and f.wall]
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
