"""Methods and properties that branch or loop on values of a lane, also ones that change their object."""

import math
from typing import NamedTuple

import numpy as np

import pcbatch

DTYPES = ("float32",) * 5


class Vec(NamedTuple):
    """A point."""

    x: float
    y: float

    def to(self, other):
        """The distance."""
        return math.hypot(other.x - self.x, other.y - self.y)


class Account:
    """Some money."""

    def __init__(self, money):
        self.money = money
        self.__refused = 0.0

    def withdraw(self, amount):
        """What can be had."""
        if amount <= self.money:
            self.money -= amount
            return amount
        self.__refused += 1.0
        return 0.0

    def deposit(self, amount):
        """Only more than nothing."""
        if amount <= 0.0:
            return
        self.money += amount

    @property
    def refused(self):
        """How often there was not enough."""
        if self.__refused > 0.5:
            return 9.0
        return self.__refused


class Bank:
    """Two accounts and one more."""

    def __init__(self, money):
        self.main = Account(10.0)
        self.accounts = [Account(money), Account(2.0 * money)]

    def move(self, to, amount):
        """From the one to another."""
        got = self.main.withdraw(amount)
        self.accounts[to].deposit(got)
        return got


@pcbatch.autobatch
def taken_methods(x, n):
    here, there = Vec(x, 1.0), Vec(0.5, x)
    bank = Bank(x)
    moved = bank.move(n % 2, 4.0)
    bank.accounts[1].withdraw(x)
    return here.to(there), moved, bank.accounts[0].money, bank.accounts[1].money, bank.accounts[1].refused


def batch(rng, lanes):
    return rng.uniform(-3.0, 5.0, lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)
