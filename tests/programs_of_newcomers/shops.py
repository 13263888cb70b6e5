"""Accounts, stocks, queues and markets."""

import heapq
from collections import Counter, defaultdict, namedtuple
from dataclasses import dataclass, replace

import numpy as np

import pcbatch
from pcbatch import random


class Overdrawn(Exception):
    pass


@dataclass
class Account:
    balance: float
    limit: float
    fees: float = 0.0

    def withdraw(self, amount):
        if self.balance - amount < -self.limit:
            raise Overdrawn("over the limit")
        self.balance -= amount
        if self.balance < 0:
            self.fees += 1.0

    def deposit(self, amount):
        self.balance += amount


class Bank:
    def __init__(self, balances, limit):
        self.accounts = [Account(balance, limit) for balance in balances]

    def transfer(self, source, target, amount):
        payer, payee = self.accounts[source], self.accounts[target]
        if payer is payee or payer.balance + payer.limit < amount:
            return False
        payer.withdraw(amount)
        payee.deposit(amount)
        return True

    @property
    def total(self):
        return sum(account.balance for account in self.accounts)


@pcbatch.autobatch
def bank(balances, orders):
    """Transfers (from, to, amount) between accounts with overdrafts."""
    books = Bank(balances, 50.0)
    refused = 0
    for source, target, amount in orders:
        if not books.transfer(source, target, amount):
            refused += 1
    return [a.balance for a in books.accounts], refused, books.total, [a.fees for a in books.accounts]


@pcbatch.autobatch
def inventory(demand, reorder_level, order_size):
    """A shop that orders when its stock is low; goods come two days later."""
    stock = 20
    on_the_way = []
    lost = 0
    cost = 0.0
    for day, wanted in enumerate(demand):
        arrived = [amount for due, amount in on_the_way if due <= day]
        on_the_way = [(due, amount) for due, amount in on_the_way if due > day]
        stock += sum(arrived)
        sold = min(stock, wanted)
        lost += wanted - sold
        stock -= sold
        if stock < reorder_level and not on_the_way:
            on_the_way.append((day + 2, order_size))
            cost += 5.0 + 0.5 * order_size
    return stock, lost, cost


Patient = namedtuple("Patient", ["urgency", "arrival", "length"])


@pcbatch.autobatch
def hospital(urgencies, lengths, doctors):
    """Patients arrive one a minute; the most urgent one is seen next. The mean and the longest wait."""
    waiting = []
    free_at = [0] * 3
    waits = []
    minute = 0
    arrived = 0
    while arrived < len(urgencies) or waiting:
        if arrived < len(urgencies):
            heapq.heappush(waiting, Patient(-urgencies[arrived], minute, lengths[arrived]))
            arrived += 1
        for d in range(doctors):
            if free_at[d] <= minute and waiting:
                patient = heapq.heappop(waiting)
                waits.append(minute - patient.arrival)
                free_at[d] = minute + patient.length
        minute += 1
    return sum(waits) / len(waits), max(waits), minute


@dataclass(frozen=True)
class Order:
    price: float
    amount: int


@pcbatch.autobatch
def order_matching(prices, amounts):
    """Sells are negative amounts. What was traded, at which cost, and what is left in the book."""
    buys, sells = [], []
    traded, turnover = 0, 0.0
    for price, amount in zip(prices, amounts):
        order = Order(price, abs(amount))
        if amount > 0:
            while sells and order.amount > 0 and sells[0].price <= order.price:
                best = sells[0]
                filled = min(best.amount, order.amount)
                traded += filled
                turnover += filled * best.price
                order = replace(order, amount=order.amount - filled)
                if filled == best.amount:
                    sells.pop(0)
                else:
                    sells[0] = replace(best, amount=best.amount - filled)
            if order.amount > 0:
                buys.append(order)
                buys.sort(key=lambda o: -o.price)
        elif amount < 0:
            while buys and order.amount > 0 and buys[0].price >= order.price:
                best = buys[0]
                filled = min(best.amount, order.amount)
                traded += filled
                turnover += filled * best.price
                order = replace(order, amount=order.amount - filled)
                if filled == best.amount:
                    buys.pop(0)
                else:
                    buys[0] = replace(best, amount=best.amount - filled)
            if order.amount > 0:
                sells.append(order)
                sells.sort(key=lambda o: o.price)
    return traded, turnover, sum(o.amount for o in buys), sum(o.amount for o in sells)


@pcbatch.autobatch
def auction(key, values, reserve):
    """A second-price auction over rounds: who won how often, and what was paid."""
    wins = Counter()
    paid = defaultdict(float)
    for round_key in random.split(key, 5):
        noise = random.normal(round_key, (len(values),))
        bids = [value + 0.5 * float(e) for value, e in zip(values, noise)]
        ranked = sorted(range(len(bids)), key=lambda i: bids[i], reverse=True)
        first, second = ranked[0], ranked[1]
        if bids[first] < reserve:
            continue
        wins[first] += 1
        paid[first] += max(bids[second], reserve)
    best = max(wins.values()) if wins else 0
    return len(wins), best, sum(paid.values())


PROGRAMS = {
    "bank": (
        bank,
        np.array([[100.0, 20.0, 0.0], [10.0, 10.0, 10.0], [0.0, 0.0, 500.0], [60.0, 0.0, 5.0]]),
        np.array(
            [
                [[0, 1, 120], [1, 2, 30], [2, 0, 90]],
                [[0, 0, 5], [1, 0, 60], [1, 2, 1]],
                [[2, 1, 499], [1, 0, 3], [0, 2, 53]],
                [[0, 2, 70], [2, 1, 20], [1, 0, 71]],
            ]
        ),
    ),
    "inventory": (
        inventory,
        np.array(
            [
                [5, 9, 4, 8, 12, 3, 0, 7],
                [0, 0, 0, 1, 0, 0, 0, 0],
                [20, 20, 20, 0, 0, 20, 20, 1],
                [3, 3, 3, 3, 3, 3, 3, 3],
            ]
        ),
        [8, 5, 15, 18],
        [20, 10, 30, 4],
    ),
    "hospital": (
        hospital,
        np.array([[1, 5, 2, 4, 3], [1, 1, 1, 1, 1], [5, 4, 3, 2, 1], [2, 9, 2, 9, 2]]),
        np.array([[3, 2, 4, 1, 1], [5, 5, 5, 5, 5], [1, 1, 1, 1, 1], [9, 1, 3, 2, 4]]),
        [1, 2, 1, 3],
    ),
    "order_matching": (
        order_matching,
        np.array([[10.0, 9.0, 11.0, 9.5], [5.0, 6.0, 7.0, 7.5], [3.0, 2.0, 2.5, 4.0], [8.0, 8.0, 8.0, 8.0]]),
        np.array([[5, -3, 4, -10], [-2, -2, -2, 5], [1, 2, -4, -4], [-5, 3, 3, -1]]),
    ),
    "auction": (
        auction,
        random.keys(5, 4),
        np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [4.0, 0.5, 3.9], [0.2, 0.1, 0.0]]),
        [1.5, 1.0, 4.5, 0.0],
    ),
}
