"""The batching paper's figure 7: which share of the computed gradients is of use, by number of chains.

    python -m benchmarks.figures.utilization [--chains 1 3 10 30 100 300 1000] [--small] [--json FILE]

The density is the AR(1) Gaussian of 100 dimensions, whose trajectories differ much in length. All machines are run, and
counted by their own counters: the paper's program-counter machine (schedules "switch" and "earliest", every row masked,
nothing gathered), pcbatch's own in lockstep, local batching, and TensorFlow Probability's iterative sampler, in which
all chains wait for the longest trajectory. A leaf takes four leapfrog steps, as in the paper. A needed gradient is a
leapfrog step by the sampler's statistics, or one that a chain computes where it starts.

Writes `utilization.md` and `utilization.png` into docs/figures. TensorFlow Probability gets an environment of its own
in the user's cache, made by this script; if it cannot be made, the page says so.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.conversation import ContestantError, Process
from benchmarks.environments import TENSORFLOW_PROBABILITY, PeerUnavailableError
from benchmarks.figures import pages, paper, pictures
from benchmarks.figures.pictures import Curve, Style
from benchmarks.figures.sampler import Chains
from benchmarks.figures.utilization_page import LABELS, MOST_SWITCHED, NAME, Cell, Cells, Figures, page
from benchmarks.harness import arguments, load, origin, write_json
from benchmarks.nuts.targets import TARGETS

TARGET = "gaussian-short"
CHAINS = (1, 3, 10, 30, 100, 300, 1000)
TRAJECTORIES = 10
SMALL = {"chains": (1, 4), "trajectories": 2}
"""The options of a small run, which needs no other environment."""
PACKAGES = ("tensorflow", "numpy")
SEEDS, MOST_SEEDS = 32, 4
"""A few chains say little, and are run with several seeds: at most so many, until so many chains have been run."""
LIMIT = 180.0

MACHINES: dict[str, dict[str, Any]] = {
    "earliest": {"schedule": "earliest"},
    "switch": {"schedule": "switch"},
    "adaptive": {"form": "lockstep"},
    "local": {"strategy": "local"},
}
"""The options of each; "adaptive" is what "auto" means. Of "earliest" the rows are counted that the paper's machine
would compute, which masks and gathers nothing."""
STYLES = {
    "adaptive": Style(pictures.BLUE, "o"),
    "earliest": Style(pictures.SKY, "s"),
    "local": Style(pictures.GREEN, "v", "--"),
    "tfp": Style(pictures.ORANGE, "^", ":"),
}
MOST_ASTRAY = 0.02
"""Machines round differently, and a trajectory may so take another turn; they need the same gradients but for that."""


class Lockstep:
    """TensorFlow Probability's sampler in a process of its own; a context manager that ends it."""

    def __init__(self) -> None:
        self.missing: str | None = None
        self._process: Process | None = None
        try:
            python = TENSORFLOW_PROBABILITY.python()
            self._process = Process("benchmarks.figures.contestants.tfp_samplers", python)
        except PeerUnavailableError as why:
            self.missing = str(why)

    def __enter__(self) -> Lockstep:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.close()

    def counted(self, sizes: paper.Sizes, chains: int, seeds: int) -> Figures:
        """Its gradients and rows; it says how many leapfrogs there were in all, not of each trajectory."""
        figures = Figures(longest=None, busiest=None, failure=self.missing)
        if figures.failure or self._process is None:
            return figures
        try:
            self._process.ask(LIMIT, do="prepare", variant="sampler", **sizes.given(chains))
            for seed in range(1, seeds + 1):
                reply = self._process.ask(LIMIT, do="run", seed=seed)
                # The first gradient of all chains, as the others' counts have it.
                figures.needed += reply["gradients"] + chains
                figures.rows += reply["rows"]
                figures.trajectories += chains * sizes.trajectories
        except ContestantError as why:
            figures.failure = self.missing = str(why)
        return figures


def main() -> None:
    """Run, count, print, write the page and the picture."""
    parser = arguments(__doc__)
    parser.add_argument("--chains", type=int, nargs="+", default=CHAINS)
    parser.add_argument("--trajectories", type=int, default=TRAJECTORIES, help="of each chain, in a row")
    parser.add_argument("--leapfrogs", type=int, default=paper.LEAPFROGS, help="of each leaf")
    parser.add_argument("--target", choices=TARGETS, default=TARGET, help="another one, to try the program")
    parser.add_argument("--folder", type=Path, default=pages.FOLDER, help="of the page and the picture")
    parser.add_argument("--small", action="store_true", help="small sizes and no peer: to try the command")
    options = parser.parse_args()
    vars(options).update(SMALL if options.small else {})
    sizes = paper.Sizes(TARGETS[options.target], options.trajectories, options.leapfrogs)
    target, cells, before = sizes.target, {}, load()
    with nullcontext() if options.small else Lockstep() as lockstep:
        for chains in sorted(options.chains):
            seeds = max(1, min(MOST_SEEDS, SEEDS // chains)) if chains > 1 else 1  # of which every row is of use
            cells[chains] = counted(sizes, chains, seeds)
            if lockstep:
                cells[chains]["tfp"] = lockstep.counted(sizes, chains, seeds)
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
    pages.write(NAME, page(sizes, cells, origin(before, PACKAGES)), options.folder)


def counted(sizes: paper.Sizes, chains: int, seeds: int) -> Cell:
    """All machines' figures; AssertionError if one makes other trajectories than the rest."""
    cell: Cell = {}
    sampler = Chains(sizes, chains)
    for name, options in MACHINES.items():
        if name == "switch" and chains > MOST_SWITCHED:
            continue
        cell[name] = Figures()
        for seed in range(1, seeds + 1):
            cell[name].add(sampler.counted(seed, masked=name == "earliest", **options))
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


if __name__ == "__main__":
    main()
