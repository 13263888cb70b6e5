"""`pcbatch.map` with a count that differs by lane, over trees of any number of children; and over many elements."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "int32", "float32")


@pcbatch.autobatch
def weighed(children, count, node):
    if count[node] == 0:
        return 1, float(node) * 0.5
    sizes, weights = pcbatch.map(lambda child: weighed(children, count, child), children[node], count=count[node])
    return sum(sizes) + 1, sum(weights) + float(node)


@pcbatch.autobatch
def counted_maps(children, count, n):
    size, weight = weighed(children, count, 0)
    shares = pcbatch.map(lambda k, c: 12 // k + c, [n, n - 1, n - 2], count[:3], count=n)
    many = pcbatch.map(lambda k: k % 7, range(70))
    return size, shares, sum(many), weight


def batch(rng, lanes):
    children, count = np.full((lanes, 5, 3), 99, np.int32), np.zeros((lanes, 5), np.int32)
    for lane in range(lanes):
        for node in range(1, rng.integers(1, 6)):
            parent = rng.choice(np.flatnonzero(count[lane, :node] < 3))
            children[lane, parent, count[lane, parent]] = node
            count[lane, parent] += 1
    return children, count, rng.integers(-1, 5, lanes, dtype=np.int32)


def twin(children, count, n):
    def weigh(node):
        below = [weigh(child) for child in children[node, : count[node]]]
        return 1 + sum(s for s, _ in below), sum(w for _, w in below) + (node if below else node * 0.5)

    size, weight = weigh(0)
    shares = [12 // k + c for k, c in list(zip([n, n - 1, n - 2], count[:3], strict=True))[:n]]
    return size, np.array(shares + [0] * (3 - n)), sum(k % 7 for k in range(70)), weight


def status(children, count, n):
    return "OK" if 0 <= n <= 3 else "RAISED"


def message(children, count, n):
    return f"count={n} of 3 elements"
