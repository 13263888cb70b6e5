"""How fast is cheap code? Eight tasks, at several numbers of lanes, against what people use today.

    python -m benchmarks.against [--lanes 1 64 1024 16384] [--tasks collatz ..] [--repeats 7] [--json out/against.json]

Milliseconds of a call, and in brackets how many times as long as pcbatch's default form: the machine in lockstep, the
loop masked by hand in TensorFlow under XLA (of the tasks without recursion), Numba on one thread and on all cores, and
plain Python (where that takes less than a second). All give the same results, or this fails. Numba is taken if it is
installed: `pip install numba`.
"""

from __future__ import annotations

import importlib.util
import math

from benchmarks.against import contestants, masked
from benchmarks.against.contestants import Call
from benchmarks.against.inputs import batch
from benchmarks.harness import Timing, arguments, measure, write_json

FEW = 256
"""Up to so many lanes plain Python takes part."""


def calls(task: str, lanes: int) -> dict[str, Call]:
    """The contestants for a task, pcbatch as it is by default first."""
    given = batch(task, lanes)
    found = {
        "pcbatch": contestants.batched(task, given),
        "lockstep": contestants.batched(task, given, form="lockstep"),
    }
    if task in masked.TASKS:
        found["masked"] = masked.call(task, given)
    if importlib.util.find_spec("numba"):
        found["numba"] = contestants.numba(task, given)
        found["numba, all cores"] = contestants.numba(task, given, parallel=True)
    if lanes <= FEW:
        found["python"] = contestants.python(task, given)
    return found


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 64, 1024, 16384])
    parser.add_argument("--tasks", nargs="+", choices=contestants.TASKS, default=list(contestants.TASKS))
    given = parser.parse_args()
    figures: dict[str, dict[str, dict[str, Timing]]] = {}
    for lanes in given.lanes:
        figures[str(lanes)] = {}
        print(f"\n{lanes} lanes")
        for task in given.tasks:
            found = measure(calls(task, lanes), repeats=given.repeats, rtol=1e-6, atol=1e-7)
            figures[str(lanes)][task] = found
            shown = (f"{name} {1e3 * each.median:.3g} ({each.ratio:.2f})" for name, each in found.items())
            print(f"{task:>14}  {'   '.join(shown)}   first call {found['pcbatch'].first:.2f} s", flush=True)
        names = dict.fromkeys(name for found in figures[str(lanes)].values() for name in found)
        for name in [*names][1:]:
            ratios = [1 / found[name].ratio for found in figures[str(lanes)].values() if name in found]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{'':>14}  pcbatch takes {mean:.2f} times as long as {name} (geometric mean of {len(ratios)})")
    if given.json:
        write_json(given.json, figures, ("pcbatch", "tensorflow", "numpy", "numba"))


if __name__ == "__main__":
    main()
