"""Effective sizes of a gradient after the warm-up, of pcbatch and of nutpie: `python -m benchmarks.nuts.adaptation`.

    python -m benchmarks.nuts.adaptation [--seeds 3] [--json FILE] [--markdown docs/figures/nuts-adaptation.md]
                                         [posterior ..]

Effective sizes of the draws after a warm-up, over the gradients that they took, tell how good a step size and a metric
the warm-up has found, on a busy machine as well as on a quiet one. All samplers start at the same points, adapt to an
acceptance of 0.8 in as many trajectories, and compute in float64.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean

import numpy as np

from benchmarks.conversation import ContestantError
from benchmarks.environments import PeerUnavailableError
from benchmarks.harness import arguments, load, origin, table, write_json, write_page
from benchmarks.nuts.effective import errors, least_sizes
from benchmarks.nuts.end_to_end.contestants.worker import Job
from benchmarks.nuts.end_to_end.crew import CONTESTANTS, START_LIMIT
from benchmarks.nuts.end_to_end.posteriors import POSTERIORS, DataMissingError

USUAL = ("pcbatch", "pcbatch-diag", "pcbatch-pooled", "nutpie", "nutpie-low-rank")
PEERS = ("nutpie", "nutpie-low-rank")
GOAL_OF_MEAN, GOAL_OF_EACH = 0.95, 0.7
HEAD = ("posterior", "numbers", "", "gradients of a draw", "ESS of x", "of x^2", "x, ratio", "x^2, ratio", "warm-up")

INTRODUCTION = """\
# What the warm-up has learned

How many effective draws does a gradient yield, once the warm-up is over? Each of {chains} chains starts anywhere in
(-2, 2), warms up for {warmup} trajectories to an acceptance of 0.8, and makes {draws} draws. Seeds: {seeds}; figures
are their means. Effective sizes are the least over all numbers, per 1,000 gradients. A ratio is pcbatch over the
better of nutpie's. The last column has the gradients of the warm-up, per chain.

- `pcbatch` is `nuts.sample` with its defaults, `pcbatch-diag` the same with `metric="diag"`, `pcbatch-pooled` the
  defaults with `adapt="pooled"`. By default the metric is dense where products by it cost little beside a gradient.
- `nutpie` is `nutpie.sample` with its defaults, a diagonal metric. `nutpie-low-rank` learns some directions more.
"""


@dataclass
class Figures:
    """One sampler at one posterior: of each seed, effective sizes of x and x^2 and gradients of draws and warm-up.

    `means` are the means of the numbers over all seeds with their errors, `[2, numbers]`.
    """

    sizes: list[tuple[float, float]] = field(default_factory=list)
    gradients: list[int] = field(default_factory=list)
    warmup: list[int] = field(default_factory=list)
    means: list[list[float]] = field(default_factory=list)
    failure: str = ""

    def yields(self, which: int) -> float:
        """Effective sizes of x (0) or x^2 (1) per 1,000 gradients."""
        return 1000 * sum(each[which] for each in self.sizes) / sum(self.gradients)


Found = dict[str, dict[str, Figures]]
"""By posterior, then by sampler."""


@dataclass(frozen=True)
class Question:
    """Chains, trajectories of warm-up, draws, and seeds."""

    chains: int
    warmup: int
    draws: int
    seeds: int


def measured(posterior: str, name: str, question: Question, limit: float) -> Figures:
    """The figures of one sampler, in a process of its own."""
    model, figures, all_draws = POSTERIORS[posterior], Figures(), []
    data = {key: array.astype(float) for key, array in model.data().items()}
    try:
        process = CONTESTANTS[name].process()
    except PeerUnavailableError as why:
        return Figures(failure=str(why))
    with tempfile.TemporaryDirectory() as folder:
        inputs, drawn = (str(Path(folder) / file) for file in ("inputs.npz", "draws.npy"))
        job = Job(posterior, question.chains, question.warmup, question.draws, CONTESTANTS[name].variant)
        try:
            process.ask(START_LIMIT, do="start")
            for seed in range(question.seeds):
                np.savez(inputs, starts=model.starts(question.chains, seed).astype(float), **data)
                reply = process.ask(limit, do="run", seed=seed, inputs=inputs, draws=drawn, job=asdict(job))
                all_draws.append(np.load(drawn))
                figures.sizes.append(least_sizes(all_draws[-1]) or (0.0, 0.0))
                figures.gradients.append(reply["gradients"])
                figures.warmup.append(reply["warmup"])
            draws = np.concatenate(all_draws)
            figures.means = [draws.mean(axis=(0, 1)).tolist(), errors(draws)[0].tolist()]
        except ContestantError as why:
            figures.failure = str(why)
        finally:
            process.close()
    return figures


def apart(one: Figures, other: Figures) -> float:
    """The largest distance between the means of two samplers, in combined errors."""
    (mean_1, error_1), (mean_2, error_2) = np.array(one.means), np.array(other.means)
    return float(np.abs((mean_1 - mean_2) / np.hypot(error_1, error_2)).max())


def peers(cell: dict[str, Figures]) -> list[Figures]:
    """The figures of nutpie's samplers that ran."""
    return [cell[name] for name in PEERS if name in cell and not cell[name].failure]


def ratios(found: Found, name: str) -> dict[str, tuple[float, float]]:
    """Effective sizes of a gradient over those of the better of nutpie's, of x and of x^2, by posterior."""
    return {
        posterior: (
            cell[name].yields(0) / max(each.yields(0) for each in peers(cell)),
            cell[name].yields(1) / max(each.yields(1) for each in peers(cell)),
        )
        for posterior, cell in found.items()
        if name in cell and not cell[name].failure and peers(cell)
    }


def verdicts(found: Found) -> list[str]:
    """Geometric means and the least ratios of each of pcbatch's, beside the goals; and how far means are apart."""
    said = []
    for name in sorted({name for cell in found.values() for name in cell if name.startswith("pcbatch")}):
        by_posterior = ratios(found, name)
        for which, measure in enumerate(("x", "x^2")):
            if not by_posterior:
                continue
            values = {posterior: each[which] for posterior, each in by_posterior.items()}
            worst = min(values, key=values.__getitem__)
            overall = geometric_mean(values.values())
            goal = overall >= GOAL_OF_MEAN and values[worst] >= GOAL_OF_EACH
            said.append(
                f"`{name}`, {measure}: {overall:.2f} times nutpie's in the geometric mean, least {values[worst]:.2f} "
                f"({worst}); goals of {GOAL_OF_MEAN} and {GOAL_OF_EACH}: {'reached' if goal else 'not reached'}"
            )
        if by_posterior:
            distances = {
                posterior: apart(found[posterior][name], peers(found[posterior])[0]) for posterior in by_posterior
            }
            far = max(distances, key=distances.__getitem__)
            said.append(f"`{name}`: no mean is farther from nutpie's than {distances[far]:.1f} errors ({far})")
    return said


def rows(found: Found, question: Question) -> list[list[str]]:
    """The table's lines."""
    lines = []
    for posterior, cell in found.items():
        for name, figures in cell.items():
            if figures.failure:
                lines.append([posterior, "", name, figures.failure, *[""] * 5])
                continue
            of_peer = ratios(found, name).get(posterior) if name not in PEERS else None
            chains = question.chains * len(figures.sizes)
            lines.append(
                [
                    posterior,
                    str(POSTERIORS[posterior].numbers),
                    name,
                    f"{sum(figures.gradients) / (chains * question.draws):.1f}",
                    *(f"{figures.yields(which):.1f}" for which in (0, 1)),
                    *(f"{each:.2f}" for each in of_peer or ()),
                    *([] if of_peer else ["", ""]),
                    f"{sum(figures.warmup) / chains:,.0f}",
                ]
            )
    return lines


def page(found: Found, question: Question, origin: str) -> list[str]:
    """The whole page."""
    lines = [INTRODUCTION.format(**asdict(question)), origin, ""]
    titles = [f"- {name}: {POSTERIORS[name].title}" for name in found]
    return [
        *lines,
        *table(HEAD, rows(found, question)),
        "",
        *(f"- {each}" for each in verdicts(found)),
        "",
        "The posteriors:",
        "",
        *titles,
    ]


def main() -> None:
    """Measure, print, and write what is asked for."""
    parser = arguments(__doc__)
    parser.add_argument("posteriors", nargs="*", metavar="posterior", help=f"of {', '.join(POSTERIORS)}")
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=900, help="seconds after which a run is given up")
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=USUAL, metavar="sampler")
    parser.add_argument("--markdown", type=Path, help="where to write the page of docs/figures")
    given = parser.parse_args()
    question, others, found = Question(given.chains, given.warmup, given.draws, given.seeds), load(), {}
    for posterior in given.posteriors or POSTERIORS:
        try:
            POSTERIORS[posterior].data()
        except DataMissingError as why:
            print(f"{posterior} is left out: {why}")
            continue
        found[posterior] = {name: measured(posterior, name, question, given.limit) for name in given.contestants}
        print("\n".join("  ".join(row) for row in rows({posterior: found[posterior]}, question)), flush=True)
        if given.json:
            write_json(given.json, {name: {who: asdict(f) for who, f in cell.items()} for name, cell in found.items()})
        if given.markdown:
            write_page(given.markdown, page(found, question, origin(others)))
    print("\n".join(verdicts(found)))


if __name__ == "__main__":
    main()
