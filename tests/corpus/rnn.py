"""Rows of a lane matrix read in a loop of the lane's own length, with weights that all lanes share."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)
RECURRENT = np.array([[0.5, -0.3, 0.1], [0.2, 0.4, -0.6], [-0.1, 0.3, 0.2]], np.float32)
INWARD = tf.constant([[1.0, -1.0], [0.5, 0.25], [0.0, 2.0]])


@pcbatch.autobatch
def rnn(sequence, length):
    state = tf.zeros([3])
    for t in range(length):
        state = tf.tanh(tf.linalg.matvec(RECURRENT, state) + tf.linalg.matvec(INWARD, sequence[t]))
    return state


def batch(rng, lanes):
    return rng.normal(size=(lanes, 5, 2)).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(sequence, length):
    state = np.zeros(3)
    for row in sequence[:length]:
        state = np.tanh(RECURRENT.dot(state) + INWARD.numpy().dot(row))
    return state
