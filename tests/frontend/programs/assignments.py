import pcbatch

EXAMPLES = [(1, 2), (5, 3)]


@pcbatch.autobatch
def twice(n):
    return n, 2 * n


@pcbatch.autobatch
def assignments(a, b):
    """Every form of assignment."""
    x = y = a + b
    (p, q), r = (a, b), x
    a, b = b, a
    first, second = twice(a)
    both = twice(b)
    c: int = p - q
    d: int
    d = c
    d += a
    d *= twice(d)[0]
    d -= 2
    e = (f := d + 1) * f + (f := 3)
    g = f + (f := 4) * f
    while (h := e % 7) > 100:
        e -= 1
    [u, v] = both
    n = k = twice(a)
    return (x, y, p, q, r, a, b), first, second, c, d, e, f, g, h, u, v, n, k, both[1], {"a": a}["a"], [a, b][1]
