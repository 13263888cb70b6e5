"""A dict with a list, an empty tuple and None inside, one entry replaced at a time, through branches and a call."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "int32")


@pcbatch.autobatch
def turned(state):
    first, second = state["pair"]
    return {**state, "pair": [second, first], "turns": state["turns"] + 1}


@pcbatch.autobatch
def dict_state(x, n):
    state = {"pair": [x, 0.5], "turns": 0, "nothing": (), "cache": None}
    while n > 0:
        state = turned(state)
        if n % 2 == 0:
            state = {**state, "pair": [state["pair"][0] * 2.0, state["pair"][1]]}
        n -= 1
    return state["pair"][0], state["pair"][-1], state["turns"]


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(x, n):
    pair, turns = [x, 0.5], 0
    for left in range(n, 0, -1):
        pair, turns = pair[::-1], turns + 1
        pair[0] *= 2 if left % 2 == 0 else 1
    return pair[0], pair[1], turns
