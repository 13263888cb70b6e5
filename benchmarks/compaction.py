"""What does a dear block cost that few lanes visit at a time: run on those lanes alone, or masked?

    python -m benchmarks.compaction [--json out/compaction.json]

256 lanes; in each turn of a loop an eighth of them (another one each time) multiplies its 512 floats by a 512x512
matrix. The schedule "sweep" lets none of them wait for others ("auto" does, which is shown beside it). Masked execution
would compute 256 rows for these 32 lanes, gathered execution 32, in chunks. The baseline runs every block that rounds
in chunks, even where all lanes wait (`deterministic=True`); rows and results are compared as well as times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import arguments, measure, write_json
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.costs.estimate import block_costs

LANES, WIDTH, TURNS = 256, 512, 64
SHARES = (32, 8, 2, 1)
"""One lane in so many visits the dear block in a turn."""

weights = tf.constant(np.linalg.qr(np.random.default_rng(0).normal(size=(WIDTH, WIDTH)))[0], tf.float32)


@pcbatch.autobatch
def visits(x, lane, share, turns):
    """`turns` turns of a loop, in one of `share` of which the lane turns its vector by the matrix."""
    for turn in range(turns):
        if (turn + lane) % share == 0:
            x = tf.linalg.matvec(weights, x)
    return x


def figures(share: int, repeats: int) -> dict[str, Any]:
    """Timings, rows and utilisation of each mode, where one lane in `share` is at the block at a time."""
    rng = np.random.default_rng(share)
    x = tf.constant(rng.normal(size=(LANES, WIDTH)), tf.float32)
    lane, constant = tf.range(LANES), tf.ones(LANES, tf.int32)
    sweep = visits.options(schedule="sweep")
    modes = {"deterministic": sweep.options(deterministic=True), "gathered": sweep, "auto": visits}
    given = (x, lane, constant * share, constant * TURNS)
    runs = {name: function.run(*given) for name, function in modes.items()}
    timings = measure(
        {name: lambda f=function: f(*given).numpy() for name, function in modes.items()},
        repeats=repeats,
        rtol=1e-4,
        atol=1e-5,
    )
    program = runs["gathered"].program
    costs = block_costs(program, backend_named("tensorflow"))
    dear = max(zip(costs, program.blocks, strict=True), key=lambda pair: pair[0])[1].label
    return {
        name: {
            "timing": timings[name],
            "runs": run.executions[dear],
            "rows": run.utilization.executed[dear],
            "utilization": run.utilization.by_block[dear],
        }
        for name, run in runs.items()
    }


def main() -> None:
    """Print a table; an eighth of the lanes is the case that is promised."""
    options = arguments(__doc__).parse_args()
    found = {share: figures(share, options.repeats) for share in SHARES}
    print(f"{LANES} lanes, {WIDTH}x{WIDTH} product, {TURNS} turns; milliseconds and rows of the dear block")
    columns = ("fixed", "gathered", "ratio", "auto", "masked", "gathered", "of use")
    print(f"{'lanes at it':>11}" + "".join(f"{column:>9}" for column in columns))
    for share, by_mode in found.items():
        fixed, gathered, auto = (by_mode[mode] for mode in ("deterministic", "gathered", "auto"))
        print(
            f"{LANES // share:>11}{1e3 * fixed['timing'].median:>9.1f}{1e3 * gathered['timing'].median:>9.1f}"
            f"{gathered['timing'].ratio:>9.2f}{1e3 * auto['timing'].median:>9.1f}"
            f"{gathered['runs'] * LANES:>9}{gathered['rows']:>9}{gathered['utilization']:>9.0%}"
        )
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
