"""Methods: recursion through `self`, objects within objects, attributes that are arrays, a static method."""

import dataclasses

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)


class Layer:
    """An array and a number; `apply` calls itself."""

    def __init__(self, weight, depth):
        self.weight = np.float32(weight)
        self.depth = depth

    @pcbatch.autobatch
    def apply(self, x, n):
        if n >= self.depth:
            return x
        for w in self.weight:
            x = x + self.clipped(x * w)
        return self.apply(x * 0.5, n + 1)

    def clipped(self, x):
        return tf.clip_by_value(x, -1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Net:
    """Two layers."""

    first: Layer
    second: Layer

    @pcbatch.autobatch
    def run(self, x, n):
        y = self.first.apply(x, n) if n > 0 else self.second.apply(x, n)
        return self.half(y) + self.second.apply(y, n=n + 1)

    @pcbatch.autobatch
    @staticmethod
    def half(x):
        return x / 2.0


NET = Net(Layer([1.0, -0.5], 2), Layer([0.25, 2.0, -1.0], 3))


@pcbatch.autobatch
def method_calls(x, n):
    return NET.run(x, n) - NET.half(x)


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(-1, 4, lanes, dtype=np.int32)


def twin(x, n):
    def apply(layer, x, n):
        while n < layer.depth:
            for w in layer.weight:
                x = x + min(max(x * float(w), -1.0), 1.0)
            x, n = x * 0.5, n + 1
        return x

    y = apply(NET.first if n > 0 else NET.second, x, n)
    return y / 2 + apply(NET.second, y, n + 1) - x / 2
