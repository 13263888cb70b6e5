"""All lanes' program counters and stacks in the middle of a run: the batching paper's figures 1 and 3, drawn.

Look at: after as many steps the two machines stand at different places. By program counters, lanes at different depths
wait at the same block, in the same colour, and the block runs for all of them. Local batching keeps the calls on the
host's stack. Lanes run together only in the frame on top, and others wait below it.
"""

import argparse
from pathlib import Path

import tensorflow as tf
from fibonacci import fibonacci

NUMBERS, STEP = tf.constant([3, 7, 4, 5]), 14


def main(out=Path("out/stacks")):
    """Two pictures, and what they show in a table."""
    out.mkdir(parents=True, exist_ok=True)
    machines = {
        "local": fibonacci.options(strategy="local"),
        "pc": fibonacci.options(trace=1000, schedule="earliest"),
    }
    print(f"{'machine':>8} {'steps':>6}  fibonacci({NUMBERS.numpy()})")
    for name, function in machines.items():
        run = function.run(NUMBERS)
        run.plot_stacks(STEP, out / f"{name}.png")
        print(f"{name:>8} {run.trips:6}  {run.value.numpy()}")
    print(f"pictures after {STEP} steps: {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/stacks"))
    main(parser.parse_args().out)
