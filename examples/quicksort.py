"""Quicksort: recursion on an array of the lane, whose partition goes another way in each lane.

Look at: arrays are values, so the function returns the array that it has sorted. Still a store costs one element, and
no call copies the array. How deep the recursion goes depends on the data: the lane that is sorted already is the worst.
"""

import numpy as np

import pcbatch


@pcbatch.autobatch
def quicksort(a, low, high):
    """The array with its elements `low` to `high` (included) in order."""
    if low >= high:
        return a
    pivot = a[high]
    middle = low
    for i in range(low, high):
        if a[i] < pivot:
            a[i], a[middle] = a[middle], a[i]
            middle += 1
    a[middle], a[high] = a[high], a[middle]
    a = quicksort(a, low, middle - 1)
    return quicksort(a, middle + 1, high)


@pcbatch.autobatch
def in_order(a):
    """The array in order."""
    return quicksort(a, 0, len(a) - 1)


def main():
    """Arrays of 40 numbers: sorted, in reverse, with few different ones, and random ones."""
    generator = np.random.default_rng(0)
    up = np.arange(40, dtype=np.float32)
    names = ["sorted", "reversed", "few", "random", "random", "random"]
    arrays = np.stack([up, up[::-1], generator.integers(0, 4, 40), *generator.normal(size=(3, 40))]).astype(np.float32)
    run = in_order.run(arrays)
    right = (np.asarray(run.value) == np.sort(arrays, axis=1)).all(axis=1)
    print(f"{'array':>10} {'in order':>9} {'calls and loop turns':>21}")
    for lane, name in enumerate(names):
        print(f"{name:>10} {right[lane]!s:>9} {run.lane_steps[lane]:21}")
    print(f"\n{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
