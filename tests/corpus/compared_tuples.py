"""Tuples and lists compared, their smallest and largest, in loops and generators, too; rows by a list of places."""

import numpy as np

import pcbatch

DTYPES = (*["bool"] * 8, *["int32"] * 6, *["float32"] * 4)
HOMES = ((0, 2), (1, 3), (3, 2))


@pcbatch.autobatch
def compared_tuples(a, b, points, i, j):
    pair, other = (a[i], b[i]), (a[j], b[j])
    best = (a[0], b[0])
    for x, y in zip(a, b, strict=True):
        best = max(best, (x, y))
    most = max((b[k], k) for k in range(i + 1))
    least = min((x, -y) for x, y in zip(a, b, strict=True) if x >= a[0])
    nearest = min(points, key=lambda p: np.sum((p - points[i]) ** 2) + 0.1 * p[0]).copy()
    right = max((p for p in points if p[0] >= points[j, 0]), key=lambda p: (p[1] > 0.0, p[0])).copy()
    points[[i, j]] = points[[j, i]]
    points[[j, 0]] = points[1], points[i]
    tests = (
        pair == other,
        pair != (1, b[0]),
        pair < other,
        [*pair, i] >= [*other, j],
        (pair, 1) <= (other, 0),
        pair > (a[j],),
        pair in [other, (1, 1)],
        (i, 2) not in HOMES,
    )
    return *tests, *best, *most, *least, nearest, right, points, points[[i, j]]


def batch(rng, lanes):
    pairs = (rng.integers(0, 3, (lanes, 4)).astype(np.int32) for _ in range(2))
    places = (rng.integers(0, 4, lanes, dtype=np.int32) for _ in range(2))
    return *pairs, rng.normal(size=(lanes, 4, 2)).astype(np.float32), *places


def twin(a, b, points, i, j):
    pair, other = (a[i], b[i]), (a[j], b[j])
    tests = pair == other, pair != (1, b[0]), pair < other, (*pair, i) >= (*other, j)
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    most = max((b[k], k) for k in range(i + 1))
    least = min((x, -y) for x, y in pairs if x >= a[0])
    nearest = min(points, key=lambda p: np.sum((p - points[i]) ** 2) + 0.1 * p[0]).copy().copy()
    right = max((p for p in points if p[0] >= points[j, 0]), key=lambda p: (p[1] > 0, p[0])).copy()
    points = points.copy()
    points[[i, j]] = points[[j, i]]
    points[[j, 0]] = points[1].copy(), points[i].copy()
    more = pair < other, pair > (a[j],), pair in [other, (1, 1)], (i, 2) not in HOMES
    return *tests, *more, *max(pairs), *most, *least, nearest, right, points, points[[i, j]]
