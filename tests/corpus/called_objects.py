"""Objects that are called, `o(x)`, made for each lane: with state, branches, recursion, in a list and in an object."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "int32", "float32")


class Rate:
    def __init__(self, rate):
        self.rate = rate
        self.steps = 0

    def __call__(self, x):
        self.steps += 1
        if x > 2.0:
            self.rate = 0.5 * self.rate
        return x - self.rate * x


class Halved:
    def __init__(self, least):
        self.least = least

    def __call__(self, x):
        if x < self.least:
            return x
        return self(0.5 * x) + 0.25


class Chain:
    def __init__(self, first, second):
        self.first = first
        self.second = second

    def __call__(self, x):
        return self.second(self.first(x))


class Sum:
    def __init__(self):
        self.total = 0.0

    def __call__(self, x):
        self.total += x


@pcbatch.autobatch
def until(rate, x, n):
    for _ in range(n):
        x = rate(x) + 0.125
    return x, rate


@pcbatch.autobatch
def called_objects(x, n):
    rates = [Rate(0.5), Rate(x)]
    log = Sum()
    for i in range(n):
        x = rates[(i + n) % 2](x + 1.0)
        log(x)
    chain = Chain(Halved(3.0), Halved(x + 0.5))
    y = chain(x + 4.0) + chain.second(8.0)
    last, rate = until(Rate(0.5), x, n)
    return x + y, log.total, rates[0].steps + 10 * rates[1].steps + 100 * rate.steps, last


def batch(rng, lanes):
    return rng.random(lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)
