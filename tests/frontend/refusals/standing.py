import pcbatch
import tensorflow as tf

SCALE = 2.0


@pcbatch.autobatch
def f(x, xs):
    power = lambda n: 1.0 if n <= 0.0 else x * power(n - 1.0)
    scaled = lambda v: v * SCALE

    def inner(v):
        SCALE = v + 1.0
        if v > 9.0:
            return SCALE
        return sum([scaled(each) for each in [v, SCALE]])

    return tf.reduce_sum(tf.map_fn(power, xs)) + inner(x)
