"""Patterns of dicts, of objects, and with what is left of a sequence."""

from dataclasses import dataclass

import numpy as np

import pcbatch


@dataclass
class Point:
    x: float
    y: float


@pcbatch.autobatch
def of_dicts(x):
    match {"op": "add", "x": x, "y": 2.0}:
        case {"op": "sub", "x": a}:
            return a
        case {"op": "add", "x": a, **rest}:
            return a + rest["y"]
    return 0.0


@pcbatch.autobatch
def of_numbers_in_dicts(x):
    match {"x": x}:
        case {"x": 1.0}:
            return 10.0
        case {"x": a}:
            return a
    return 0.0


@pcbatch.autobatch
def of_objects(x):
    match Point(x, 2.0):
        case Point(x=1.0, y=b):
            return b
        case Point(a, b):
            return a + b
    return 0.0


@pcbatch.autobatch
def of_sequences(x):
    match [x, x + 1.0, x + 2.0]:
        case [1.0, *rest]:
            return rest[0] + len(rest)
        case [first, *_, last]:
            return first * last
    return 0.0


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(["of_dicts", "of_numbers_in_dicts", "of_objects", "of_sequences"], X)
