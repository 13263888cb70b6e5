"""A second name of a captured array. In: graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    zs = TABLE
    zs[n] = a
    return TABLE[n] + zs[0]
