"""Seconds from nothing to a least effective size of 1000, warm-up and compiling included, of pcbatch and others.

    python -m benchmarks.nuts.end_to_end [--chains 32] [--warmup 300] [--contestants pcbatch blackjax ..]
                                         [--markdown docs/figures/nuts-end-to-end.md] [--json FILE] [posterior ..]

Posteriors: six of posteriordb, whose data lie in the folder that PCBATCH_DATA names, and five others.
All contestants start at the same points and make as many trajectories of warm-up as each other, each with its own
adaptation; draws are doubled, in a new process each time, until the least effective sizes of x and x^2 over all numbers
are enough. Means and standard deviations of every run are compared with the reference, in Monte Carlo standard errors;
draws that are too far off are a failure.

Cold is the first run of a new process once all is imported: tracing, compiling, warm-up, draws. Warm are later runs
with other seeds and starting points, in turns. Peers use all cores, and get environments of their own in the user's
cache, made by this script.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import arguments, load, origin, write_json, write_page
from benchmarks.nuts.end_to_end.crew import CONTESTANTS, Question, Row, Run
from benchmarks.nuts.end_to_end.posteriors import POSTERIORS, DataMissingError
from benchmarks.nuts.end_to_end.report import heading, line, page, verdicts

USUAL = (
    "pcbatch",
    "pcbatch-diag",
    "pcbatch-pooled",
    "blackjax",
    "blackjax-native",
    "blackjax-native-dense",
    "numpyro",
    "numpyro-native",
    "numpyro-native-dense",
    "nutpie",
    "tfp-one-device",
)
"""TFP's sampler in threads took 1.1 times its time in one program, in both cases for 32 chains (mesquite)."""


def main() -> None:
    """Measure and print a table for each posterior."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument(
        "posteriors", nargs="*", metavar="posterior", help=f"of {', '.join(POSTERIORS)}; by default all"
    )
    parser.add_argument("--chains", type=int, default=32)
    parser.add_argument("--warmup", type=int, default=300, help="trajectories of each chain before the first draw")
    parser.add_argument("--draws", type=int, default=100, help="of each chain, in the first try")
    parser.add_argument("--enough", type=float, default=1000, help="the least effective size that ends the search")
    parser.add_argument("--most", type=int, default=3200, help="draws of each chain at which the search is given up")
    parser.add_argument("--cold", type=int, default=1, help="cold runs of each contestant")
    parser.add_argument("--limit", type=float, default=180, help="seconds after which a run is given up")
    parser.add_argument(
        "--contestants",
        nargs="+",
        choices=CONTESTANTS,
        default=USUAL,
        metavar="contestant",
        help=f"of {', '.join(CONTESTANTS)}; by default {', '.join(USUAL)}",
    )
    parser.add_argument("--markdown", type=Path, help="where to write the page of docs/figures")
    given = parser.parse_args()
    if unknown := [name for name in given.posteriors if name not in POSTERIORS]:
        parser.error(f"no posterior is called {unknown[0]}: choose from {', '.join(POSTERIORS)}")
    question = Question(given.chains, given.warmup, given.draws, given.enough, given.most, given.limit)
    others = load()
    found: dict[str, Row] = {}
    for name in given.posteriors or POSTERIORS:
        try:
            run = Run(name, given.contestants, question)
        except DataMissingError as why:
            print(f"\n{name} is left out: {why}")
            continue
        with run:
            print(f"\n{name}: {POSTERIORS[name].title}\n{heading()}", flush=True)
            found[name] = row = run.measure(given.repeats, given.cold)
            print(
                "\n".join([*(line(who, row[who]) for who in row), *(f"  {each}" for each in verdicts(row))]), flush=True
            )
        if given.markdown:  # now, as who stops a long run keeps what there is
            write_page(given.markdown, page(found, question, origin(others)))
        if given.json:
            write_json(given.json, {name: {who: asdict(f) for who, f in row.items()} for name, row in found.items()})


if __name__ == "__main__":
    main()
