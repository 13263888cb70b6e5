"""A helper gives back its argument: a second name of the same array. In: graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    zs = keep(xs)
    zs[n] = a
    return xs[n], zs[0]
