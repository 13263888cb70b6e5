"""One name for two values; what is left of the copy of one is read where the other's name is hidden. In: graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t0 = b
    while a > 0:
        a = a - 3
    b = sum([b * t0 for b in (a, a + 1)])
    q = x
    x = sum(sum(q for x in (x, 1.0)) for x in (x, 1.0))
    return x + q, b
