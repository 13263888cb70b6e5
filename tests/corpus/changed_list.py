"""Lists that change: elements by constant positions, appends, pops and the like, objects in them."""

import dataclasses
from typing import Any

import numpy as np

import pcbatch

DTYPES = (*["float32"] * 10, "int32")
SECOND = 1


@dataclasses.dataclass
class Player:
    """Somebody who plays."""

    money: Any
    wins: Any = 0.0


@pcbatch.autobatch
def changed_list(x, n):
    xs = [x, 2.0]
    xs.append(x * 3.0)
    if n > 2:
        xs.append(4.0)
    else:
        xs.append(x)
    last = xs.pop()
    while n > 0:
        xs[0] += 1.0
        xs[SECOND] = xs[0] - xs[-1]
        n -= 1
    xs.extend([x, last])
    xs.insert(1, 7.0)
    xs += [8.0]
    del xs[0]
    xs.reverse()
    product = xs.pop() * xs.pop(0) + xs[0]
    players = [Player(x), Player(2.0)]
    players[0].money -= 1.0
    players[1].wins = x
    players.append(Player(product))
    return xs, players, len(xs)


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)
