"""`min` and `max` whose key calls batched functions, or is one; in a loop, which stays one, and in a comprehension."""

import numpy as np

import pcbatch

DTYPES = ("int32",) * 7


@pcbatch.autobatch
def turns(n, count=0):
    """How many steps of Collatz's sequence lead from `n` to 1."""
    return count if n == 1 else turns(n // 2 if n % 2 == 0 else 3 * n + 1, count + 1)


@pcbatch.autobatch
def keyed_by_calls(xs, n):
    def score(k):
        if k % 2 == 0:
            return -turns(k)
        return turns(k)

    late = lambda k: n - turns(k)  # noqa: E731
    longest = max(range(1, n + 2), key=lambda k: turns(k))
    shortest = min(xs, key=turns)
    odd = max(xs, key=score)
    large = min((x for x in xs if x > 3), key=late, default=-1)
    first, last = [max(range(1, stop), key=lambda k: turns(k)) for stop in (3, 5)]
    total = 0
    for x in xs:
        total += x + min(range(x), key=lambda k: abs(k - n))
    return longest, shortest, odd, large, first, last, total


def batch(rng, lanes):
    return rng.integers(1, 9, (lanes, 5)).astype(np.int32), rng.integers(0, 6, lanes, dtype=np.int32)


def _steps(n):
    found = 0
    while n != 1:
        n, found = n // 2 if n % 2 == 0 else 3 * n + 1, found + 1
    return found


def twin(xs, n):
    large = [x for x in xs if x > 3]
    return (
        max(range(1, n + 2), key=_steps),
        min(xs, key=_steps),
        max(xs, key=lambda k: _steps(k) * (-1 if k % 2 == 0 else 1)),
        max(large, key=_steps) if large else -1,
        2,
        3,
        sum(int(x) + min(range(x), key=lambda k: abs(k - n)) for x in xs),
    )
