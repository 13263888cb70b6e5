"""Objects of a simple class: attributes set, added and changed, methods that change them, a property, inheritance."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32", "float32", "float32", "float32", "float32")


class Account:
    """Some money."""

    def __init__(self, money):
        self.money = money
        self.bookings = 0

    def book(self, amount, fee=0.25):
        """Add an amount."""
        self.money = self.money + amount - fee
        self.bookings += 1

    @property
    def cents(self):
        """The money in cents."""
        return self.money * 100.0

    @cents.setter
    def cents(self, value):
        self.money = value / 100.0


class Savings(Account):
    """Money with interest."""

    def __init__(self, money, rate):
        super().__init__(money)
        self.rate = rate

    def year(self):
        """A year passes."""
        self.book(self.money * self.rate, fee=0.0)


@pcbatch.autobatch
def changed_objects(x, n):
    own = Savings(tf.abs(x), 0.5)
    bank = {"safe": [Account(x), Account(2.0)]}
    for turn in range(n):
        if x > 0.0:
            own.book(float(turn))
        else:
            own.year()
        bank["safe"][0].book(1.0, fee=own.money * 0.125)
    own.last = x
    bank["safe"][1].cents += 50.0
    return own, bank["safe"][0].money, bank["safe"][1].money


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)
