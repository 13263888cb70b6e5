"""Order and places in NumPy's words: sorting by a key, arrays as indices, searching, sums so far, differences."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "int64", "float32", "float32", "int64", "float32", "float32")


def batch(rng, lanes):
    points = rng.normal(size=(lanes, 5, 2)).astype(np.float32)
    weights = rng.integers(0, 4, (lanes, 5)).astype(np.float32)
    return points, weights, rng.integers(-5, 5, (lanes, 3)).astype(np.int32)


@pcbatch.autobatch
def numpy_order(points, weights, picks):
    order = np.argsort(weights)
    by_weight = points[order]
    turned = weights[np.argsort(-weights)][::-1]
    so_far = np.cumsum(weights)
    place = np.searchsorted(so_far, 0.5 * so_far[-1])
    taken = np.take(weights, picks) + points[picks, 0]
    total = 0.0
    for i in order:
        total = total * 0.5 + weights[i]
    return by_weight, turned, order, np.diff(by_weight, axis=0), taken, place, total, weights[[0, 2]].sum()


def twin(points, weights, picks):
    order = sorted(range(5), key=lambda i: weights[i])
    by_weight = np.stack([points[i] for i in order])
    steps = np.stack([by_weight[i + 1] - by_weight[i] for i in range(4)])
    sums = [sum(weights[: i + 1]) for i in range(5)]
    place = len([s for s in sums if s < 0.5 * sums[-1]])
    taken = np.array([weights[i] + points[i][0] for i in picks])
    total = 0.0
    for i in order:
        total = total * 0.5 + weights[i]
    return by_weight, np.array(sorted(weights)), np.array(order), steps, taken, place, total, weights[0] + weights[2]
