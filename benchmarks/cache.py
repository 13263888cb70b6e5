"""First calls of programs that a cache on disk has, beside those of ones that it has not.

    python -m benchmarks.cache [--repeats 3] [--markdown docs/figures/cache.md] [--json out/cache.json]

Every figure is CPU seconds of all threads in a fresh process, as `benchmarks.compile_time` measures them: of a process
without a cache, of one that fills an empty cache, and of one that finds the program there. `--markdown` writes a page,
which `python -m tools.tables` draws into docs/cache.md.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.compile_time import HERE, in_fresh_process
from benchmarks.harness import arguments, load, origin, table, write_json, write_page

PROGRAMS = {
    "sampler": "the sampler, a logistic regression of 569 x 30, 64 chains",
    "Fibonacci, lockstep": "Fibonacci, in lockstep",
    "Fibonacci": "Fibonacci, native",
    "201 blocks": "201 blocks, native",
}
"""Jobs of `benchmarks.compile_time`, and how the page names them."""
WAYS = ("no cache", "first process", "second process")
HEAD = ("program", *WAYS, "second process over no cache")

Seconds = Mapping[str, Mapping[str, list[float]]]
"""CPU seconds by job and way."""


def measured(job: str) -> dict[str, float]:
    """CPU seconds of a job's first call, each way."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"PCBATCH_CACHE": folder}
        return {
            way: in_fresh_process(job, HERE, variables)["cpu"]
            for way, variables in zip(WAYS, ({"PCBATCH_CACHE": ""}, given, given), strict=True)
        }


def page(found: Seconds, measured: str) -> list[str]:
    """The page, as lines of Markdown."""
    rows = []
    for job, ways in found.items():
        medians = [statistics.median(ways[way]) for way in WAYS]
        rows.append([PROGRAMS[job], *(f"{each:.2f}" for each in medians), f"{medians[-1] / medians[0]:.2f}"])
    return [
        "# First calls with a cache on disk",
        "",
        "CPU seconds of the first call in a new process, of all threads, after its imports. The first process with an "
        "empty [cache](../cache.md) fills it, and the second one finds the program there. Figures are medians.",
        "",
        *table(HEAD, rows),
        "",
        measured,
    ]


def main() -> None:
    """Measure, print, and write the page."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument("--markdown", type=Path, help="where to write the page")
    given = parser.parse_args()
    before = load()
    found: dict[str, dict[str, list[float]]] = {job: {way: [] for way in WAYS} for job in PROGRAMS}
    for _ in range(given.repeats):
        for job, ways in found.items():
            for way, seconds in measured(job).items():
                ways[way].append(seconds)
    lines = page(found, origin(before))
    print("\n".join(lines))
    if given.markdown:
        write_page(given.markdown, lines)
    if given.json:
        write_json(given.json, found)


if __name__ == "__main__":
    main()
