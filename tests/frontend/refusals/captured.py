import collections

import numpy as np
import tensorflow as tf

import pcbatch


class Point:
    def __init__(self, x):
        self.x = x


class Model:
    def __init__(self):
        self.count, self.seen = 0, {}

    @pcbatch.autobatch
    def step(self, state):
        self.count += 1
        return state

    @pcbatch.autobatch
    def remember(self, state):
        self.seen["all"] = state
        return state

    @pcbatch.autobatch
    def forget(self, state):
        del self.seen["all"]
        return state


ORIGIN, TABLE, SEEN, QUEUE = Point(0.0), [1.0, 2.0], {1}, collections.deque([1])
WEIGHTS, STATE, MODEL = np.zeros(3, np.float32), tf.Variable(0.0), Model()


@pcbatch.autobatch
def an_attribute(x):
    home = ORIGIN
    home.x = x
    return x


@pcbatch.autobatch
def an_element(x):
    TABLE[0] = x
    return x


@pcbatch.autobatch
def an_append(x):
    TABLE.append(x)
    return x


@pcbatch.autobatch
def a_member(x):
    SEEN.add(2)
    return x


@pcbatch.autobatch
def a_queue(x):
    QUEUE.append(2)
    return x


@pcbatch.autobatch
def an_array(x):
    WEIGHTS[0] = x
    return x


@pcbatch.autobatch
def a_variable(x):
    STATE.assign_add(x)
    return x


@pcbatch.autobatch
def a_new_variable(x):
    return x + tf.Variable(x)


X = (np.ones(2, np.float32),)
ARGUMENTS = {
    "MODEL.step": X,
    "MODEL.remember": X,
    "MODEL.forget": X,
    "an_attribute": X,
    "an_element": X,
    "an_append": X,
    "a_member": X,
    "a_queue": X,
    "an_array": X,
    "a_variable": X,
    "a_new_variable": X,
}
