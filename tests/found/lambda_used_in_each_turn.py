"""A lambda reads a loop's variable and is called in the same turn, its result being kept. In: reference."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t = 0.0
    k = 1
    for i in range(3):
        g1 = lambda q: q * i + k
        t = t + g1(x) % 8.0
        k = k + 1
    return t
