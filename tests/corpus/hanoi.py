"""Two recursive calls with tuples as results and permuted arguments; everything but n is a weak number."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def hanoi(n, source=1, target=3):
    if n == 0:
        return 0, 0
    spare = 6 - source - target
    before, left = hanoi(n - 1, source, spare)
    after, right = hanoi(n - 1, spare, target)
    return before + 1 + after, left + 10 * source + target + right


def batch(rng, lanes):
    return (rng.integers(0, 5, lanes, dtype=np.int32),)


def twin(n):
    moves, work = [], [(n, 1, 3)]
    while work:
        n, source, target = work.pop()
        if n == 1:
            moves.append(10 * source + target)
        elif n > 1:
            spare = 6 - source - target
            work += [(n - 1, spare, target), (1, source, target), (n - 1, source, spare)]
    return len(moves), sum(moves)
