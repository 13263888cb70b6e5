"""Static methods and methods of classes that branch, by an object that is made for each lane, and by the class."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "float32", "float32")


class Account:
    rate = 0.25

    def __init__(self, money):
        self.money = money
        self.calls = 0

    @staticmethod
    def fee(x):
        if x > 1.5:
            return 0.5 * x
        return 0.75

    @staticmethod
    def halved(x, least=1.0):
        if x < least:
            return x
        return Account.halved(0.5 * x, least) + 1.0

    @classmethod
    def taxed(cls, x):
        if x > 1.0:
            return x * cls.rate
        return x

    @classmethod
    def opened(cls, x):
        if x > 1.5:
            return cls(x)
        return cls(1.0)

    def pays(self, x):
        self.calls += 1
        if self.money > x:
            self.money -= x + self.fee(x)
        return self.taxed(self.money) + self.halved(x)


class Savings(Account):
    rate = 0.5

    @classmethod
    def taxed(cls, x):
        if x > 2.0:
            return x
        return cls.rate * cls.halved(x)


KEPT = Savings(2.0)


def paid(account, x):
    return account.fee(account.taxed(x)) + Account.fee(x)


@pcbatch.autobatch
def methods_of_classes(x, n):
    account, savings = Account(x), Savings(2.0 * x)
    y = account.fee(x) + savings.taxed(account.halved(4.0 * x, least=0.5))
    for _ in range(n):
        y += account.pays(0.25 * y) + Account.opened(x).money
    other = savings.opened(y)
    several = [Account(x), Account(y), account]
    z = sum(each.fee(each.money) for each in several) + several[n % 3].taxed(y)
    return y, other.money + other.taxed(x), z + paid(Savings(x), y), KEPT.taxed(x) + KEPT.fee(y) + account.calls


def batch(rng, lanes):
    return 3.0 * rng.random(lanes).astype(np.float32), rng.integers(0, 4, lanes, dtype=np.int32)
