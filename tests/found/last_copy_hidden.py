"""A copy that is read only once, by a comprehension whose variable has its source's name. In: graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t0 = a
    return tf.add_n([a * t0 for a in (b, b + 1)])
