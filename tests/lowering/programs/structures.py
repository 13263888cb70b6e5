"""Tuples, dicts and named tuples are values of one fixed structure, through branches, loops and calls."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

import pcbatch


class Point(NamedTuple):
    x: tf.Tensor
    speed: tf.Tensor


BATCH = (
    Point(np.array([1.0, 2.0], np.float32), np.ones((2, 3), np.float32)),
    {"left": np.array([3, 4], np.int32)},
)


@pcbatch.autobatch
def structures(point, turns):
    left = turns["left"]
    trail = (0, 0.0)
    while left > 0:
        point = Point(point.x + tf.reduce_sum(point.speed), point.speed)
        trail = (left, point.x)
        left = left - 1
    return {"point": point, "trail": trail}
