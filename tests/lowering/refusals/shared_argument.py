"""An argument that a primitive declares shared may not differ by lane."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.primitive(batched=lambda matrix, x: tf.matmul(x, matrix), shared=("matrix",))
def product(matrix, x):
    return tf.linalg.matvec(matrix, x, transpose_a=True)


@pcbatch.autobatch
def shared_argument(x):
    outer = x[:, None] * x
    return product(outer, x)


ARGUMENTS = {"shared_argument": (np.ones((2, 3), np.float32),)}
