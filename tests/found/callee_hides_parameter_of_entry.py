"""A callee's comprehension has a variable of the name of the caller's parameter, which it gets. In: reference, graph."""


@pcbatch.autobatch
def f0(n, c, q):
    if n <= 0:
        return sum([m * q for m in (c, c + 1)]) % 29
    c = (c + (lambda m: m - q)(n)) % 29
    return f0(n - 1, c, q)


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t0 = f0(n, a, m)
    return f0(n - 1, t0, m) + t0
