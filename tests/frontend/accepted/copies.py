"""Copies of what stands outside of a function, which may be changed."""

import copy

import numpy as np

import pcbatch


class P:
    def __init__(self, x, items):
        self.x = x
        self.items = items


ORIGIN = P(1.0, [1.0, 2.0])
TABLE = [1.0, [2.0, 3.0]]
ENTRIES = {"a": [1.0]}


@pcbatch.autobatch
def a1(x):
    own = copy.deepcopy(ORIGIN)
    own.x = x
    own.items[0] = x
    return own.x + own.items[0] + ORIGIN.x + ORIGIN.items[0]


@pcbatch.autobatch
def a2(x):
    own = copy.copy(TABLE)
    own[0] = x
    return own[0] + TABLE[0]


@pcbatch.autobatch
def a3(x):
    own = copy.deepcopy(TABLE)
    own[1][0] = x
    return own[1][0] + TABLE[1][0]


@pcbatch.autobatch
def a4(x):
    own = copy.deepcopy(ENTRIES)
    own["a"].append(x)
    return own["a"][1] + len(ENTRIES["a"])


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(["a1", "a2", "a3", "a4"], X)
