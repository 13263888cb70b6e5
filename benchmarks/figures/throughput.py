"""The batching paper's figure 6: throughput of the sampler by number of chains, on a large logistic regression.

    python -m benchmarks.figures.throughput [--device cpu] [--chains 1 8 64 ..] [--contestants pc stan ..] [--json FILE]

Useful gradients per second of pcbatch's sampler on its own machine and on the paper's (switch, local, hybrid), of
TensorFlow Probability's samplers, of NumPyro's and BlackJAX's, of a sampler that is not batched at all, and of Stan.
All have the same density (10,000 observations, 100 weights), step size, unit metric, depth 10 and starting points;
timed calls take turns. A leaf takes four leapfrog steps, as in the paper, but one in NumPyro, BlackJAX and Stan. With
`--device gpu` the batched ones run on a card, with up to 16,384 chains. A useful gradient is a leapfrog step that a
chain needed by the sampler's own statistics. The first call, which compiles, is timed apart. Draws are compared with
each other; a sampler that draws from something else is an error.

Writes `throughput.md` and `throughput.png` into docs/figures, or `throughput-gpu.md` and its picture. Peers get
environments of their own in the user's cache, made by this script; one that cannot be made is named in the page.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.figures import pages, paper, pictures
from benchmarks.figures.agreement import MOST_APART, Moments, Verdict, apart, verdicts
from benchmarks.figures.crew import CONTESTANTS, CORES, MACHINES, Cell, Cells, Crew
from benchmarks.figures.pictures import Curve, Style
from benchmarks.figures.throughput_page import NAME, page
from benchmarks.harness import arguments, load, origin, write_json
from benchmarks.nuts.targets import TARGETS

TARGET = "logistic-large"
CHAINS = {"cpu": (1, 8, 64, 512, 1024), "gpu": (1, 4, 16, 64, 256, 1024, 4096, 16384)}
"""By device."""
TRAJECTORIES = 3
SMALL = {
    "chains": (1, 4),
    "trajectories": 1,
    "contestants": ["pc", "local", "eager"],
    "target": "logistic-small",
    "budget": 1.0,
    "repeats": 1,
}
"""The options of a small run, which needs no other environment."""
PACKAGES = ("tensorflow", "numpy")
STYLES = {
    "pc": Style(pictures.BLUE, "o"),
    "switch": Style(pictures.SKY, "s"),
    "hybrid": Style(pictures.GREEN, "D"),
    "local": Style(pictures.GREEN, "v", "--"),
    "tfp": Style(pictures.ORANGE, "^"),
    "tfp-machine": Style(pictures.RED, "P"),
    "tfp-stackless": Style(pictures.RED, "X", "--"),
    "numpyro": Style(pictures.BLACK, "<", "-."),
    "blackjax": Style(pictures.BLACK, ">", "--"),
    "eager": Style(pictures.GREY, ".", ":"),
    "stan": Style(pictures.BLACK, "*", ":"),
}


def main() -> None:
    """Measure, print, write the page and the picture."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument("--device", choices=CHAINS, default="cpu")
    parser.add_argument("--chains", type=int, nargs="+", help=f"{CHAINS} by default")
    parser.add_argument("--trajectories", type=int, default=TRAJECTORIES, help="of each chain in a call")
    parser.add_argument("--leapfrogs", type=int, default=paper.LEAPFROGS, help="of each leaf")
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, metavar="name")
    parser.add_argument("--target", choices=TARGETS, default=TARGET, help="another one, to try the program")
    parser.add_argument("--limit", type=float, default=240, help="seconds after which a call is given up")
    parser.add_argument("--budget", type=float, default=4, help="seconds of timed calls of a contestant at each number")
    parser.add_argument("--folder", type=Path, default=pages.FOLDER, help="of the page and the picture")
    parser.add_argument("--small", action="store_true", help="small sizes and no peers: to try the command")
    options = parser.parse_args()
    vars(options).update(SMALL if options.small else {})
    sizes = paper.Sizes(TARGETS[options.target], options.trajectories, options.leapfrogs)
    target, cells, before = sizes.target, {}, load()
    place = card() if options.device == "gpu" else f"{CORES} cores of a CPU"
    if place is None:
        parser.error("there is no card: nvidia-smi names none")
    batched = [name for name, each in CONTESTANTS.items() if options.device == "cpu" or each.at_once is None]
    name = NAME if options.device == "cpu" else f"{NAME}-gpu"
    with Crew(options.contestants or batched, options.device) as crew:
        for chains in sorted(options.chains or CHAINS[options.device]):
            cells[chains] = crew.measured(
                sizes, chains, repeats=options.repeats, limit=options.limit, budget=options.budget
            )
            print(f"{chains} chains: {printed(cells[chains])}", flush=True)
        agreement, faults = agreements(crew.moments)
    if options.json:
        plain = {chains: {name: asdict(f) for name, f in cell.items()} for chains, cell in cells.items()}
        write_json(options.json, {"cells": plain, "agreement": {name: asdict(v) for name, v in agreement.items()}})
    pictures.save(
        options.folder / f"{name}.png",
        curves(cells),
        title=f"{target.family}, {target.observations:,} x {target.size}: {place}",
        ylabel="useful gradients per second",
        logarithmic=True,
    )
    said = origin(before, PACKAGES)
    pages.write(name, page(sizes, cells, agreement, faults, said, name, place), options.folder)
    if faults:
        raise SystemExit("draws disagree: " + "; ".join(faults))


def card() -> str | None:
    """The name of the GPU; None where there is none."""
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return f"an {said[0]}" if said else None


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


if __name__ == "__main__":
    main()
