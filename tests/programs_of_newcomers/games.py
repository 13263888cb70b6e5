"""Games and machines with states."""

from dataclasses import dataclass, field
from enum import Enum, IntEnum

import numpy as np

import pcbatch
from pcbatch import random

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def winner(board):
    for a, b, c in LINES:
        if board[a] != 0 and board[a] == board[b] == board[c]:
            return board[a]
    return 0


@pcbatch.autobatch
def tic_tac_toe(board, player):
    """The value of a position for `player`, by looking at every continuation on the one board."""
    won = winner(board)
    if won != 0:
        return 1 if won == player else -1

    def value(who):
        last = winner(board)
        if last != 0:
            return 1 if last == who else -1
        if all(cell != 0 for cell in board):
            return 0
        best = -2
        for place in range(9):
            if board[place] == 0:
                board[place] = who
                best = max(best, -value(-who))
                board[place] = 0
                if best == 1:
                    break
        return best

    return value(player)


@pcbatch.autobatch
def grundy(heaps, moves):
    """The nim sum of heaps from which one may take the numbers in `moves`."""
    largest = 16
    values = np.zeros(largest, dtype=np.int64)
    for size in range(1, largest):
        reachable = set()
        for move in moves:
            if move <= size:
                reachable.add(values[size - move])
        mex = 0
        while mex in reachable:
            mex += 1
        values[size] = mex
    total = 0
    for heap in heaps:
        total ^= values[heap]
    return total, total != 0


class Square(Enum):
    PLAIN = 0
    JAIL = 1
    TAX = 2
    BONUS = 3


BOARD = [Square.PLAIN, Square.TAX, Square.PLAIN, Square.BONUS, Square.JAIL, Square.PLAIN, Square.TAX, Square.BONUS]


@pcbatch.autobatch
def board_walk(key, turns):
    """A player's money after some turns around a board, and how often it was in jail."""
    place, money, jailed = 0, 100.0, 0
    square = Square.PLAIN
    for turn in range(turns):
        die = random.randint(random.fold_in(key, turn), (), 1, 7)
        if square is Square.JAIL and die < 4:
            continue
        place += die
        if place >= len(BOARD):
            place -= len(BOARD)
            money += 20.0
        square = BOARD[place]
        if square is Square.TAX:
            money *= 0.9
        elif square is Square.BONUS:
            money += 5.0 * die
        elif square is Square.JAIL:
            jailed += 1
    return place, money, jailed


class VendingMachine:
    prices = {"tea": 3, "coffee": 5}

    def __init__(self):
        self.state = "idle"
        self.credit = 0
        self.sold = {"tea": 0, "coffee": 0}

    def insert(self, coin):
        self.credit += coin
        self.state = "has money"

    def choose(self, drink):
        if self.state == "idle":
            return 0
        price = self.prices[drink]
        if self.credit < price:
            return 0
        self.sold[drink] += 1
        change = self.credit - price
        self.credit = 0
        self.state = "idle"
        return change


@pcbatch.autobatch
def vending(events):
    """Coins are positive numbers; 0 asks for tea and -1 for coffee."""
    machine = VendingMachine()
    returned = []
    for event in events:
        if event > 0:
            machine.insert(event)
        else:
            change = machine.choose("tea" if event == 0 else "coffee")
            if change:
                returned.append(change)
    return machine.sold, sum(returned), len(returned), machine.state == "idle"


class Direction(IntEnum):
    DOWN = -1
    STILL = 0
    UP = 1


@dataclass
class Car:
    floor: int
    direction: Direction = Direction.STILL
    travelled: int = 0
    stops: list = field(default_factory=list)

    def step(self):
        if not self.stops:
            self.direction = Direction.STILL
            return
        target = self.stops[0]
        if self.floor == target:
            self.stops.pop(0)
            self.direction = Direction.STILL
        else:
            self.direction = Direction.UP if target > self.floor else Direction.DOWN
            self.floor += self.direction
            self.travelled += 1


@pcbatch.autobatch
def elevators(calls, ticks):
    """Two cars; each call goes to the nearer one."""
    bank = [Car(0), Car(9)]
    for call in calls:
        nearest = min(bank, key=lambda car: abs(car.floor - call) + 3 * len(car.stops))
        nearest.stops.append(call)
        for _ in range(ticks):
            for car in bank:
                car.step()
    return [car.floor for car in bank], sum(car.travelled for car in bank), bank[0].direction is Direction.UP


PROGRAMS = {
    "tic_tac_toe": (
        tic_tac_toe,
        np.array(
            [
                [1, 1, 0, -1, -1, 0, 0, 0, 0],
                [1, -1, 1, 0, -1, 0, 0, 0, 0],
                [1, -1, 1, -1, 1, -1, 0, 0, 0],
                [1, 0, 0, 0, -1, 0, 0, 0, 1],
            ]
        ),
        [1, 1, -1, -1],
    ),
    "grundy": (
        grundy,
        np.array([[3, 5, 7], [1, 1, 1], [10, 4, 15], [2, 2, 0]]),
        np.array([[1, 2, 3], [1, 3, 4], [2, 5, 7], [1, 2, 2]]),
    ),
    "board_walk": (board_walk, random.keys(3, 4), [5, 12, 0, 20]),
    "vending": (
        vending,
        np.array([[2, 2, 0, 5, -1, 1], [5, -1, 5, 0, -1, 2], [1, 0, -1, 9, 0, 0], [3, 0, 3, -1, 4, -1]]),
    ),
    "elevators": (elevators, np.array([[3, 8, 1], [9, 0, 5], [4, 4, 4], [7, 6, 2]]), [2, 4, 1, 3]),
}
