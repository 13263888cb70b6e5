import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def g(x):
    return x


@pcbatch.autobatch
def no_bounds(x):
    for i, _ in enumerate(range()):
        x += i
    return x


@pcbatch.autobatch
def by_name(x):
    for i in range(stop=3):
        x += i
    return x


@pcbatch.autobatch
def no_step(x):
    for i in range(0, 5, 0):
        x += i
    return x


@pcbatch.autobatch
def fractions(x):
    for i in range(x):
        x += i
    return x


@pcbatch.autobatch
def several_lengths(x):
    for i, _ in zip([1, 2], [1, 2, 3], strict=True):
        x += i
    return x


@pcbatch.autobatch
def reversed_pairs(x):
    for i, _ in reversed(enumerate([1, 2])):
        x += i
    return x


@pcbatch.autobatch
def pairs_of_numbers(x):
    for i, _ in range(3):
        x += i
    return x


@pcbatch.autobatch
def a_number(x):
    for i in x:
        x += i
    return x


@pcbatch.autobatch
def a_generator_twice(x):
    found = (y for y in [x, x + 1])
    return sum(found) if any(y > 1 for y in [x]) and any(found) else x + sum(found)


@pcbatch.autobatch
def an_iterator(x):
    it = iter([x, x])
    return next(it)


@pcbatch.autobatch
def mapped_over_nothing(x):
    return pcbatch.map(g)


@pcbatch.autobatch
def mapped_with_an_option(x):
    return pcbatch.map(g, [x, x], counts=2)


@pcbatch.autobatch
def a_list_in_an_operation(x, n):
    ys = []
    while n > 0:
        ys.append(x)
        n -= 1
    return tf.linalg.det(tf.stack(ys))


X = (np.ones(2, np.float32),)
XN = (np.ones(2, np.float32), np.ones(2, np.int32))
ARGUMENTS = {
    "no_bounds": X,
    "by_name": X,
    "no_step": X,
    "fractions": X,
    "several_lengths": X,
    "reversed_pairs": X,
    "pairs_of_numbers": X,
    "a_number": X,
    "a_generator_twice": X,
    "an_iterator": X,
    "mapped_over_nothing": X,
    "mapped_with_an_option": X,
    "a_list_in_an_operation": XN,
}
