"""Lists and tuples, captured ones too, at positions that differ by lane: read, stored into, out of range."""

import numpy as np

import pcbatch

DTYPES = (*["int32"] * 8, *["float32"] * 4)
DAYS = [31, 28, 31, 30]
MOVES = ((0, 1), (1, 0), (2, 2))


class Player:
    """Somebody who plays."""

    def __init__(self, money):
        self.money = money


@pcbatch.autobatch
def lists_by_lane(x, n):
    memo = [0, 1] + [0] * 6
    for i in range(2, n + 1):
        memo[i] = memo[i - 1] + memo[i - 2]
    across, down = MOVES[n % 3]
    counts = [0] * 3
    table = [[0.0] * 2 for _ in range(2)]
    players = [Player(x), Player(2.0)]
    for i in range(4):
        counts[(n + i) % 3] += DAYS[i]
        table[i % 2][n % 2] = x * i
        players[n % 2].money -= 1.0
    return memo[n], DAYS[n], DAYS[-1 - n], across, down, counts, table[0], players


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)


def status(x, n):
    return "OK" if n < 4 else "INDEX"
