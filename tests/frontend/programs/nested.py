import pcbatch

EXAMPLES = [(1.5, 2.0), (3.0, 40.0)]


@pcbatch.autobatch
def bisect(g, low, high):
    while high - low > 1e-3:
        middle = (low + high) / 2
        if g(middle) > 0.0:
            high = middle
        else:
            low = middle
    return low


@pcbatch.autobatch
def f(x, y):
    square = lambda v, by=x + 1.0: v * v - by  # noqa: E731

    def go(v):
        if v > y:
            return v
        return go(square(v))

    def straight(v):
        """Stands where it is called."""
        w = go(v) + x
        w += square(w, y)
        return w

    total = straight(x)
    y = total
    return bisect(lambda v: straight(v) - y, 0.0, x) + bisect(go, 0.0, x) + sum(list(map(square, [x, y])))
