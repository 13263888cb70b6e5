import math
import operator

import numpy as np

import pcbatch


def caught(n):
    try:
        return 10 // n
    except ZeroDivisionError:
        return 0


@pcbatch.autobatch
def a_fault_that_is_caught(n):
    return caught(n)


calls = 0


def converted(n):
    global calls
    return math.sqrt(n) if n > 0 else 0.0


@pcbatch.autobatch
def a_branch_in_what_is_global(n):
    return converted(n)


def changed(xs):
    try:
        xs[0] = 1
    except IndexError:
        pass


@pcbatch.autobatch
def a_list_that_is_changed(n):
    xs = [n, n]
    changed(xs)
    return xs[0]


class Counter:
    def __init__(self, n):
        self.n = n

    def up(self):
        try:
            self.n += 1
        finally:
            pass


@pcbatch.autobatch
def a_method(n):
    counter = Counter(n)
    counter.up()
    return counter.n


@pcbatch.autobatch
def a_list_of_a_library(n):
    items = [n]
    operator.iconcat(items, [n + 1])
    return items[0]


X = (np.ones(2, np.int32),)
ARGUMENTS = {
    "a_fault_that_is_caught": X,
    "a_branch_in_what_is_global": X,
    "a_list_that_is_changed": X,
    "a_method": X,
    "a_list_of_a_library": X,
}
