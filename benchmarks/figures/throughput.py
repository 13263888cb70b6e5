"""The batching paper's figure 6: throughput of the sampler by number of chains, on a large logistic regression.

    python -m benchmarks.figures.throughput [--chains 1 4 16 64 256] [--contestants pc stan ..] [--json FILE]

Useful gradients per second of pcbatch's sampler on its own machine and on the paper's (switch, local, hybrid), of
TensorFlow Probability's samplers, of a sampler that is not batched at all, and of Stan. All have the same density
(10,000 observations, 100 weights), step size, unit metric, depth 10 and starting points; timed calls take turns. A
useful gradient is a leapfrog step that a chain needed by the sampler's own statistics. The first call, which compiles,
is timed apart. Draws are compared with each other; a sampler that draws from something else is an error.

Writes `throughput.md` and `throughput.png` into docs/figures. Peers get environments of their own in out/peers, made
by this script; one that cannot be made is named in the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.figures import pages, paper, pictures
from benchmarks.figures.agreement import MOST_APART, Moments, Verdict, apart, verdicts
from benchmarks.figures.crew import CONTESTANTS, CORES, Cell, Crew
from benchmarks.figures.pictures import Curve, Style
from benchmarks.harness import arguments, write_json
from benchmarks.nuts.targets import TARGETS, Target

NAME = "throughput"
TARGET = "logistic-large"
CHAINS = (1, 4, 16, 64, 256)
TRAJECTORIES = 10
MACHINES = ("switch", "hybrid", "local")
"""Those of the paper, which draw what "pc" draws."""
STYLES = {
    "pc": Style(pictures.BLUE, "o"),
    "switch": Style(pictures.SKY, "s"),
    "hybrid": Style(pictures.GREEN, "D"),
    "local": Style(pictures.GREEN, "v", "--"),
    "tfp": Style(pictures.ORANGE, "^"),
    "tfp-machine": Style(pictures.RED, "P"),
    "tfp-stackless": Style(pictures.RED, "X", "--"),
    "eager": Style(pictures.GREY, ".", ":"),
    "stan": Style(pictures.BLACK, "*", ":"),
}

Cells = Mapping[int, Cell]
"""By number of chains."""


def main() -> None:
    """Measure, print, write the page and the picture."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument("--chains", type=int, nargs="+", default=CHAINS)
    parser.add_argument("--trajectories", type=int, default=TRAJECTORIES, help="of each chain in a call")
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS), metavar="name")
    parser.add_argument("--target", choices=TARGETS, default=TARGET, help="another one, to try the program")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a call is given up")
    parser.add_argument("--budget", type=float, default=4, help="seconds of timed calls of a contestant at each number")
    parser.add_argument("--folder", type=Path, default=pages.FOLDER, help="of the page and the picture")
    options = parser.parse_args()
    target, cells = TARGETS[options.target], {}
    with Crew(options.contestants) as crew:
        for chains in sorted(options.chains):
            cells[chains] = crew.measured(
                target,
                chains,
                options.trajectories,
                repeats=options.repeats,
                limit=options.limit,
                budget=options.budget,
            )
            print(f"{chains} chains: {printed(cells[chains])}", flush=True)
        agreement, faults = agreements(crew.moments)
    if options.json:
        plain = {chains: {name: asdict(f) for name, f in cell.items()} for chains, cell in cells.items()}
        write_json(options.json, {"cells": plain, "agreement": {name: asdict(v) for name, v in agreement.items()}})
    pictures.save(
        options.folder / f"{NAME}.png",
        curves(cells),
        title=f"{target.family}, {target.observations:,} x {target.size}: {CORES} cores of a CPU",
        ylabel="useful gradients per second",
        logarithmic=True,
    )
    pages.write(NAME, page(target, cells, options.trajectories, agreement, faults), options.folder)
    if faults:
        raise SystemExit("draws disagree: " + "; ".join(faults))


def agreements(moments: Mapping[str, Moments]) -> tuple[dict[str, Verdict], list[str]]:
    """How near each contestant's draws are to those of others, and what is wrong with them."""
    found = verdicts(moments, {name: CONTESTANTS[name].script for name in moments})
    faults = [f"{name}: {verdict}" for name, verdict in found.items() if not verdict.agrees]
    if "pc" in moments:
        for name in MACHINES:
            own = moments.get(name)
            if own and own.count == moments["pc"].count and (distance := apart(moments["pc"], own)) > MOST_APART:
                faults.append(f"pc and {name} make draws that are {distance:.2f} standard deviations apart")
    return found, faults


def printed(cell: Cell) -> str:
    """A line for the terminal."""
    return ", ".join(f"{name} {f.rate:,.0f}/s" if f.rate else f"{name}: {f.failure}" for name, f in cell.items())


def curves(cells: Cells) -> list[Curve]:
    """Those contestants that have figures."""
    found = []
    for name, style in STYLES.items():
        rates = {chains: cell[name] for chains, cell in cells.items() if name in cell and cell[name].rate}
        if rates:
            solid = [figures.measured == chains for chains, figures in rates.items()]
            values = [figures.rate or 0.0 for figures in rates.values()]
            found.append(Curve(CONTESTANTS[name].label, style, list(rates), values, solid))
    return found


# -- the page ----------------------------------------------------------------------------------------------------------


def page(
    target: Target, cells: Cells, trajectories: int, agreement: Mapping[str, Verdict], faults: Sequence[str]
) -> list[str]:
    """Its parts."""
    names = list(next(iter(cells.values())))
    heads = [pages.chains(chains) for chains in cells]
    rates = {CONTESTANTS[name].label: [shown(cell, name) for cell in cells.values()] for name in names}
    firsts = {
        CONTESTANTS[name].label: [
            f"{cell[name].first:.1f}" if cell[name].first is not None and cell[name].measured == chains else ""
            for chains, cell in cells.items()
        ]
        for name in names
    }
    useful = {
        CONTESTANTS[name].label: [
            f"{cell[name].useful:.2f}" if cell[name].useful is not None and cell[name].measured == chains else ""
            for chains, cell in cells.items()
        ]
        for name in names
    }
    failures = [
        f"{CONTESTANTS[name].label}, {pages.chains(chains)}: {cell[name].failure}"
        for name in names
        for chains, cell in cells.items()
        if cell[name].failure
    ]
    return [
        "# Throughput by number of chains",
        pages.paragraph(
            f"`python -m benchmarks.figures.{NAME}` writes this page: figure 6 of {paper.PAPER}, measured anew. The "
            f"density is a {target.family} of {target.observations:,} observations and {target.size} weights; every "
            f"call makes {trajectories} trajectories of each chain from the same starting points, with step size "
            f"{target.step_size}, unit metric and depth 10, in float32 (Stan in float64). Measured on {pages.machine()}."
        ),
        f"![Useful gradients per second by number of chains]({NAME}.png)",
        "Useful gradients per second, warm, medians of calls that take turns; in brackets what was not measured, since "
        "such chains\nrun one after another, " + f"Stan's on {CORES} cores:",
        pages.table(heads, rates),
        *(["What is missing:", pages.points(failures)] if failures else []),
        "## What is seen",
        pages.points(seen(cells)),
        "## What the paper says",
        pages.paragraph(paper.THROUGHPUT),
        pages.paragraph(paper.NOT_AT_HAND),
        "## Beside it",
        "Seconds of the first call (trace, compile, run; Stan's first has its C++ compiler's work in it):",
        pages.table(heads, firsts),
        pages.paragraph(
            "Useful gradients over rows computed, counted by each program. All trajectories of this density are "
            "about equally long, so hardly a row is lost to waiting; pcbatch's sampler fills chains up to a multiple "
            "of four, and one chain so has three that nobody asked for. TFP's own machines compute the first gradient twice and trace with "
            "a row more. The gradients of Stan and of the unbatched sampler are all of use."
        ),
        pages.table(heads, useful),
        pages.paragraph(
            "Draws agree: of each contestant with at least 16 draws, the distance between the means of its draws and of "
            "those of other samplers (root mean square over the weights, in standard errors: about 1 is expected, at "
            "most 1.6 allowed), and how far draws are from the chains' starts (about 1: as far as independent ones):"
            if not faults
            else "**Draws disagree:** " + "; ".join(faults)
        ),
        pages.table(
            ["draws", "means", "moved"],
            {
                CONTESTANTS[name].label: [str(v.count), f"{v.shift:.2f}", f"{v.move:.2f}"]
                for name, v in agreement.items()
            },
        ),
    ]


def shown(cell: Cell, name: str) -> str:
    """A rate in the table; in brackets one that was measured at another number of chains."""
    figures = cell[name]
    if figures.rate is None:
        return "-"
    text = f"{rounded(figures.rate):,.0f}"
    return text if figures.measured == figures.chains else f"({text})"


def rounded(value: float) -> float:
    """To three digits.

    >>> rounded(12345.6)
    12300.0
    """
    return float(f"{value:.3g}")


def seen(cells: Cells) -> list[str]:
    """What the figures say: how throughput grows, who overtakes whom, and where pcbatch is behind."""
    return [*growth(cells), *machines(cells), *overtaking(cells), *behind(cells)]


def rate(cells: Cells, chains: int, name: str) -> float | None:
    """A contestant's rate, if there is one."""
    return cells[chains][name].rate if name in cells[chains] else None


def growth(cells: Cells) -> list[str]:
    """How much more many chains make than one."""
    least, most = min(cells), max(cells)
    found = []
    for name in CONTESTANTS:
        few, many = rate(cells, least, name), rate(cells, most, name)
        if few and many and not CONTESTANTS[name].at_once:
            found.append(f"{CONTESTANTS[name].label} {many / few:.1f}")
    if not found or least == most:
        return []
    return [f"From {pages.chains(least)} to {most:,} throughput grows by a factor of: {'; '.join(found)}."]


def machines(cells: Cells) -> list[str]:
    """pcbatch's own machine over the paper's, by number of chains."""
    found = []
    for name in MACHINES:
        ratios = {
            chains: ours / theirs
            for chains in cells
            if (ours := rate(cells, chains, "pc")) and (theirs := rate(cells, chains, name))
        }
        if ratios:
            listed = ", ".join(f"{ratio:.1f}" for ratio in ratios.values())
            found.append(f"{listed} times those of {CONTESTANTS[name].label}")
    heads = pages.listed([f"{chains:,}" for chains in cells])
    return [f"At {heads} chains pcbatch's own machine makes {'; '.join(found)}."] if found else []


def overtaking(cells: Cells) -> list[str]:
    """From which number of chains on the batched samplers make more than those that run one chain after another."""
    found = []
    for single in ("stan", "eager"):
        for name in CONTESTANTS:
            if CONTESTANTS[name].at_once or not all(rate(cells, c, name) and rate(cells, c, single) for c in cells):
                continue
            ahead = [c for c in cells if (rate(cells, c, name) or 0) > (rate(cells, c, single) or 0)]
            behind = [c for c in cells if c not in ahead]
            if not ahead:
                found.append((single, f"{CONTESTANTS[name].label} never"))
            elif not behind:
                found.append((single, f"{CONTESTANTS[name].label} always"))
            else:
                found.append(
                    (
                        single,
                        f"{CONTESTANTS[name].label} from {pages.chains(min(c for c in ahead if c > max(behind)))} on"
                        if max(ahead) > max(behind)
                        else f"{CONTESTANTS[name].label} up to {pages.chains(max(ahead))}",
                    )
                )
    return [
        f"More than {CONTESTANTS[single].label} make: {'; '.join(texts)}."
        for single in ("stan", "eager")
        if (texts := [text for who, text in found if who == single])
    ]


def behind(cells: Cells) -> list[str]:
    """Where pcbatch's own machine is slower than somebody else's."""
    found = []
    for chains in cells:
        ours = rate(cells, chains, "pc")
        for name in CONTESTANTS:
            theirs = rate(cells, chains, name)
            if ours and theirs and theirs > ours and name != "pc":
                found.append(f"{theirs / ours:.2f} times at {pages.chains(chains)} by {CONTESTANTS[name].label}")
    return [
        f"pcbatch's own machine is outdone {'; '.join(found)}."
        if found
        else "pcbatch's own machine is outdone by none here."
    ]


if __name__ == "__main__":
    main()
