"""Fibonacci numbers by naive recursion: the smallest program that no `vmap` can batch.

Look at: the function is plain recursive Python for one number. Lanes reach different depths and different calls at
the same time. Still every block runs once for all lanes that wait for it. So 64 numbers together take far fewer block
runs than one after the other.
"""

import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def fibonacci(n):
    """The n-th number of 1, 1, 2, 3, 5, .."""
    if n <= 1:
        return 1
    return fibonacci(n - 2) + fibonacci(n - 1)


def main():
    """A batch of four, then one of 64."""
    print("fibonacci([3, 7, 4, 5]) =", fibonacci(tf.constant([3, 7, 4, 5])).numpy())
    print(f"\n{'lanes':>6} {'largest n':>10} {'runs':>7} {'rows of use':>12}")
    in_lockstep = fibonacci.options(form="lockstep")  # by itself it runs natively, and counts no block runs
    for lanes in (1, 64):
        run = in_lockstep.run(14 - tf.range(lanes) % 15)
        print(f"{lanes:6} {14:10} {run.block_runs:7} {run.utilization.overall:12.0%}")


if __name__ == "__main__":
    main()
