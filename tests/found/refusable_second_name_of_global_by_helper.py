"""A helper gives back a global: a second name of it, in which an element is stored. In: reference."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    zs = keep(TABLE)
    zs[n] = a
    return TABLE[n], zs[0]
