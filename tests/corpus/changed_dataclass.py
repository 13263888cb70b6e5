"""Dataclasses whose attributes change: nested ones, through branches, loops, a call and a recursion."""

import dataclasses
from typing import Any

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "float32", "float32", "float32", "int32")


@dataclasses.dataclass
class Vector:
    """A point, or a speed."""

    x: Any
    y: Any


@dataclasses.dataclass
class Body:
    """What moves."""

    at: Vector
    speed: Vector
    time: Any = 0.0
    bounces: Any = 0


@pcbatch.autobatch
def moved(body, seconds):
    body.at.x += body.speed.x * seconds
    body.at.y += body.speed.y * seconds
    body.time += seconds
    if body.at.y < 0.0:
        body.at.y, body.speed.y = -body.at.y, -body.speed.y
        body.bounces += 1
    return body


@pcbatch.autobatch
def later(body, turns):
    if turns == 0:
        return body
    body = later(body, turns - 1)
    body.speed.y -= 0.5
    return moved(body, 0.5)


@pcbatch.autobatch
def changed_dataclass(x, body, turns):
    body.at.x = x
    body.speed = Vector(x * 0.5, 0.25)
    while body.bounces < 1 and body.time < 1.5:
        body.speed.y -= 0.25
        body = moved(body, 0.5)
    return later(body, turns)


def batch(rng, lanes):
    zeros = np.zeros(lanes, np.float32)
    start = Vector(zeros, rng.uniform(0, 0.5, lanes).astype(np.float32))
    body = Body(start, Vector(zeros, zeros), zeros, np.zeros(lanes, np.int32))
    return rng.normal(size=lanes).astype(np.float32), body, rng.integers(0, 5, lanes, dtype=np.int32)
