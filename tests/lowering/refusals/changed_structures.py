"""What cannot change: frozen records, tuples, arrays, unknown fields, lists by lane, what a call changes on the way."""

import collections
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass(frozen=True)
class Fixed:
    x: Any


@dataclasses.dataclass
class Player:
    money: Any

    def lend(self, other, money):
        other.money += money
        self.money -= money
        return self.money

    @pcbatch.autobatch
    def win(self, bet):
        return dataclasses.replace(self, money=self.money + bet)


def doubled(p):
    p.money *= 2.0
    return p.money


@pcbatch.autobatch
def frozen(x, n):
    fixed = Fixed(x)
    fixed.x = 1.0
    return fixed.x


@pcbatch.autobatch
def named_tuple(x, n):
    pair = Pair(x, x)
    pair.a = 1.0
    return pair.a


@pcbatch.autobatch
def plain_tuple(x, n):
    both = (x, x)
    both[0] = 1.0
    return both


@pcbatch.autobatch
def attribute_of_dict(x, n):
    d = {"x": x}
    d.x = 1.0
    return d


@pcbatch.autobatch
def append_to_array(x, n):
    a = tf.zeros([3])
    a.append(x)
    return a


@pcbatch.autobatch
def attribute_of_array(x, n):
    a = tf.zeros([3])
    a.x = x
    return a


@pcbatch.autobatch
def pop_too_far(x, n):
    xs = [x]
    xs.pop(3)
    return xs


@pcbatch.autobatch
def store_too_far(x, n):
    xs = [x]
    xs[5] = x
    return xs


BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))
ARGUMENTS = dict.fromkeys(
    [
        "frozen",
        "named_tuple",
        "plain_tuple",
        "attribute_of_dict",
        "append_to_array",
        "attribute_of_array",
        "pop_too_far",
        "store_too_far",
    ],
    BATCH,
)
