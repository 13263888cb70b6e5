"""The batching paper's figure 7: which share of the computed gradients is of use, by number of chains.

    python -m benchmarks.figures.utilization [--chains 1 4 16 64 256 1024] [--json FILE]

The density is the AR(1) Gaussian of 100 dimensions, whose trajectories differ much in length. All machines are run, and
counted by their own counters: the paper's program-counter machine (schedules "switch" and "earliest", every row masked,
nothing gathered), pcbatch's own in lockstep, local batching, and TensorFlow Probability's iterative sampler, in which
all chains wait for the longest trajectory. A needed gradient is a leapfrog step by the sampler's statistics, or the one
at a chain's starting point.

Writes `utilization.md` and `utilization.png` into docs/figures. TensorFlow Probability gets an environment of its own
in out/peers, made by this script; if it cannot be made, the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import conversation
from benchmarks.conversation import ContestantError, Process
from benchmarks.environments import FOLDER, TENSORFLOW_PROBABILITY, PeerUnavailableError
from benchmarks.figures import pages, paper, pictures
from benchmarks.figures.pictures import Curve, Style
from benchmarks.figures.sampler import Chains, Count
from benchmarks.harness import arguments, write_json
from benchmarks.nuts.targets import TARGETS, Target

NAME = "utilization"
TARGET = "gaussian-short"
CHAINS = (1, 4, 16, 64, 256, 1024)
TRAJECTORIES = 10
MOST_SWITCHED = 16
"""Chains: XLA copies the whole state through a switch, which takes minutes at 1,024; "earliest" computes the same rows."""
SEEDS, MOST_SEEDS = 32, 4
"""A few chains say little, and are run with several seeds: at most so many, until so many chains have been run."""
LIMIT = 180.0

MACHINES: dict[str, dict[str, Any]] = {
    "earliest": {"schedule": "earliest", "deterministic": True},
    "switch": {"schedule": "switch"},
    "adaptive": {"form": "lockstep"},
    "local": {"strategy": "local"},
}
"""The options of each; "adaptive" is what "auto" means."""
LABELS = {
    "adaptive": "pc as pcbatch runs it",
    "earliest": "pc, the paper's machine",
    "switch": "pc, the same as a switch",
    "local": "local",
    "tfp": "lockstep (TFP)",
}
STYLES = {
    "adaptive": Style(pictures.BLUE, "o"),
    "earliest": Style(pictures.SKY, "s"),
    "local": Style(pictures.GREEN, "v", "--"),
    "tfp": Style(pictures.ORANGE, "^", ":"),
}
MOST_ASTRAY = 0.02
"""Machines round differently, and a trajectory may so take another turn; they need the same gradients but for that."""


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
        chains, leaves = len(count.leaves), count.leaves
        self.needed += count.needed
        self.rows += count.rows
        self.trajectories += leaves.size
        self.longest = (self.longest or 0) + chains * int(leaves.max(axis=0).sum())
        self.busiest = (self.busiest or 0) + chains * int(leaves.sum(axis=1).max())

    @property
    def utilization(self) -> float | None:
        """Needed gradients over rows."""
        return self.needed / self.rows if self.rows else None


Cell = dict[str, Figures]
"""By machine."""
Cells = Mapping[int, Cell]
"""By number of chains."""


class Lockstep:
    """TensorFlow Probability's sampler in a process of its own; a context manager that ends it."""

    def __init__(self) -> None:
        self.missing: str | None = None
        self._process: Process | None = None
        try:
            python = TENSORFLOW_PROBABILITY.python(conversation.ROOT / FOLDER)
            self._process = Process("benchmarks.figures.contestants.tfp_samplers", python)
        except PeerUnavailableError as why:
            self.missing = str(why)

    def __enter__(self) -> Lockstep:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.close()

    def counted(self, target: Target, chains: int, trajectories: int, seeds: int) -> Figures:
        """Its gradients and rows; it says how many leapfrogs there were in all, not of each trajectory."""
        figures = Figures(longest=None, busiest=None, failure=self.missing)
        if figures.failure or self._process is None:
            return figures
        try:
            given = {"target": target.name, "chains": chains, "trajectories": trajectories, "variant": "sampler"}
            self._process.ask(LIMIT, do="prepare", **given)
            for seed in range(1, seeds + 1):
                reply = self._process.ask(LIMIT, do="run", seed=seed)
                # The first gradient of all chains, as the others' counts have it.
                figures.needed += reply["gradients"] + chains
                figures.rows += reply["rows"]
                figures.trajectories += chains * trajectories
        except ContestantError as why:
            figures.failure = self.missing = str(why)
        return figures


def main() -> None:
    """Run, count, print, write the page and the picture."""
    parser = arguments(__doc__)
    parser.add_argument("--chains", type=int, nargs="+", default=CHAINS)
    parser.add_argument("--trajectories", type=int, default=TRAJECTORIES, help="of each chain, in a row")
    parser.add_argument("--target", choices=TARGETS, default=TARGET, help="another one, to try the program")
    parser.add_argument("--folder", type=Path, default=pages.FOLDER, help="of the page and the picture")
    options = parser.parse_args()
    target, cells = TARGETS[options.target], {}
    with Lockstep() as lockstep:
        for chains in sorted(options.chains):
            seeds = max(1, min(MOST_SEEDS, SEEDS // chains)) if chains > 1 else 1  # of which every row is of use
            cells[chains] = counted(target, chains, options.trajectories, seeds)
            cells[chains]["tfp"] = lockstep.counted(target, chains, options.trajectories, seeds)
            print(f"{chains} chains: {printed(cells[chains])}", flush=True)
    if options.json:
        write_json(options.json, {c: {name: asdict(f) for name, f in cell.items()} for c, cell in cells.items()})
    pictures.save(
        options.folder / f"{NAME}.png",
        curves(cells),
        title=f"{target.family}, {target.size} dimensions, {options.trajectories} trajectories in a row",
        ylabel="useful share of the gradients computed",
        logarithmic=False,
    )
    pages.write(NAME, page(target, cells, options.trajectories), options.folder)


def counted(target: Target, chains: int, trajectories: int, seeds: int) -> Cell:
    """All machines' figures; AssertionError if one makes other trajectories than the rest."""
    cell: Cell = {}
    sampler = Chains(target, chains, trajectories)
    for name, options in MACHINES.items():
        if name == "switch" and chains > MOST_SWITCHED:
            continue
        cell[name] = Figures()
        for seed in range(1, seeds + 1):
            cell[name].add(sampler.counted(seed, **options))
    compare(cell)
    return cell


def compare(cell: Cell) -> None:
    """AssertionError unless all need the same gradients, but for rounding."""
    needed = {name: figures.needed for name, figures in cell.items()}
    spread = (max(needed.values()) - min(needed.values())) / max(needed.values())
    assert spread <= MOST_ASTRAY, f"machines made other trajectories: gradients needed {needed}"


def printed(cell: Cell) -> str:
    """A line for the terminal."""
    return ", ".join(
        f"{name} {figures.utilization:.3f}" if figures.utilization else f"{name}: {figures.failure}"
        for name, figures in cell.items()
    )


def curves(cells: Cells) -> list[Curve]:
    """Those machines that have figures."""
    found = []
    for name, style in STYLES.items():
        shares = {chains: cell[name].utilization for chains, cell in cells.items() if name in cell}
        known = {chains: share for chains, share in shares.items() if share is not None}
        if known:
            found.append(Curve(LABELS[name], style, list(known), list(known.values())))
    return found


# -- the page ----------------------------------------------------------------------------------------------------------


def page(target: Target, cells: Cells, trajectories: int) -> list[str]:
    """Its parts."""
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
            f"density is an {target.family} of {target.size} dimensions whose neighbours have correlation 0.9; each "
            f"chain makes {trajectories} trajectories in a row, with step size {target.step_size}, unit metric and "
            "depth 10. Utilisation is gradients that chains needed over gradients that were computed. Every machine was "
            f"run, and counted by its own counters. Measured on {pages.machine()}; counts do not depend on how fast it is."
        ),
        f"![Utilisation by number of chains]({NAME}.png)",
        pages.table(heads, shares),
        pages.paragraph(
            "*The paper's machine* runs, in each step, the earliest block at which a lane waits, for all lanes, and masks "
            'those that do not wait there (`schedule="earliest", deterministic=True`; `schedule="switch"` is its figure 5 '
            f"as written, run up to {MOST_SWITCHED} chains, since XLA copies the state through the switch). *As pcbatch "
            'runs it* (`form="lockstep"`): the schedule weighs lanes against costs, and where few lanes wait at an '
            "expensive block it computes their rows only. By default this density, whose gradient is cheap, does not run "
            "in lockstep at all but chain after chain in native code, where every row is of use. *Local* has calls on the "
            "host's stack. *Lockstep* is TensorFlow Probability's iterative `NoUTurnSampler`."
        ),
        *(["What is missing:", pages.points(missing)] if missing else []),
        "## What is seen",
        pages.points(seen(cells)),
        "## What the paper says",
        pages.paragraph(paper.UTILIZATION.format(trajectories=trajectories)),
        pages.paragraph(paper.NOT_AT_HAND),
        "## Beside it",
        "What utilisation would be if chains waited for each other in one place only, from the lengths of the "
        "trajectories\nthat the paper's machine has made:",
        pages.table(heads, bounds),
        "Gradients for each trajectory, the one at the start included:",
        pages.table(heads, per_trajectory),
    ]


def share(figures: Figures | None) -> str:
    """Utilisation in the table."""
    return f"{figures.utilization:.2f}" if figures and figures.utilization is not None else ""


def length(figures: Figures | None) -> str:
    """Gradients a trajectory."""
    return f"{figures.needed / figures.trajectories:.1f}" if figures and figures.trajectories else ""


def bound(figures: Figures, name: str) -> str:
    """What it would be with so many rows."""
    return f"{figures.needed / rows:.2f}" if (rows := getattr(figures, name)) else ""


def seen(cells: Cells) -> list[str]:
    """What the counts say: who is ahead by how much, and whether two ways to run the paper's machine are one."""
    found = []
    many = {chains: cell for chains, cell in cells.items() if chains > 1}
    for ours in ("earliest", "adaptive"):
        ratios = {
            chains: ahead / behind
            for chains, cell in many.items()
            if (ahead := cell[ours].utilization) and (behind := cell["local"].utilization)
        }
        if ratios:
            heads, values = pages.listed([f"{each:,}" for each in ratios]), [f"{each:.2f}" for each in ratios.values()]
            name = "the paper's machine" if ours == "earliest" else "the machine as pcbatch runs it"
            found.append(
                f"Of what local makes of its rows, {name} makes {pages.listed(values)} times at {heads} chains."
            )
    longest = {c: f.longest * c / (c * f.needed) for c, cell in many.items() if (f := cell["earliest"]).longest}
    if longest:
        most = max(longest)
        found.append(
            f"At {most:,} chains the longest trajectory of all is {longest[most]:.1f} times as long as the average one: "
            "that is what local and lockstep pay."
        )
    pairs = [
        (cell["switch"].rows, cell["earliest"].rows)
        for cell in cells.values()
        if "switch" in cell and "earliest" in cell
    ]
    if pairs:
        same = sum(one == other for one, other in pairs)
        found.append(
            f"The switch computes exactly as many rows as the guarded machine at {same} of {len(pairs)} numbers."
        )
    worse = [
        f"{chains:,} ({cell['adaptive'].utilization:.2f} against {cell['earliest'].utilization:.2f})"
        for chains, cell in many.items()
        if np.round((cell["adaptive"].utilization or 0) - (cell["earliest"].utilization or 0), 2) < 0
    ]
    if worse:
        found.append(
            "As pcbatch runs it utilisation is lower than the paper's at "
            f"{pages.listed(worse)} chains: gradients are cheap here, so its schedule does not wait for all that would come."
        )
    return found


if __name__ == "__main__":
    main()
