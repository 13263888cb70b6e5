"""The README's function on many options, beside the loop over them in plain Python.

    python -m benchmarks.readme [--lanes 100000] [--repeats 3] [--draw]

Both compute the same text for the same arrays: the batched function, and a loop that calls the undecorated one with
Python's floats. `--draw` writes docs/figures/readme.json, and from it the line of the README.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from benchmarks import harness
from examples.implied_volatility import implied_volatility, options

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "figures" / "readme.json"
PAGE = ROOT / "README.md"
MARKED = re.compile(r"(<!-- timed -->\n).*?(<!-- end -->)", re.DOTALL)


def measured(lanes: int, repeats: int) -> dict[str, harness.Timing]:
    """Seconds of the loop and of the batch."""
    batch, _ = options(lanes)
    listed = [each.tolist() for each in batch]
    plain = implied_volatility.__wrapped__
    contestants = {
        "loop": lambda: np.array([plain(*each)[0] for each in zip(*listed, strict=True)]),
        "batch": lambda: np.asarray(implied_volatility(*batch)[0]),
    }
    return harness.measure(contestants, repeats=repeats, rtol=1e-5)


def line(path: Path = FILE) -> str:
    """The README's line, from a file of figures."""
    record = json.loads(path.read_text(encoding="utf-8"))
    figures, cores = record["figures"], record["machine"]["cpus"]
    loop, batch = figures["timing"]["loop"], figures["timing"]["batch"]
    return (
        f"| {figures['lanes']:,} options, {cores} cores | {loop['median']:.2g} s | {batch['median']:.2g} s | "
        f"{batch['first']:.2g} s | {loop['median'] / batch['median']:.0f} |"
    )


def drawn(text: str, path: Path = FILE) -> str:
    """The README with these figures."""
    head = "| | Python loop | pcbatch | its first call, which compiles | times as fast |\n|---|---|---|---|---|"
    return MARKED.sub(lambda mark: f"{mark[1]}{head}\n{line(path)}\n{mark[2]}", text)


def main() -> None:
    """Measure, and print or draw."""
    parser = harness.arguments(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument("--lanes", type=int, default=100_000)
    parser.add_argument("--draw", action="store_true", help="write the figures' file and the README's line")
    given = parser.parse_args()
    timing = measured(given.lanes, given.repeats)
    for name, each in timing.items():
        print(f"{name:>6} {each.median:8.3f} s, first {each.first:.3f} s")
    path = FILE if given.draw else given.json
    if path:
        harness.write_json(path, {"lanes": given.lanes, "timing": timing})
    if given.draw:
        PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
