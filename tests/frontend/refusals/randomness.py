import random
from random import gauss as draw

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def of_python(x):
    return x + random.random()


@pcbatch.autobatch
def by_another_name(x):
    return x + draw(0, 1)


@pcbatch.autobatch
def of_numpy(x):
    return x + np.random.normal(0, 1)


GENERATOR = np.random.default_rng(0)


@pcbatch.autobatch
def of_a_generator(x):
    return x + GENERATOR.normal()


@pcbatch.autobatch
def of_tensorflow(x):
    return x + tf.random.normal([])


@pcbatch.autobatch
def with_a_seed(x):
    return x + tf.random.stateless_truncated_normal([], [1, 2])


@pcbatch.autobatch
def inside_an_operation(x):
    return tf.nn.dropout(x, 0.5)


def helper(x):
    return x + np.random.uniform()


@pcbatch.autobatch
def in_a_helper(x):
    return helper(x)


X = (np.ones(2, np.float32),)
ARGUMENTS = {
    "of_python": X,
    "by_another_name": X,
    "of_numpy": X,
    "of_a_generator": X,
    "of_tensorflow": X,
    "with_a_seed": X,
    "inside_an_operation": X,
    "in_a_helper": X,
}
