import threading

import numpy as np
import tensorflow as tf

import pcbatch

LOCK = threading.Lock()


@pcbatch.autobatch
def energy(x):
    return x * x if x < 1 else energy(x - 1)


@pcbatch.autobatch
def a_branch(x):
    with tf.name_scope("scope"):
        if x > 0:
            x += 1
    return x


@pcbatch.autobatch
def a_loop(x):
    with tf.name_scope("scope"):
        while x > 0:
            x -= 1
    return x


@pcbatch.autobatch
def an_assertion(x):
    with tf.name_scope("scope"):
        assert x > 0, "none"
    return x


@pcbatch.autobatch
def a_call(x):
    with tf.name_scope("scope"):
        y = x + energy(x)
    return y


@pcbatch.autobatch
def made_before(x):
    with LOCK:
        y = x + 1
    return y


@pcbatch.autobatch
def on_an_accumulator(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = energy(x)
    return forward.jvp(y)


X = (np.ones(2, np.float32),)
ARGUMENTS = {
    "a_branch": X,
    "a_loop": X,
    "an_assertion": X,
    "a_call": X,
    "made_before": X,
    "on_an_accumulator": X,
}
