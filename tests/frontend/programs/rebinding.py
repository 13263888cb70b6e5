import pcbatch

EXAMPLES = [([1, 2, 3], [4, 5, 6], 3), ([1, 2, 3], [4, 5, 6], 0)]


@pcbatch.autobatch
def rebinding(xs, ys, n):
    """Second names that do no harm: dead, rebound, swapped, copied, elements."""
    zs = xs
    zs = list(zs)
    zs[0] = 7
    old = xs
    k = old[1]
    for i in range(n):
        xs[i] = k + i
        xs, ys = ys, xs
        held = xs[0]
        previous = list(xs)
        xs = [x + 1 for x in xs]
        xs[0] = held + previous[0]
    pair = xs, ys
    a, b = pair
    a[1] = 5
    return a, b, zs
