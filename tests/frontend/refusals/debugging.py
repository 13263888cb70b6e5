import pcbatch
import tensorflow as tf


@pcbatch.autobatch
def debugging(x, xs):
    y = pcbatch.debug("x", x)
    pcbatch.debug(x)
    pcbatch.debug("{} {}", x)
    pcbatch.debug("{name}", x)
    pcbatch.debug("x", *xs)
    pcbatch.debug(f"x = {x}")
    pcbatch.debug("x", x, end="")
    pcbatch.debug()
    with tf.name_scope("scope"):
        pcbatch.debug("x", x)
        x = x + 1
    return y
