"""Methods that change one of several objects, at a lane's number, and give a value; parts of objects that are kept."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "float32", "float32")


class Arm:
    def __init__(self, mean):
        self.mean = mean
        self.pulls = [0.0, 0.0]
        self.best = [mean]

    def pull(self, reward):
        self.pulls[0] += 1.0
        self.pulls[1] += reward
        self.mean = self.pulls[1] / self.pulls[0]
        return self.mean

    def record(self, reward):
        before = self.best
        self.best = [reward + 0.5 * before[0]]
        return before


@pcbatch.autobatch
def changing_one_of_several(x, n):
    arms = [Arm(0.0), Arm(x), Arm(1.0)]
    total = 0.0
    for i in range(n):
        k = (i * i + n) % 3
        total += arms[k].pull(x + i) * arms[(k + 1) % 3].pull(1.0)
        if arms[k].mean > 1.5 and arms[2].pull(0.5) > 0.25:
            total -= arms[k].pulls[0]
    before = arms[0].record(x)
    kept = arms[0].best
    last = arms[0].record(total)
    return total, before[0] + last[0], kept[0] + arms[0].best[0], arms[1].pulls[1] - arms[2].mean


def batch(rng, lanes):
    return rng.random(lanes).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)
