"""A lambda that is called once, after a variable that it reads has changed. In: graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    g = lambda q, c=a: a * q + c
    a = a + 3
    return g(b)
