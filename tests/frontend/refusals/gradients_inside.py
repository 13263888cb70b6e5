import tensorflow as tf
from tensorflow import GradientTape

import pcbatch


@pcbatch.autobatch
def energy(x, k):
    return x * x if k < 1 else energy(x, k - 1)


@pcbatch.autobatch
def step(x, k):
    before = energy(x, k)
    with tf.name_scope("slope"), tf.GradientTape() as tape:
        tape.watch(x)
        y = before + energy(x, k)
        with tf.name_scope("inner"):
            y = y * energy(y, 2)
    with GradientTape(persistent=True) as other:
        other.watch(y)
        z = energy(y, k)
    with tf.autodiff.ForwardAccumulator(x, energy(x, 1)) as forward:
        w = energy(x, k)
    return tape.gradient(y, x), other.gradient(z, y), forward.jvp(w)
