"""What cannot change: frozen records, tuples, arrays, unknown fields, lists by lane, what a call changes on the way."""

import collections
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))
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
def changed_structures(x, n):
    p = Player(x)
    if n > 0:
        fixed = Fixed(x)
        fixed.x = 1.0
    if n > 1:
        pair = Pair(x, x)
        pair.a = 1.0
    if n > 2:
        both = (x, x)
        both[0] = 1.0
    if n > 3:
        p.mony = 1.0
    if n > 4:
        d = {"x": x}
        d.x = 1.0
    if n > 5:
        a = tf.zeros([3])
        a.append(x)
    if n > 6:
        a = tf.zeros([3])
        a.x = x
    if n > 7:
        xs = [x, x]
        xs[n] = 1.0
    if n > 8:
        xs = [x, x]
        xs.remove(x)
    if n > 9:
        xs = [x, x]
        xs.insert(n, x)
    if n > 10:
        d = {"x": x}
        d[0] = x
    if n > 11:
        q = Player(x)
        p.money = p.lend(q, 1.0)
    if n > 12:
        p.money = doubled(p)
    if n > 13:
        p.win(1.0)
    if n > 14:
        many = pcbatch.bounded([], tf.float32, 4)
        many.extend([x, x])
    if n > 15:
        d = {"x": x}
        d.get("x")
    if n > 16:
        xs = [x]
        xs.pop(3)
    if n > 17:
        xs = [x, x]
        xs[0:1] = [x]
    while n > 18:
        xs = [x]
        xs[5] = x
        many = pcbatch.bounded([2], tf.float32, 4)
        many.append(n)
        n -= 1
    return p.money
