"""The page of the throughput figure: tables, and what they say, found in the figures themselves."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from benchmarks.figures import pages, paper
from benchmarks.figures.agreement import LARGEST_SHIFT, Verdict
from benchmarks.figures.crew import CONTESTANTS, CORES, MACHINES, Cells, Figures

NAME = "throughput"


def page(
    sizes: paper.Sizes,
    cells: Cells,
    agreement: Mapping[str, Verdict],
    faults: Sequence[str],
    measured: str,
    name: str = NAME,
    place: str = f"{CORES} cores of a CPU",
) -> list[str]:
    """Its parts; `measured` says where and by which command, `place` on what."""
    target, trajectories, leapfrogs = sizes
    heads = [pages.chains(chains) for chains in cells]
    failures = [
        f"{CONTESTANTS[name].label}, {pages.chains(chains)}: {figures.failure}"
        for chains, cell in cells.items()
        for name, figures in cell.items()
        if figures.failure
    ]
    title, option = "# Throughput by number of chains", ""
    if name != NAME:
        title, option = f"{title}, on a GPU", " --device gpu"
    return [
        title,
        pages.paragraph(
            f"`python -m benchmarks.figures.{NAME}{option}` writes this page: figure 6 of {paper.PAPER}, measured "
            f"anew. The density is a {target.family} of {target.observations:,} observations and {target.size} "
            f"weights. Every call makes {trajectories} trajectories of each chain from the same starting points, with "
            f"step size {target.step_size}, unit metric and depth 10. A leaf takes {leapfrogs} leapfrog steps (those "
            f"of NumPyro, BlackJAX and Stan take one), and numbers are float32 (Stan's are float64). All ran on "
            f"{place}."
        ),
        pages.paragraph(measured),
        f"![Useful gradients per second by number of chains]({name}.png)",
        pages.paragraph(
            "Useful gradients per second, warm, medians of calls that take turns. A figure in brackets, hollow in the "
            "picture, was not measured. Such chains run one after another, so more of them take as many times as long "
            f"(Stan's on {CORES} cores)."
        ),
        pages.table(heads, rows(cells, shown)),
        *(["What is missing:", pages.points(failures)] if failures else []),
        pages.paragraph(
            "Useful gradients of a call, medians. The fixed cost of a call weighs most where there are few. Samplers "
            "with longer trajectories spread it over more of them."
        ),
        pages.table(heads, rows(cells, lambda figures: f"{gradients(figures):,.0f}" if is_own(figures) else "")),
        "## What is seen",
        *seen(cells),
        "## What the paper says",
        pages.paragraph(paper.THROUGHPUT.format(leapfrogs=paper.LEAPFROGS)),
        pages.table(["here"], claims(cells, place), corner="the paper"),
        *([pages.paragraph(paper.ACCELERATORS.format(cores=CORES))] if name == NAME else []),
        "## Beside it",
        "Seconds of the first call (trace, compile, run; in Stan's first one is the work of its C++ compiler):",
        pages.table(heads, rows(cells, lambda figures: f"{figures.first:.1f}" if is_own(figures) else "")),
        pages.paragraph(
            "Useful gradients over rows computed, as each program counts them. All trajectories of this density are "
            "about equally long, so few rows are lost to waiting. The other lost rows are gradients at the starting "
            "points. The chains of pcbatch's sampler are filled up to a multiple of four, so a single chain has three "
            "unused ones beside it. Stan and the unbatched sampler compute only what they need."
        ),
        pages.table(heads, rows(cells, lambda figures: share(figures.useful) if is_own(figures) else "")),
        "**Draws disagree:** " + "; ".join(faults)
        if faults
        else pages.paragraph(
            "Draws agree. The table has each contestant with at least 16 draws. *Means* is how far the means of its "
            "draws are from those of other samplers: the root mean square over the weights, in standard errors. About "
            f"1 is expected, at most {LARGEST_SHIFT} allowed. *Moved* is how far draws are from where their chains "
            "started: 1 is as far as independent draws."
        ),
        pages.table(
            ["draws", "means", "moved"],
            {
                CONTESTANTS[name].label: [str(v.count), f"{v.shift:.2f}", f"{v.move:.2f}"]
                for name, v in agreement.items()
            },
        ),
    ]


def rows(cells: Cells, text: Callable[[Figures], str]) -> dict[str, list[str]]:
    """A table's rows, a contestant each."""
    names = next(iter(cells.values()))
    return {CONTESTANTS[name].label: [text(cell[name]) for cell in cells.values()] for name in names}


def is_own(figures: Figures) -> bool:
    """Whether so many chains were measured themselves, and to the end."""
    return figures.measured == figures.chains and figures.rate is not None


def share(useful: float | None) -> str:
    """A share of rows; nothing for those who do not count them."""
    return "" if useful is None else f"{useful:.2f}"


def gradients(figures: Figures) -> float:
    """Useful gradients of a timed call, the median."""
    return statistics.median(figures.gradients)


def shown(figures: Figures) -> str:
    """A rate in the table; in brackets one that was measured at another number of chains."""
    if figures.rate is None:
        return "-"
    text = f"{rounded(figures.rate):,.0f}"
    return text if figures.measured == figures.chains else f"({text})"


def rounded(value: float, digits: int = 3) -> float:
    """To so many digits.

    >>> rounded(12345.6)
    12300.0
    """
    return float(f"{value:.{digits}g}")


def seen(cells: Cells) -> list[str]:
    """Parts that say what the figures show: how throughput grows, who overtakes whom, and where pcbatch is behind."""
    return [*growth(cells), *machines(cells), *overtaking(cells), *losses(cells)]


def rate(cells: Cells, chains: int, name: str) -> float | None:
    """A contestant's rate, if there is one."""
    return cells[chains][name].rate if name in cells[chains] else None


def claims(cells: Cells, place: str = f"{CORES} cores of a CPU") -> dict[str, list[str]]:
    """What the paper's section 4 says, and what is measured here, by the paper's sentence."""
    most = max(cells)
    at_most = {name: made for name in ("pc", *MACHINES) if (made := rate(cells, most, name))}
    hybrid = at_most.pop("hybrid", None)
    found = {
        paper.LINEAR: steps(cells, "pc", place),
        paper.EAGER_LEVEL: levels(cells, ("tfp-stackless", "local")),
        paper.COMPILED_LEVEL: levels(cells, ("tfp-machine", "switch", "pc")),
        paper.HYBRID: "",
    }
    if hybrid and at_most:
        ratios = [f"{hybrid / made:.2f} times as many as {CONTESTANTS[name].label}" for name, made in at_most.items()]
        found[paper.HYBRID] = f"At {pages.chains(most)} it makes {pages.listed(ratios)}."
    return {claim: [here or "-"] for claim, here in found.items()}


def steps(cells: Cells, name: str, place: str) -> str:
    """By how much a contestant's throughput grows from each number of chains to the next."""
    rates = {chains: made for chains in sorted(cells) if (made := rate(cells, chains, name))}
    pairs = [*zip(rates, [*rates][1:], strict=False)]
    found = [
        f"{rates[more] / rates[few]:.1f} times as many for {more / few:g} times as many chains (to {more:,})"
        for few, more in pairs
    ]
    return f"{CONTESTANTS[name].label} on {place}: {pages.listed(found)}." if found else ""


def levels(cells: Cells, names: Sequence[str]) -> str:
    """From which number of chains on contestants make more than Stan."""
    found = [f"{CONTESTANTS[name].label} {said}" for name in names if (said := level(cells, name, "stan"))]
    return f"{'; '.join(found)}." if found else ""


def level(cells: Cells, name: str, other: str) -> str:
    """From which number of chains on one contestant makes more than another; between measured ones interpolated."""
    ratios = {
        chains: own / its
        for chains in sorted(cells)
        if (own := rate(cells, chains, name)) and (its := rate(cells, chains, other))
    }
    if not ratios:
        return ""
    behind = max((chains for chains, ratio in ratios.items() if ratio <= 1), default=None)
    if behind is None:
        return f"at {pages.chains(min(ratios))} already"
    if behind == max(ratios):
        return f"not at {pages.chains(behind)} yet"
    ahead = min(chains for chains in ratios if chains > behind)
    share = -math.log(ratios[behind]) / math.log(ratios[ahead] / ratios[behind])
    return f"at {rounded(behind * (ahead / behind) ** share, 2):,.0f} chains"


def growth(cells: Cells) -> list[str]:
    """How much more many chains make than one."""
    least, most = min(cells), max(cells)
    found = {}
    for name in CONTESTANTS:
        few, many = rate(cells, least, name), rate(cells, most, name)
        if few and many and not CONTESTANTS[name].at_once:
            found[CONTESTANTS[name].label] = [f"{many / few:.1f}"]
    if not found or least == most:
        return []
    return [
        f"By how much throughput grows from {pages.chains(least)} to {most:,}:",
        pages.table(["factor"], found),
    ]


def machines(cells: Cells) -> list[str]:
    """The machine of pcbatch over those of the paper, by number of chains."""
    found = {}
    for name in MACHINES:
        pairs = [(rate(cells, chains, "pc"), rate(cells, chains, name)) for chains in cells]
        if all(ours and theirs for ours, theirs in pairs):
            found[CONTESTANTS[name].label] = [f"{ours / theirs:.1f}" for ours, theirs in pairs if ours and theirs]
    if not found:
        return []
    return [
        f"{CONTESTANTS['pc'].label} makes so many times as many useful gradients as the paper's machines:",
        pages.table([*map(pages.chains, cells)], found),
    ]


def overtaking(cells: Cells) -> list[str]:
    """From which number of chains on the batched samplers make more than those that run one chain after another."""
    singles = {
        single: found for single in CONTESTANTS if CONTESTANTS[single].at_once and (found := ahead(cells, single))
    }
    batched = [each.label for each in CONTESTANTS.values() if any(each.label in found for found in singles.values())]
    if not batched:
        return []
    return [
        "Where batched samplers make more than those that run one chain after another:",
        pages.table(
            [f"more than {CONTESTANTS[single].label}" for single in singles],
            {label: [found.get(label, "") for found in singles.values()] for label in batched},
        ),
    ]


def ahead(cells: Cells, single: str) -> dict[str, str]:
    """From where on each batched sampler makes more than `single`, by its label."""
    found = {}
    for name in CONTESTANTS:
        pairs = {chains: (rate(cells, chains, name), rate(cells, chains, single)) for chains in cells}
        if CONTESTANTS[name].at_once or not all(own and other for own, other in pairs.values()):
            continue
        behind = [chains for chains, (own, other) in pairs.items() if own and other and own <= other]
        later = [chains for chains in cells if chains > max(behind, default=0)]
        where = "everywhere" if not behind else f"from {pages.chains(min(later))} on" if later else "nowhere for good"
        found[CONTESTANTS[name].label] = where
    return found


def losses(cells: Cells) -> list[str]:
    """Where pcbatch's own machine is slower than somebody else's."""
    ours = {chains: rate(cells, chains, "pc") for chains in cells}
    found = {}
    for name, contestant in CONTESTANTS.items():
        rates = [(own, rate(cells, chains, name)) for chains, own in ours.items()]
        ratios = [f"{theirs / own:.2f}" if own and theirs and theirs > own else "" for own, theirs in rates]
        if any(ratios):
            found[contestant.label] = ratios
    if not found:
        return [f"Nobody makes more than {CONTESTANTS['pc'].label}."]
    return [
        f"Others make so many times as many useful gradients as {CONTESTANTS['pc'].label}, where they make more:",
        pages.table([*map(pages.chains, cells)], found),
    ]
