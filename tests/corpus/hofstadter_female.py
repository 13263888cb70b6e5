"""Mutual recursion that is not in tail position, each function calling the other with its own result."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def male(n):
    if n == 0:
        return 0
    return n - hofstadter_female(male(n - 1))


@pcbatch.autobatch
def hofstadter_female(n):
    if n == 0:
        return 1
    return n - male(hofstadter_female(n - 1))


def batch(rng, lanes):
    return (rng.integers(0, 8, lanes, dtype=np.int32),)


def twin(n):
    female, male_ = [1], [0]
    for k in range(1, n + 1):
        male_.append(k - female[male_[k - 1]])
        female.append(k - male_[female[k - 1]])
    return female[n]
