"""A named tuple through a loop, a branch and a recursion, its fields replaced one by one; one is weak."""

from typing import Any, NamedTuple

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "int32")


class Body(NamedTuple):
    """A thing that moves."""

    place: Any
    speed: Any
    bounces: Any


@pcbatch.autobatch
def rested(body, times):
    if times <= 0:
        return body
    slower = rested(body._replace(speed=body.speed * 0.5), times - 1)
    return Body(slower.place + body.speed, slower.speed, slower.bounces)


@pcbatch.autobatch
def named_tuple_state(place, speed, n):
    body = Body(place, speed, 0)
    for _ in range(n):
        body = body._replace(place=body.place + body.speed)
        if body.place < 0.0:
            body = Body(place=-body.place, speed=-body.speed, bounces=body.bounces + 1)
    body = rested(body, n)
    return body.place, body[1], body.bounces


def batch(rng, lanes):
    place, speed = rng.uniform(0, 2, lanes), rng.normal(size=lanes)
    return place.astype(np.float32), speed.astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(place, speed, n):
    bounces = 0
    for _ in range(n):
        place += speed
        if place < 0:
            place, speed, bounces = -place, -speed, bounces + 1
    return place + sum(speed * 0.5**k for k in range(n)), speed * 0.5**n, bounces
