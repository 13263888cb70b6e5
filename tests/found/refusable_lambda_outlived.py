"""A lambda reads what a variable holds when it is called, not when it was written. In: graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    g = lambda q: a * q
    t0 = g(b)
    a = a + 3
    return t0 + g(b)
