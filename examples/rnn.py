"""A recurrent network on sequences of different lengths: no masks, and weights shared by all lanes.

Look at: `for t in range(length)` runs to each lane's own length. The weights are captured `tf.Variable`s, one copy for
all lanes, so the product stays one matrix product. They are operands of the compiled program and read at each call, so
assigning to them needs no compilation.
"""

import numpy as np
import tensorflow as tf

import pcbatch

FEATURES, UNITS, LONGEST, LANES = 3, 8, 20, 32

generator = np.random.default_rng(0)
recurrent = tf.Variable(generator.normal(size=(UNITS, UNITS)) / np.sqrt(UNITS), dtype=tf.float32)
inputs = tf.Variable(generator.normal(size=(UNITS, FEATURES)), dtype=tf.float32)


@pcbatch.autobatch
def last_state(sequence, length):
    """The state after `length` elements of `sequence` (shape `[longest, features]`)."""
    state = tf.zeros([UNITS])
    for t in range(length):
        state = tf.tanh(tf.linalg.matvec(recurrent, state) + tf.linalg.matvec(inputs, sequence[t]))
    return state


def by_hand(sequences, lengths):
    """The same with a mask, as one has to write it without pcbatch."""
    states = np.zeros((len(sequences), UNITS), np.float32)
    for t in range(sequences.shape[1]):
        new = np.tanh(states @ recurrent.numpy().T + sequences[:, t] @ inputs.numpy().T)
        states = np.where((t < lengths)[:, None], new, states)
    return states


def main():
    """32 sequences of up to 20 elements, twice: the second time with other weights."""
    sequences = generator.normal(size=(LANES, LONGEST, FEATURES)).astype(np.float32)
    lengths = generator.integers(0, LONGEST + 1, LANES).astype(np.int32)
    for scale in (1.0, 0.5):
        recurrent.assign(recurrent * scale)
        run = last_state.run(sequences, lengths)
        difference = np.abs(np.asarray(run.value) - by_hand(sequences, lengths)).max()
        print(f"weights times {scale}: largest difference to the masked loop {difference:.1e}")
    print(f"lengths {lengths.min()} to {lengths.max()}, {last_state.stats().compilations} compilation")
    print(f"{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
