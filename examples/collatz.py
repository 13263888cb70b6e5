"""The Collatz conjecture: loops whose length nobody can tell beforehand, and a lane that fails without hurting others.

Look at: the `while` loop ends at a different turn in each lane. Lane 0 starts at 0, which is not allowed, so `assert`
stops it, and it alone. `run.status` and `run.errors` say what became of it; all other lanes have their results.
"""

import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def collatz(n):
    """How many steps `n` takes to reach 1, and the largest number on the way."""
    assert n > 0, f"a start must be positive, not {n}"
    steps = 0
    peak = n
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        peak = max(peak, n)
        steps += 1
    return steps, peak


def main():
    """Starts 0 to 31, the first of which is wrong."""
    starts = tf.range(32)
    run = collatz.run(starts)
    steps, peak = run.value
    print(f"{'start':>6} {'steps':>6} {'peak':>6}  status")
    for lane in (0, 1, 7, 27, 31):
        print(f"{starts[lane]:6} {steps[lane]:6} {peak[lane]:6}  {pcbatch.LaneStatus(int(run.status[lane])).name}")
    for error in run.errors:
        print("\n" + str(error))
    print(f"\n{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
