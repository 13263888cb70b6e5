"""The vector form of cheap code: what lockstep costs where no native function runs, and what its constants gain.

    python -m benchmarks.vector [--parts peers arms merging] [--tasks queens ..] [--lanes 1 64 1024 16384] [--repeats 5]
                                [--markdown docs/figures/vector.md] [--json out/vector.json]

    peers     the eight tasks of `benchmarks.against`: pcbatch in lockstep, block by block, with cheap arms under
              predicates, with the blocks of loops merged, and with both, which is how it runs; beside a loop masked by
              hand and `jax.vmap`, with the loops as they are and of one turn
    arms      a loop with an arm of so many operations, or of stores, taken by half of the lanes or hardly ever: under a
              predicate over behind a guard (`predicated_work`)
    merging   a loop of so many blocks of so many operations: merged over apart (`merged_blocks`, `merged_work`)

Contestants take turns, and all give the same results. All is CPU time, of all threads; of `peers` each is in a process
of its own. On a CPU cheap programs run natively unless `form="lockstep"` asks for this;
a GPU, and what native code is not made of, have nothing else.
"""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.against.crew import CONTESTANTS, Cell, Contestant, Crew
from benchmarks.against.inputs import CHEAP
from benchmarks.harness import arguments, load, origin, write_json, write_page

LANES = (1, 64, 1024, 16384)
OURS = ("apart", "predicated", "merged", "both")
PEERS = ("masked", "vmap", "vmap, one loop")
PARTS = ("peers", "arms", "merging")

ARM = """
import tensorflow as tf, pcbatch
def chain(x):
    for _ in range({operations}):
        x = x * 1.0001 + 0.5
    return x
@pcbatch.autobatch
def f(x, a, seed, turns):
    while turns > 0:
        seed = (seed * 1103 + 12345) % 65536
        if (seed // 16) % {one_in} == 0:
            {arm}
        turns = turns - 1
    return x, a
"""
ARMS = {
    "5 operations": (4, "x = chain(tf.abs(x))"),
    "60 operations": (30, "x = chain(tf.abs(x))"),
    "exp and a division": (0, "x = tf.exp(-x) / (1.0 + x)"),
    "two stores": (0, "i = seed % 8; a[i] = x; a[(i + 3) % 8] = x + 1.0"),
}
"""By name, how many operations there are in a chain, and the arm."""
OFTEN, RARELY = 2, 4000
"""One lane in so many takes the arm."""

LOOP = """
import pcbatch
@pcbatch.autobatch
def f(x, a, seed, turns):
    while turns > 0:
        seed = (seed * 1103 + 12345) % 65536
{body}        turns = turns - 1
    return x, a
"""
STAGE = """        n = seed % {number}
        while n > 0:
            n = n - 1
            {work}
"""


def built(text: str) -> Any:
    """The function `f` of a module of this text."""
    path = Path(tempfile.mkdtemp()) / "module.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def ran(function: Any, given: tuple[Any, ...]) -> list[np.ndarray]:
    """What a function gives, in the host's memory."""
    return [np.asarray(result) for result in function(*given)]


def timed(text: str, ways: Iterable[str], lanes: int, repeats: int) -> dict[str, float]:
    """CPU milliseconds of the function of `text`, run in several ways in turn, the best of the repeats."""
    import tensorflow as tf

    from benchmarks.against.contestants.pcbatch_vector import choose

    generator = np.random.default_rng(0)
    given = (
        tf.constant(generator.normal(size=lanes), tf.float32),
        tf.zeros([lanes, 8]),
        tf.constant(generator.integers(0, 65536, lanes), tf.int32),
        tf.constant(generator.integers(50, 100, lanes), tf.int32),
    )
    calls: dict[str, Callable[[], Any]] = {}
    results = {}
    for way in ways:
        choose(way)
        function = built(text).options(form="lockstep")
        calls[way] = partial(ran, function, given)
        results[way] = calls[way]()
    for result in results.values():
        for one, other in zip(result, next(iter(results.values())), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)
    found: dict[str, list[float]] = {way: [] for way in calls}
    for _ in range(repeats):
        for way, call in calls.items():
            started = time.process_time()
            call()
            found[way].append(time.process_time() - started)
    return {way: 1e3 * min(seconds) for way, seconds in found.items()}


def arms(lanes: Iterable[int], repeats: int) -> Iterator[list[str]]:
    """Rows: the arm, who takes it, then under a predicate over behind a guard for each number of lanes."""
    for (name, (operations, arm)), one_in in itertools.product(ARMS.items(), (OFTEN, RARELY)):
        ratios = []
        for each in lanes:
            text = ARM.format(operations=operations, arm=arm, one_in=one_in)
            found = timed(text, ("apart", "all predicated"), each, repeats)
            ratios.append(f"{found['all predicated'] / found['apart']:.2f}")
        yield [name, f"1 in {one_in:,}", *ratios]


def merging(lanes: Iterable[int], repeats: int) -> Iterator[list[str]]:
    """Rows: how many loops in a loop, operations in each, then merged over apart for each number of lanes."""
    for stages, operations in itertools.product((1, 2, 4, 8), (1, 20)):
        work = "x = " + "(" * operations + "x" + " * 0.99 + 0.5)" * operations
        body = "".join(STAGE.format(number=stage % 3 + 2, work=work) for stage in range(stages))
        ratios = []
        for each in lanes:
            found = timed(LOOP.format(body=body), ("apart", "all merged"), each, repeats)
            ratios.append(f"{found['all merged'] / found['apart']:.2f}")
        yield [f"{stages}", f"{2 * operations}", *ratios]


def peers(tasks: Iterable[str], lanes: Iterable[int], repeats: int) -> Iterator[tuple[int, str, Cell]]:
    """Figures of all contestants, by number of lanes and task."""
    ours = {name: Contestant("pcbatch_vector", name, CHEAP) for name in OURS}
    contestants = {**ours, **{name: CONTESTANTS[name] for name in PEERS}}
    with Crew(contestants, contestants) as crew:
        for each, task in itertools.product(lanes, tasks):
            yield each, task, crew.measured(task, each, repeats=repeats, limit=20.0, budget=1.0)


def of_peers(task: str, cell: Cell) -> list[str]:
    """A row: milliseconds as it runs, and how many times as long that takes as each contestant."""
    best = {name: figures.best("cpu") for name, figures in cell.items()}
    runs = best["both"]
    shown = [f"{runs / b:.2f}" if runs and (b := best.get(name)) else "" for name in (*OURS[:-1], *PEERS)]
    return [task.replace("_", " "), f"{1e3 * runs:.3g}" if runs else "", *shown]


def table(heads: list[str], rows: Iterable[list[str]]) -> list[str]:
    """A table for a page; rows are printed as they come."""
    said = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    print("  ".join(heads), flush=True)
    for row in rows:
        print("  ".join(row), flush=True)
        said.append(f"| {' | '.join(row)} |")
    return [*said, ""]


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=5)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES)
    parser.add_argument("--tasks", nargs="+", choices=CHEAP, default=CHEAP, metavar="task")
    parser.add_argument("--markdown", type=Path, help="where to write the tables")
    given = parser.parse_args()
    before = load()
    said = ["# The vector form of cheap code", ""]
    numbers = [f"{each:,}" for each in given.lanes]
    if "peers" in given.parts:
        rows: dict[int, list[list[str]]] = {each: [] for each in given.lanes}
        for each, task, cell in peers(given.tasks, given.lanes, given.repeats):
            rows[each].append(of_peers(task, cell))
            print(f"{each:,}", "  ".join(rows[each][-1]), flush=True)
        said += ["CPU time of pcbatch in lockstep, over that of other ways and of peers: below 1 it is faster.", ""]
        for each, shown in rows.items():
            heads = ["task", "as it runs, ms", "block by block", "predicates only", "merging only"]
            said += [f"## {each:,} lanes", "", *table([*heads, "masked by hand", *PEERS[1:]], shown)]
    if "arms" in given.parts:
        said += ["## Arms under a predicate, over the same behind a guard, by lanes", ""]
        said += table(["arm", "taken by", *numbers], arms(given.lanes, given.repeats))
    if "merging" in given.parts:
        said += ["## Loops in a loop, all blocks merged over each by itself, by lanes", ""]
        said += table(["loops", "operations in each", *numbers], merging(given.lanes, given.repeats))
    said.append(origin(before))
    if given.markdown:
        write_page(given.markdown, said)
    if given.json:
        write_json(given.json, {"lines": said})


if __name__ == "__main__":
    main()
