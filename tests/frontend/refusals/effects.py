import pcbatch
import tensorflow as tf

state = tf.Variable(0)


@pcbatch.autobatch
def f(x):
    tf.print(x)
    tf.debugging.assert_positive(x)
    state.assign_add(x)
    y = state.assign(x)
    z = open("file").read() + input()
    v = tf.Variable(x)
    w = x.numpy() if isinstance(x, int) else type(x)
    k = next(iter(x))
    return x, y, z, v, w, k, eval("x")
