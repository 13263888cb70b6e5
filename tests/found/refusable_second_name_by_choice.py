"""A helper gives back one of its arguments; a store under the first name shows in the second. In: graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    zs = either(xs, xs + 0)
    xs[n] = a
    return zs[n] + xs[0]
