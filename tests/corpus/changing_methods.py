"""Methods that change their object and give a value: in expressions, conditions, loops, elements, functions."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "float32", "float32", "float32", "int32")


class Controller:
    def __init__(self, gain):
        self.gain = gain
        self.memory = {"sum": 0.0, "last": 0.0}
        self.calls = 0

    def control(self, error):
        self.memory["sum"] += error
        slope = error - self.memory["last"]
        self.memory["last"] = error
        self.calls += 1
        return self.gain * error + 0.5 * self.memory["sum"] + 0.25 * slope

    @property
    def total(self):
        return self.memory["sum"] * 2.0


@pcbatch.autobatch
def changing_methods(x, n):
    pid = Controller(x)
    y = pid.control(1.0) + 10.0 * pid.control(x)
    both = [Controller(0.5), Controller(x)]
    if n > 2 and pid.control(y) > 2.0:
        y -= both[1].control(x)
    while pid.control(-0.5) > 0.0 and pid.calls < 6:
        y = tf.sin(y)

    def settled(start):
        own = Controller(start)
        first = own.control(start)
        return first + own.memory["sum"]

    for i in range(n):
        y += both[0].control(1.0 * i)
    return y, pid.total, both[0].memory["sum"] + both[1].total, settled(x), pid.calls


def batch(rng, lanes):
    return rng.random(lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)
