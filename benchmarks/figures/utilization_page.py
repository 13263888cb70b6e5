"""The page of the utilisation figure: what was counted, tables, and what they say, found in the counts themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.figures import pages, paper
from benchmarks.figures.sampler import Count

NAME = "utilization"
MOST_SWITCHED = 16
"""Chains: XLA copies the state through a switch, which takes minutes at 1,024; "earliest" computes the same rows."""
LABELS = {
    "adaptive": "pc as pcbatch runs it",
    "earliest": "pc, the paper's machine",
    "switch": "pc, the same as a switch",
    "local": "local",
    "tfp": "lockstep (TFP)",
}


@dataclass
class Figures:
    """One machine at so many chains: gradients that were needed and rows computed, over all seeds.

    `longest` and `busiest` are the rows that chains compute which wait for each other after each trajectory, or only at
    the end, by the very same trajectories; `trajectories` how many there were.
    """

    needed: int = 0
    rows: int = 0
    trajectories: int = 0
    longest: int | None = 0
    busiest: int | None = 0
    failure: str | None = None

    def add(self, count: Count) -> None:
        """Count one run in."""
        chains, gradients = len(count.gradients), count.gradients
        self.needed += count.needed
        self.rows += count.rows
        self.trajectories += gradients.size
        self.longest = (self.longest or 0) + chains * int(gradients.max(axis=0).sum())
        self.busiest = (self.busiest or 0) + chains * int(gradients.sum(axis=1).max())

    @property
    def utilization(self) -> float | None:
        """Needed gradients over rows."""
        return self.needed / self.rows if self.rows else None


Cell = dict[str, Figures]
"""By machine."""
Cells = Mapping[int, Cell]
"""By number of chains."""


def page(sizes: paper.Sizes, cells: Cells, measured: str) -> list[str]:
    """Its parts; `measured` says where and by which command."""
    target, trajectories, leapfrogs = sizes
    names = [name for name in LABELS if any(name in cell for cell in cells.values())]
    heads = [pages.chains(chains) for chains in cells]
    shares = {LABELS[name]: [share(cell.get(name)) for cell in cells.values()] for name in names}
    per_trajectory = {
        LABELS[name]: [length(cell.get(name)) for cell in cells.values()] for name in ("earliest", "local", "tfp")
    }
    bounds = {
        "all wait after each trajectory": [bound(cell["earliest"], "longest") for cell in cells.values()],
        "all wait at the end only": [bound(cell["earliest"], "busiest") for cell in cells.values()],
    }
    missing = sorted({figures.failure for cell in cells.values() for figures in cell.values() if figures.failure})
    return [
        "# Utilisation by number of chains",
        pages.paragraph(
            f"`python -m benchmarks.figures.{NAME}` writes this page: figure 7 of {paper.PAPER}, measured anew. The "
            f"density is an {target.family} of {target.size} dimensions whose neighbours have correlation 0.9. Each "
            f"chain makes {trajectories} trajectories in a row, with step size {target.step_size}, unit metric, depth "
            f"10 and {leapfrogs} leapfrog steps to a leaf. Utilisation is gradients that chains needed over gradients "
            "that were computed. Every machine was run, and counted by its own counters."
        ),
        pages.paragraph(f"{measured} Counts do not depend on the machine's speed."),
        f"![Utilisation by number of chains]({NAME}.png)",
        pages.table(heads, shares),
        pages.paragraph(
            '*The paper\'s machine* (`schedule="earliest"`) runs, in each step, the earliest block at which a lane '
            'waits. It masks the other lanes, and a row is counted for every lane. `schedule="switch"` is its figure '
            f"5 as written. It was run up to {MOST_SWITCHED} chains only, since XLA copies the state. *As pcbatch "
            'runs it* (`form="lockstep"`): the schedule weighs lanes against costs, and where few lanes wait at an '
            "expensive block it computes their rows only. By default this density does not run in lockstep at all, "
            "since its gradient is cheap. It runs chain after chain in native code, where every row is of use. *Local* "
            "has calls on the host's stack. *Lockstep* is TensorFlow Probability's iterative `NoUTurnSampler`."
        ),
        *(["What is missing:", pages.points(missing)] if missing else []),
        "## What is seen",
        *over_local(cells),
        pages.points(seen(cells)),
        "## What the paper says",
        pages.paragraph(paper.UTILIZATION.format(batch=paper.BATCH)),
        pages.table(["the paper", f"here, at {pages.chains(nearest(cells))}"], claims(cells, trajectories)),
        pages.paragraph(paper.WHY.format(trajectories=trajectories)),
        "## Beside it",
        "Utilisation if chains waited for each other in one place only, by the lengths of the paper's machine's "
        "trajectories:",
        pages.table(heads, bounds),
        "Gradients for each trajectory, the one at the start included:",
        pages.table(heads, per_trajectory),
    ]


def nearest(cells: Cells) -> int:
    """The number of chains nearest to that for which the paper gives factors."""
    return min(cells, key=lambda chains: abs(math.log(chains / paper.BATCH)))


def claims(cells: Cells, trajectories: int) -> dict[str, list[str]]:
    """What the paper's section 4 says is lost and won back, and what is here: factors."""
    cell = cells[nearest(cells)]
    known = {name: each.utilization for name in LABELS if (each := cell.get(name)) and each.utilization}
    lost = {name: 1 / known[name] for name in ("local", "tfp") if name in known}
    won = {name: known[name] / known["local"] for name in ("earliest", "adaptive") if {name, "local"} <= known.keys()}
    rows = {
        "lost by lanes that wait after each trajectory": (paper.LOST, lost),
        f"of it won back by the machine, with {trajectories} trajectories to a run": (paper.WON, won),
    }
    return {
        row: [theirs, ", ".join(f"{factor:.1f} ({LABELS[name]})" for name, factor in ours.items()) or "-"]
        for row, (theirs, ours) in rows.items()
    }


def share(figures: Figures | None) -> str:
    """Utilisation in the table."""
    return f"{figures.utilization:.2f}" if figures and figures.utilization is not None else ""


def length(figures: Figures | None) -> str:
    """Gradients a trajectory, in the table."""
    return f"{mean(figures):.1f}" if figures and figures.trajectories else ""


def mean(figures: Figures) -> float:
    """Gradients a trajectory, of which there is one at least."""
    return figures.needed / figures.trajectories


def bound(figures: Figures, name: str) -> str:
    """What it would be with so many rows."""
    return f"{figures.needed / rows:.2f}" if (rows := getattr(figures, name)) else ""


def over_local(cells: Cells) -> list[str]:
    """A table of utilisation as a multiple of local batching's, under its title, where there is one."""
    many = {chains: cell for chains, cell in cells.items() if chains > 1}
    found = {}
    for ours in ("earliest", "adaptive"):
        pairs = [(cell[ours].utilization, cell["local"].utilization) for cell in many.values()]
        ratios = [f"{ahead / behind:.2f}" if ahead and behind else "" for ahead, behind in pairs]
        if any(ratios):
            found[LABELS[ours]] = ratios
    return ["Utilisation over that of local:", pages.table([*map(pages.chains, many)], found)] if found else []


def seen(cells: Cells) -> list[str]:
    """The cost of waiting by the counts, and a comparison of the two ways to run the paper's machine."""
    found = []
    many = {chains: cell for chains, cell in cells.items() if chains > 1}
    most = max(cells)
    if longest := cells[most]["earliest"].longest:
        ratio = longest / cells[most]["earliest"].needed
        found.append(
            f"Of {most:,} trajectories made side by side the longest is {ratio:.1f} times as long as the mean. Local "
            "and lockstep wait for the longest."
        )
    others, ours = (cells[most].get(name) for name in ("tfp", "earliest"))
    if others and ours and others.trajectories and (times := mean(others) / mean(ours)) > 2:
        found.append(
            f"Trajectories of TensorFlow Probability's sampler are {times:.0f} times as long. Its U-turn criterion "
            "sums the momenta of leaves, several leapfrog steps apart, and takes the sum for the distance travelled."
        )
    pairs = [
        (cell["switch"].rows, cell["earliest"].rows)
        for cell in cells.values()
        if "switch" in cell and "earliest" in cell
    ]
    if pairs:
        same = sum(one == other for one, other in pairs)
        found.append(
            f"At {same} of {len(pairs)} numbers of chains the switch computes just as many rows as guarded blocks do."
        )
    worse = [f"{chains:,}" for chains, cell in many.items() if share(cell["adaptive"]) < share(cell["earliest"])]
    if worse:
        found.append(
            f"At {pages.listed(worse)} chains utilisation is lower as pcbatch runs it than on the paper's machine. "
            "Where gradients are cheap, as here, pcbatch's schedule does not wait for all lanes that would come."
        )
    return found
