"""A comprehension that becomes a loop is told what is wrong with the loop, not that it could not be traced."""

import numpy as np

import pcbatch

BATCH = (np.ones((2, 8)), np.array([3, 5], np.int32))


@pcbatch.autobatch
def untraced(prices, window):
    best = 0.0
    for t in range(window, len(prices)):
        mean = sum(prices[t - k] for k in range(1, window + 1)) / window
        best = max(best, mean)
    return best
