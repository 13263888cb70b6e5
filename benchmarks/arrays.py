"""Does writing or reading one element of a lane's array cost more when the array is longer?

    python -m benchmarks.arrays [--json out/arrays.json]

64 lanes, 10,000 turns of a loop; in each turn every lane writes (or reads) one element of its own array, at an index of
its own. The same number of elements at array length 100 and 10,000: a machine that copies arrays pays for their length.
Nanoseconds are medians; the ratio is the median of the ratios of neighbours in time. PASS where the longer array costs
at most 1.5 times as much per element.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import arguments, measure, paired, write_json

LANES, TURNS = 64, 10_000
LENGTHS = (100, 10_000)
LIMIT = 1.5
"""The most that an element of the longest array may cost in terms of one of the shortest."""


@pcbatch.autobatch
def writes(a, lane):
    """`a` with `TURNS` elements written one after the other, each lane starting at its own."""
    for turn in range(TURNS):
        a[(turn + lane) % len(a)] = float(turn)
    return a


@pcbatch.autobatch
def reads(a, lane):
    """The sum of `TURNS` elements of `a`, far from each other, each lane starting at its own."""
    total = 0.0
    for turn in range(TURNS):
        total = total + a[(turn * 37 + lane) % len(a)]
    return total


@pcbatch.autobatch
def recursive_writes(a, lane, turn):
    """The same writes in a recursion, where the array is passed from call to call."""
    if turn == TURNS:
        return a
    a[(turn + lane) % len(a)] = float(turn)
    return recursive_writes(a, lane, turn + 1)


def figures(function: Any, repeats: int, *more: Any) -> dict[str, Any]:
    """Nanoseconds per element and timing for each array length, timed in turn, and the longest one's ratio."""
    lane = tf.range(LANES)
    arrays = {length: tf.constant(np.arange(length) + np.zeros((LANES, 1)), tf.float32) for length in LENGTHS}
    timings = measure(
        {str(length): lambda a=array: np.asarray(function(a, lane, *more)) for length, array in arrays.items()},
        repeats=repeats,
        rtol=None,
    )
    shortest, *_, longest = timings.values()
    return {
        "nanoseconds per element": {name: 1e9 * each.median / (LANES * TURNS) for name, each in timings.items()},
        "timings": timings,
        "ratio": paired(shortest, longest),
    }


def main() -> None:
    """Print a line for each kind of access; exit code 1 if one fails."""
    options = arguments(__doc__).parse_args()
    start = tf.zeros(LANES, tf.int32)
    found = {
        "write": figures(writes, options.repeats),
        "write in recursion": figures(recursive_writes, options.repeats, start),
        "read": figures(reads, options.repeats),
    }
    print(f"nanoseconds per element, {LANES} lanes, {TURNS} elements of each, arrays of this length")
    print(f"{'':>20}" + "".join(f"{length:>9}" for length in LENGTHS) + f"{'ratio':>9}")
    passed = True
    for kind, entry in found.items():
        ratio = entry["ratio"]
        passed = passed and ratio <= LIMIT
        row = "".join(f"{cost:>9.1f}" for cost in entry["nanoseconds per element"].values())
        print(f"{kind:>20}{row}{ratio:>9.2f}  {'PASS' if ratio <= LIMIT else 'FAIL'}")
    if options.json:
        write_json(options.json, found)
    sys.exit(not passed)


if __name__ == "__main__":
    main()
