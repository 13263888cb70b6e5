"""Augmented assignments that change lists, dicts and objects in place, beside those of numbers and arrays."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",) * 18


class Account:
    """What `+=` means is its own affair."""

    def __init__(self, money):
        self.money = money
        self.log = []

    def __iadd__(self, money):
        self.money += money
        self.log.append(money)
        return self

    def __add__(self, money):
        return Account(self.money - money)


@pcbatch.autobatch
def augmented_lists(x, n):
    xs, more = [x], [2.0 * x, 3.0]
    xs += more
    xs += (x, 1.0)
    xs *= 2
    first = {"a": x}
    first |= {"b": 2.0 * x}
    account = Account(x)
    account += 2.0
    total = tf.stack([x, x])
    while n > 0:
        total *= 1.5
        total += xs[1]
        n -= 1
    for at in range(2):
        more += [x * at]
    return xs, more, first, account.money + account.log[0], total[0]


def batch(rng, lanes):
    return rng.uniform(0.5, 3.0, lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)
