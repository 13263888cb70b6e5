"""Ackermann's function: calls inside the arguments of calls, hundreds deep, and stacks that grow by themselves.

Look at: nothing says how deep the recursion goes. Two of the three calls end their function, so they cost no stack at
all; only the inner one does. Stacks start small and grow when a lane needs them: `stats()` tells how far they grew.
The 24 lanes together take hardly more steps than the worst one alone.
"""

import tensorflow as tf

import pcbatch


@pcbatch.autobatch(form="lockstep")  # to count block runs; by itself it would run lane after lane
def ackermann(m, n):
    """Ackermann's function in the form of Rózsa Péter."""
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def main():
    """A table for m up to 3 and n up to 5, all its cells at once."""
    rows, columns = tf.range(4), tf.range(6)
    m, n = tf.repeat(rows, 6), tf.tile(columns, [4])
    run = ackermann.run(m, n)
    print("m \\ n" + "".join(f"{column:6}" for column in columns.numpy()))
    for row, values in enumerate(tf.reshape(run.value, [4, 6]).numpy()):
        print(f"{row:5}" + "".join(f"{value:6}" for value in values))
    last = run.value.numpy()[18:]
    print(f"\nthe last row is 2 ** (n + 3) - 3: {all(last == [2 ** (n + 3) - 3 for n in range(6)])}")
    alone = ackermann.run(m[-1:], n[-1:])
    print(f"{run.block_runs} block runs for {len(m)} lanes, {alone.block_runs} for the last one alone")
    print(f"stacks of {ackermann.stats().stack_entries} entries")


if __name__ == "__main__":
    main()
