import pcbatch

EXAMPLES = [(3, 1.0), (-1, 1.0), (0, 1.0), (1, -2.5), (2, -2.5), (4, 1.0), (5, 1.0), (6, 1.0), (7, 1.0), (8, 1.0)]


class NotReady(Exception):
    pass


@pcbatch.autobatch
def faults(n, x):
    assert n >= 0
    assert n, "n must not be zero, not even in {braces}"
    if n == 1:
        raise ValueError(f"x is {x:.3f} and n {n!r}, their product {n * x}")
    if n == 2:
        raise NotReady
    elif n == 4:
        raise NotReady()
    elif n == 5:
        raise NotReady("at five")
    assert n != 6, n + 1
    assert n != 7 and x > 0, f"{n}"
    if n == 8:
        return 10 // (n - 8)
    return x
