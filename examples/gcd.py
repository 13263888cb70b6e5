"""Euclid's algorithm on random pairs: a loop with a swap, and random numbers that belong to a lane.

Look at: `a, b = b, a % b` means what it means in Python. The pairs are drawn inside the batched function from a key
per lane, so a lane draws the same pair whatever the number of lanes.
"""

import numpy as np

import pcbatch


@pcbatch.autobatch
def gcd(a, b):
    """The greatest common divisor, and the number of divisions it took."""
    divisions = 0
    while b != 0:
        a, b = b, a % b
        divisions += 1
    return a, divisions


@pcbatch.autobatch
def random_pair(key):
    """Two numbers below a million, and their greatest common divisor."""
    a = pcbatch.random.randint(pcbatch.random.fold_in(key, 0), (), 1, 1_000_000)
    b = pcbatch.random.randint(pcbatch.random.fold_in(key, 1), (), 1, 1_000_000)
    divisor, divisions = gcd(a, b)
    return a, b, divisor, divisions


def main():
    """How often two random numbers have no common divisor: 6 / pi**2 of the time."""
    run = random_pair.run(pcbatch.random.keys(seed=7, lanes=1000))
    a, b, divisor, divisions = (np.asarray(values) for values in run.value)
    assert np.array_equal(divisor, np.gcd(a, b))
    for lane in range(5):
        print(f"gcd({a[lane]}, {b[lane]}) = {divisor[lane]} after {divisions[lane]} divisions")
    print(f"\nwithout a common divisor: {np.mean(divisor == 1):.3f}, expected {6 / np.pi**2:.3f}")
    print(f"divisions per lane: {divisions.min()} to {divisions.max()}")
    print(f"{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
