"""A `with` block reads the new value of what it has read and assigned before. In: graph, xla."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t0 = a
    with tf.name_scope("one"):
        x = x + 1.0
        x = x * 2.0
        result = x + 0.25
    with tf.name_scope("two"):
        a = a * 2
        b = t0 * a
    return result, a + b
