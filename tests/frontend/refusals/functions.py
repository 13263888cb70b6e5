import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def g(x):
    return x + 1


@pcbatch.autobatch
def on_one_path(x):
    if x > 0:

        def late(v):
            return v

    return late(x)


@pcbatch.autobatch
def given_to_an_operation(x):
    return tf.map_fn(g, tf.stack([x, x]))


@pcbatch.autobatch
def given_back(x):
    return lambda: x


@pcbatch.autobatch
def no_function(x):
    return x(1)


@pcbatch.autobatch
def empty(x):
    def nothing(v):
        v = v + 1

    return nothing(x) + 1


X = (np.ones(2, np.float32),)
ARGUMENTS = {
    "on_one_path": X,
    "given_to_an_operation": X,
    "given_back": X,
    "no_function": X,
    "empty": X,
}
