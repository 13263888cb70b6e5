"""How long one example takes in `f.single`, beside the undecorated function on NumPy's values.

    python -m benchmarks.single [--repeats 9] [--draw]

A line for each program: milliseconds of CPU time of the undecorated function, of `f.single` as it is when a function
has run for a while, and of `f.single` on proxies, as it is at first; and what these are of the undecorated function's.
The two take turns; each figure is the shortest of its repeats. The programs are those below, and those of `examples/`
that run on NumPy without their decorator and take milliseconds: making arguments and results takes about 0.2 ms.
`--draw` writes docs/figures/single.json, and from it the table in docs/debugging.md.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

import pcbatch
from benchmarks import harness
from pcbatch.function import examples

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "figures" / "single.json"
PAGE = ROOT / "docs" / "debugging.md"
MARKED = re.compile(r"(<!-- drawn: single -->\n).*?(<!-- end -->)", re.DOTALL)

RNG = np.random.default_rng(0)


@pcbatch.autobatch
def layers(x, w, n):
    """Arrays of some size: the products are NumPy's."""
    for _ in range(n):
        x = np.tanh(w @ x) + 0.1 * x
    return x


@pcbatch.autobatch
def rows(m, n):
    """Views and stores of rows."""
    for k in range(n):
        m[k % 100] = m[(k + 1) % 100] * 0.5 + m[k % 100]
    return m


@pcbatch.autobatch
def sorting(a):
    """Stores of single elements."""
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


@pcbatch.autobatch
def logistic(x, n):
    """Floats of 32 bits, one after another."""
    for _ in range(n):
        x = 3.7 * x * (1.0 - x)
    return x


def _counted(n):
    return n if n < 2 else _counted(n - 1) + _counted(n - 2)


@pcbatch.autobatch
def recursion(n):
    """Ints of 32 bits in a recursion."""
    return _counted(n)


@pcbatch.autobatch
def windows(a):
    """Slices of fixed length, which `f.single` looks at on proxies: Python cuts them short, a lane fails."""
    total = 0.0
    for i in range(len(a) - 3):
        total += (a[i : i + 3] * a[i]).sum()
    return total


@pcbatch.autobatch
def mixed(n):
    """An int and a float: a lane has float32, NumPy float64. So it runs on proxies."""
    total = 0.0
    while n > 0:
        total += n * 0.5
        n -= 1
    return total


def encoded(text: str) -> np.ndarray:
    """A text as the example `mutual_recursion` has it."""
    return np.array([*map(ord, text), 0], np.int32)


OWN: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (layers, (RNG.normal(size=400), RNG.normal(size=(400, 400)) / 20, np.int32(500))),
    (rows, (RNG.normal(size=(100, 1000)), np.int32(10000))),
    (sorting, (RNG.normal(size=300).astype(np.float32),)),
    (logistic, (np.float32(0.3), np.int32(100000))),
    (recursion, (np.int32(24),)),
    (windows, (RNG.normal(size=4000),)),
    (mixed, (np.int32(3000),)),
)
OF_EXAMPLES: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("ackermann", "ackermann", (np.int32(2), np.int32(150))),
    ("adaptive_simpson", "integrate", (np.float64(1e-2), np.float64(1e-4))),
    ("fibonacci", "fibonacci", (np.int32(23),)),
    ("nqueens", "placements", (np.int32(0), np.int32(0), np.int32(0), np.int32(2**8 - 1))),
    ("quicksort", "in_order", (RNG.normal(size=800).astype(np.float32),)),
    ("rk45", "solve", (np.float64(2.0), np.float64(1.0), np.float64(10.0), np.float64(1e-6))),
    ("mutual_recursion", "evaluate", (encoded("+".join(["(12*3-4)*-5"] * 300)),)),
)


def module(name: str, decorated: bool) -> ModuleType:
    """An example's module; without decorators, its functions are Python's."""
    specification = importlib.util.spec_from_file_location(f"{name}_{decorated}", ROOT / "examples" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    found = importlib.util.module_from_spec(specification)

    def plain(function: Any = None, **options: Any) -> Any:
        return function if function is not None else plain

    with mock.patch.object(pcbatch, "autobatch", pcbatch.autobatch if decorated else plain):
        specification.loader.exec_module(found)
    return found


def programs() -> dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]]:
    """The undecorated function of each program, the batched one, and arguments."""
    found = {each.__name__: (each.function, each, arguments) for each, arguments in OWN}
    for name, function, arguments in OF_EXAMPLES:
        plain, batched = (getattr(module(name, decorated), function) for decorated in (False, True))
        found[name] = plain, batched, arguments
    return found


def seconds(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """CPU time of a call, with arrays of its own."""
    given = [np.array(each) if np.ndim(each) else each for each in arguments]
    started = time.process_time()
    function(*given)
    return time.process_time() - started


def measured(repeats: int) -> dict[str, dict[str, float]]:
    """Seconds of each program, by who runs it."""
    found = {}
    for name, (plain, batched, arguments) in programs().items():
        best = dict.fromkeys(("NumPy", "proxies", "single"), math.inf)
        with np.errstate(all="ignore"):
            started = time.perf_counter()
            while time.perf_counter() < started + 5 * examples.PATIENCE:
                batched.single(*arguments)
            for _ in range(repeats):
                best["NumPy"] = min(best["NumPy"], seconds(plain, arguments))
                best["single"] = min(best["single"], seconds(batched.single, arguments))
                with mock.patch.object(examples, "PATIENCE", math.inf):
                    best["proxies"] = min(best["proxies"], seconds(batched.single, arguments))
        found[name] = best
        times = "".join(f"{1e3 * each:10.3f}" for each in best.values())
        print(f"{name:20}{times}{best['single'] / best['NumPy']:8.2f}", flush=True)
    return found


def table(path: Path = FILE) -> str:
    """The table of a file of figures."""
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"]
    lines = ["| program | undecorated, ms | `f.single` | at first |", "|---|---|---|---|"]
    for name, best in figures.items():
        ratios = [best[each] / best["NumPy"] for each in ("single", "proxies")]
        lines.append(f"| {name} | {1e3 * best['NumPy']:.3g} | {ratios[0]:.2f} | {ratios[1]:.1f} |")
    return "\n".join(lines)


def drawn(text: str, path: Path = FILE) -> str:
    """The page with these figures."""
    return MARKED.sub(lambda mark: f"{mark[1]}{table(path)}\n{mark[2]}", text)


def main() -> None:
    """Measure, and print or draw."""
    parser = harness.arguments(__doc__)
    parser.set_defaults(repeats=9)
    parser.add_argument("--draw", action="store_true", help="write the figures' file and the page's table")
    given = parser.parse_args()
    found = measured(given.repeats)
    path = FILE if given.draw else given.json
    if path:
        harness.write_json(path, found)
    if given.draw:
        PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
