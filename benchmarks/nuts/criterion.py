"""Effective sizes of a gradient under U-turn criteria that weigh the ends of a trajectory differently.

    python -m benchmarks.nuts.criterion [--seeds 3] [--small] [--json FILE] [--markdown docs/figures/nuts-criterion.md]

The targets of `benchmarks.nuts` run with a fixed step size and a unit metric from points of the density itself, the
posteriors of `benchmarks.nuts.end_to_end` with a warm-up. Effective sizes over gradients are the same on a busy machine
as on a quiet one.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean

import numpy as np

from benchmarks.harness import arguments, load, origin, table, write_json, write_page
from benchmarks.nuts.contestants.in_tensorflow import ONE
from benchmarks.nuts.effective import least_sizes
from benchmarks.nuts.end_to_end.contestants.pcbatch_run import prepare
from benchmarks.nuts.end_to_end.contestants.worker import Job
from benchmarks.nuts.end_to_end.posteriors import POSTERIORS
from benchmarks.nuts.targets import TARGETS
from pcbatch import nuts

WEIGHTS = (1.0, 0.75, 0.5)
CHOSEN = {"gaussian": 16, "funnel": 64, "logistic-small": 16}
"""Targets, each with its number of chains."""
ADAPTED = ("breast-cancer", "arK", "mesquite", "counts")
HEAD = ("density", "end_weight", "gradients of a draw", "ESS of x", "of x^2", "x, ratio", "x^2, ratio")
INTRODUCTION = """\
# Which ends count in the U-turn criterion

A trajectory ends where its ends begin to approach each other, by the sum of its momenta. Stan counts both ends in full,
NumPyro and BlackJAX count them by half: `nuts.sample(.., end_weight=0.5)`. That makes trajectories shorter. Effective
sizes are the least over all numbers, per 1,000 gradients, of {draws} draws a chain (seeds: {seeds}). A ratio is over
`end_weight=1`, the default. Gaussian, funnel and logistic-small have a fixed step size. The others warm up for {warmup}
trajectories.
"""


@dataclass
class Figures:
    """One density under one criterion: effective sizes of x and x^2 of all seeds, gradients and draws."""

    sizes: tuple[float, float]
    gradients: int
    draws: int

    def yields(self, which: int) -> float:
        """Effective sizes of x (0) or x^2 (1) per 1,000 gradients."""
        return 1000 * self.sizes[which] / self.gradients


def of_target(name: str, weight: float, seeds: int, draws: int) -> Figures:
    """A target of `benchmarks.nuts`."""
    target, chains = TARGETS[name], CHOSEN[name]
    starts, data, sizes, gradients = target.starts(chains), target.data() or None, [], 0
    for seed in range(seeds):
        samples = nuts.sample(
            ONE[target.family],
            starts[0],
            data=data,
            initial_per_chain=starts,
            chains=chains,
            warmup=0,
            draws=draws,
            seed=seed,
            step_size=target.step_size,
            adapt=None,
            end_weight=weight,
            progress=False,
        )
        sizes.append(least_sizes(samples["x"]) or (0.0, 0.0))
        gradients += int(samples.sample_stats["n_steps"].sum())
    return Figures(tuple(np.sum(sizes, axis=0).tolist()), gradients, seeds * chains * draws)


def of_posterior(name: str, weight: float, seeds: int, warmup: int, draws: int) -> Figures:
    """A posterior of `benchmarks.nuts.end_to_end`, eight chains."""
    model, sizes, gradients = POSTERIORS[name], [], 0
    data = {key: array.astype(float) for key, array in model.data().items()}
    run = prepare(Job(name, 8, warmup, draws, "per_chain"), data, end_weight=weight)
    for seed in range(seeds):
        drawn, counts = run(seed, model.starts(8, seed).astype(float))
        sizes.append(least_sizes(drawn) or (0.0, 0.0))
        gradients += counts.gradients
    return Figures(tuple(np.sum(sizes, axis=0).tolist()), gradients, seeds * 8 * draws)


def rows(found: dict[str, dict[float, Figures]]) -> list[list[str]]:
    """The table's lines, geometric means last."""
    lines, ratios = [], {weight: ([], []) for weight in WEIGHTS[1:]}
    for name, by_weight in found.items():
        for weight, figures in by_weight.items():
            beside = [figures.yields(which) / by_weight[1.0].yields(which) for which in (0, 1)]
            of_ratios = ["", ""] if weight == 1.0 else [f"{each:.2f}" for each in beside]
            for kept, each in zip(ratios.get(weight, ()), beside, strict=False):
                kept.append(each)
            of_draws = f"{figures.gradients / figures.draws:.1f}"
            yields = [f"{figures.yields(which):.3g}" for which in (0, 1)]
            lines.append([name, f"{weight}", of_draws, *yields, *of_ratios])
    for weight, (of_x, of_squares) in ratios.items():
        means = [f"{geometric_mean(each):.2f}" for each in (of_x, of_squares)]
        lines.append(["geometric mean", f"{weight}", "", "", "", *means])
    return lines


def main() -> None:
    """Measure, print, write."""
    warnings.simplefilter("ignore", nuts.SamplerWarning)
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="one target, few draws")
    parser.add_argument("--markdown", type=Path, help="where to write the page")
    given, before = parser.parse_args(), load()
    seeds, draws, warmup = (1, 20, 20) if given.small else (given.seeds, 400, 800)
    targets, posteriors = (["funnel"], []) if given.small else ([*CHOSEN], ADAPTED)
    found = {name: {weight: of_target(name, weight, seeds, draws) for weight in WEIGHTS} for name in targets}
    for name in posteriors:
        found[name] = {weight: of_posterior(name, weight, seeds, warmup, draws) for weight in WEIGHTS}
    lines = table(HEAD, rows(found))
    print("\n".join(lines))
    if given.json:
        write_json(given.json, {name: {str(w): asdict(f) for w, f in cell.items()} for name, cell in found.items()})
    if given.markdown:
        head = INTRODUCTION.format(seeds=seeds, draws=draws, warmup=warmup)
        write_page(given.markdown, [head, origin(before), "", *lines])


if __name__ == "__main__":
    main()
