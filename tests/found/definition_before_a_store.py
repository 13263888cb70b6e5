"""What is made of a copy stays before a store, where the copy is. In: reference, graph, xla."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    ys = xs + 0
    t0 = n % 2
    b = a
    a = (tf.add_n([a * b for a in (a, b + 1)])) % 29
    ys[t0 : t0 + 1] = xs[t0 : t0 + 1]
    return a, ys[0] + t0
