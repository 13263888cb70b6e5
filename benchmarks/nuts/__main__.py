"""Useful gradients per second of pcbatch's sampler and of other vectorised No-U-Turn samplers, side by side in one run.

    python -m benchmarks.nuts [--quick] [--json FILE] [--chains 8 64] [--contestants pcbatch blackjax]
                              [--markdown docs/figures/nuts.md] [target ..]

All have the same fixed step size, unit metric, depth 10, float32, starting points and number of trajectories; timed
calls of all contestants take turns. A useful gradient is a leapfrog step that a chain needed by the sampler's own
statistics. As pcbatch does, peers use all cores: BlackJAX and NumPyro by one device of JAX's for each, TFP's sampler by
threads; those "one-device" do not. What warm-up and compiling cost, python -m benchmarks.nuts.end_to_end says.

The columns: the first call (trace, compile, run); one warm call, wall and CPU seconds; useful gradients per second of
both; gradients of a draw; draws per second of wall time, and least effective sizes of x and of x^2 (`effective.py`; of
20 trajectories or more); useful gradients over computed rows, which are counted, never modelled; and from the
contestant's own trajectories what that would be if all chains waited for the longest of each trajectory ("lockstep") or
only for the one that has most to do in all ("at end"): the bound of any run in which all chains wait for each other.
Ours run in groups, one on each core, where gradients are cheap, and can be above it.

Peers get environments of their own in the user's cache, made by this script. One that cannot be
made is named and left out.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import arguments, load, origin, write_json, write_page
from benchmarks.nuts.crew import Crew
from benchmarks.nuts.pages import page
from benchmarks.nuts.processes import CONTESTANTS
from benchmarks.nuts.report import Cell, heading, line, verdicts
from benchmarks.nuts.targets import TARGETS

CHAINS, QUICK_CHAINS = (1, 8, 64, 512), (8, 64)
QUICK_TRAJECTORIES, QUICK_TARGETS = 20, ("gaussian", "logistic-small", "funnel")
QUICK_CONTESTANTS = ("pcbatch", "tfp", "numpyro", "blackjax", "loop-xla")


def main() -> None:
    """Print a table for each target."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=None)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer chains, trajectories, targets and contestants")
    parser.add_argument("--chains", type=int, nargs="+")
    parser.add_argument("--trajectories", type=int, help="of each chain, in place of the target's own number")
    parser.add_argument(
        "--contestants", nargs="+", choices=CONTESTANTS, metavar="contestant", help=", ".join(CONTESTANTS)
    )
    parser.add_argument("--limit", type=float, default=180, help="seconds after which a contestant's call is given up")
    parser.add_argument("--budget", type=float, default=20, help="seconds of timed calls of one contestant in one cell")
    parser.add_argument("--markdown", type=Path, help="where to write the page of docs/figures")
    options = parser.parse_args()
    others = load()
    quick = options.quick
    if unknown := [name for name in options.targets if name not in TARGETS]:
        parser.error(f"no target is called {unknown[0]}: choose from {', '.join(TARGETS)}")
    options.repeats = options.repeats or (3 if quick else 7)
    targets = options.targets or (QUICK_TARGETS if quick else TARGETS)
    contestants = options.contestants or (QUICK_CONTESTANTS if quick else CONTESTANTS)
    found: dict[str, list[Cell]] = {}
    with Crew(contestants) as crew:
        for target in (TARGETS[name] for name in targets):
            trajectories = options.trajectories or (QUICK_TRAJECTORIES if quick else target.trajectories)
            print(f"\n{target.title}, {trajectories} trajectories\n{heading()}", flush=True)
            found[target.name] = []
            for chains in options.chains or (QUICK_CHAINS if quick else CHAINS):
                cell = crew.measured(
                    target,
                    chains,
                    trajectories,
                    repeats=options.repeats,
                    limit=options.limit,
                    budget=options.budget,
                )
                print("\n".join([*(line(name, cell) for name in cell), *verdicts(target.name, cell)]), flush=True)
                found[target.name].append(cell)
                if options.markdown:  # now, as who stops a long run keeps what there is
                    write_page(options.markdown, page(found, origin(others)))
    if options.json:
        plain = {name: [{who: asdict(f) for who, f in cell.items()} for cell in cells] for name, cells in found.items()}
        write_json(options.json, plain)


if __name__ == "__main__":
    main()
