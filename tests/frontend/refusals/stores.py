from typing import NamedTuple

import numpy as np

import pcbatch


class Pair(NamedTuple):
    x: float
    y: float


@pcbatch.autobatch
def into_a_tuple(x):
    pair = (x, x)
    pair[0] = 1.0
    return pair[0]


@pcbatch.autobatch
def into_a_named_tuple(x):
    pair = Pair(x, x)
    pair.x = 1.0
    return pair.x


@pcbatch.autobatch
def an_attribute_of_a_number(x):
    x.y = 1.0
    return x


@pcbatch.autobatch
def at_a_new_axis(a):
    a[None] = 1.0
    return a


@pcbatch.autobatch
def at_too_many_axes(a):
    a[0, 0] = 1.0
    return a


@pcbatch.autobatch
def at_a_float(a):
    a[a[0]] = 1.0
    return a


@pcbatch.autobatch
def a_fraction_into_ints(n):
    n[0] = 0.5
    return n


@pcbatch.autobatch
def beyond_a_list(x):
    xs = [x, x]
    xs[2] = x
    return xs[0]


@pcbatch.autobatch
def an_unknown_key(x):
    return {"a": x}["b"]


@pcbatch.autobatch
def deleted(x):
    y = x
    del y
    return y


A = (np.ones([2, 3], np.float32),)


@pcbatch.autobatch
def one_of_two(a, x):
    b = a
    if x > 0.0:
        b = a * 2.0
    a[0, 0] = 1.0
    return a + b


X = (np.ones(2, np.float32),)
ARGUMENTS = {
    "into_a_tuple": X,
    "into_a_named_tuple": X,
    "an_attribute_of_a_number": X,
    "at_a_new_axis": A,
    "at_too_many_axes": A,
    "at_a_float": A,
    "a_fraction_into_ints": (np.ones([2, 3], np.int32),),
    "beyond_a_list": X,
    "an_unknown_key": X,
    "deleted": X,
    "one_of_two": (*A, *X),
}
