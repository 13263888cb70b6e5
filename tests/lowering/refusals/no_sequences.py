"""A loop over what is no sequence is refused once, at what it goes over."""

import numpy as np

import pcbatch

LETTERS = {"a": np.float32(1.0), "b": np.float32(2.0)}


@pcbatch.autobatch
def number(x):
    total = 0.0
    for y in x:
        total = total + y
    return total


@pcbatch.autobatch
def constant(x):
    total = x
    for i in 10:
        total = total + i
    return total


@pcbatch.autobatch
def enumerated(x):
    total = 0.0
    for i, y in enumerate(x * 2.0):
        total = total + y * i
    return total


@pcbatch.autobatch
def zipped(x):
    total = 0.0
    for y, z in zip((x, x), x, strict=True):
        total = total + y + z
    return total


@pcbatch.autobatch
def taken_apart(x):
    total = 0.0
    for y, z in (x, x):
        total = total + y + z
    return total


BATCH = (np.array([1.0, 2.0], np.float32),)
ARGUMENTS = dict.fromkeys(["number", "constant", "enumerated", "zipped", "taken_apart"], BATCH)
