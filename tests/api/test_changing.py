"""Structures that change, beside the corpus: whose objects stay as they are, and bounded lists in plain Python."""

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError


@dataclasses.dataclass
class Player:
    money: Any
    cards: Any = dataclasses.field(default_factory=list)


class Table:
    def __init__(self, players, pot):
        self.players = players
        self.pot = pot

    def bet(self, seat, amount):
        self.players[seat].money -= amount
        self.pot += amount


@pcbatch.autobatch
def paid(player, amount):
    player.money -= amount
    player.cards.append(amount)
    return player


@pcbatch.autobatch
def kept(player):
    return player


@pcbatch.autobatch
def game(table, amount):
    table.bet(0, amount)
    table.players[1] = paid(table.players[1], amount)
    table.players.append(Player(amount))
    again = kept(copy.copy(table.players[1]))
    again.money = amount * 0.0
    table.pot += again.money
    return table


def two(money):
    return Table([Player(money), Player(money + 1)], money * 0)


def test_the_callers_objects_stay_as_they_are():
    money = np.array([1.0, 2.0, 3.0], np.float32)
    table = two(money)
    result = game(table, np.float32([1.0, 1.0, 0.5]))
    assert isinstance(result, Table)
    np.testing.assert_array_equal(result.pot, [1.0, 1.0, 0.5])
    np.testing.assert_array_equal(result.players[1].money, [1.0, 2.0, 3.5])
    assert [len(table.players), table.players[1].cards] == [2, []]
    np.testing.assert_array_equal(table.players[0].money, money)

    table = two(np.float32(2.0))
    single = game.single(table, 1.0)
    assert [float(single.players[1].money), float(single.pot), len(single.players)] == [2.0, 1.0, 3]
    assert (float(table.players[0].money), table.pot, len(table.players)) == (2.0, 0.0, 2)
    assert table.players[1].cards == []


@pcbatch.autobatch
def collected(x, player=Player(0.0)):  # noqa: B008
    player.money += x
    player.cards.append(x)
    return player


def test_a_default_is_the_same_in_every_call():
    for _ in range(2):
        single = collected.single(2.0)
        assert (float(single.money), len(single.cards)) == (2.0, 1)
        np.testing.assert_array_equal(collected(np.float32([2.0, 5.0])).money, [2.0, 5.0])


@pcbatch.autobatch
def summed(values):
    total = 0.0
    while values:
        total += values.pop()
    values.append(total)
    return values, total


def test_bounded_lists_are_arguments_and_results():
    items = np.zeros([2, 4], np.float32)
    items[0, :3] = [1, 2, 4]
    result, total = summed(pcbatch.Bounded(items, np.array([3, 0], np.int32)))
    assert isinstance(result, pcbatch.Bounded)
    np.testing.assert_array_equal(total, [7.0, 0.0])
    np.testing.assert_array_equal(result.length, [1, 1])
    np.testing.assert_array_equal(result.items[:, 0], [7.0, 0.0])


def test_a_bounded_list_is_a_list_in_plain_python():
    values = pcbatch.bounded(2, "float32", 3)
    assert not values
    for number in range(3):
        values.append([number, 1])
    assert (len(values), bool(values)) == (3, True)
    values[-1] = tf.constant([5.0, 6.0])
    np.testing.assert_array_equal([*values], [[0, 1], [1, 1], [5, 6]])
    np.testing.assert_array_equal(values.pop(), [5, 6])
    values.append([7, 7])
    with pytest.raises(IndexError, match="full"):
        values.append([1, 1])
    with pytest.raises(IndexError, match="index 3 is out of range for a bounded list of 3"):
        values[3]
    with pytest.raises(IndexError, match="out of range"):
        values[-4] = [0, 0]
    values.clear()
    with pytest.raises(IndexError, match="empty"):
        values.pop()


@pytest.mark.parametrize(
    ("shape", "dtype", "capacity"), [([], "float32", 0), ([], "float32", 2.5), ("a", "int32", 1), ([], "no", 1)]
)
def test_bounded_lists_that_cannot_be_made(shape, dtype, capacity):
    with pytest.raises(UsageError, match="PCB554"):
        pcbatch.bounded(shape, dtype, capacity)


def test_a_lane_that_overfills_a_bounded_list_fails_alone():
    @pcbatch.autobatch
    def filled(n):
        values = pcbatch.bounded([], tf.int32, 3)
        for i in range(n):
            values.append(i)
        return values[1], len(values)

    run = filled.run(np.array([2, 4, 3, 1], np.int32))
    assert [int(each) for each in run.status] == [0, pcbatch.LaneStatus.INDEX, 0, pcbatch.LaneStatus.INDEX]
    np.testing.assert_array_equal(run.value[1], [2, 0, 3, 0])
    full, missing = run.errors
    assert full.message == "IndexError: append to a bounded list that is full"
    assert missing.span.line - full.span.line == 1
    assert "out of range" in missing.message


class Seats:
    def __init__(self):
        self.players = []
        self.pot = 0.0
        self.last = None

    def seat(self, player):
        self.players.append(player)

    def note(self, row):
        self.last = row


@pcbatch.autobatch
def unshared(x, n):
    """Objects with several names, none of which Python would show a change by."""
    seats, player = Seats(), Player(x)
    seats.seat(player)
    seats.players[0].money += 1.0
    row = tf.stack([x, 2.0])
    board = Seats()
    board.note(row)
    board.pot += x
    first, second = Player(x), Player(x * 2.0)
    pair = [first, second]
    pair[0], pair[1] = pair[1], pair[0]
    pair[0].money, (pair[1].money, left) = pair[1].money, (x, 5.0)
    seats.players[0] = paid(seats.players[0], 0.5)
    one, other = Player(x), Player(left)
    while n > 0:
        one, other = other, one
        one.money += 1.0
        n -= 1
    copies = [*pair]
    copies.append(Player(left))
    chosen = one if x > 0.0 else other
    chosen.money *= 3.0
    letters = {"a": [x, 1.0]}
    letters["a"][0] = letters["a"].pop() + letters["a"][-1]
    return seats, board, row, pair[0].money + copies[0].money, chosen, letters


def leaves(value):
    if value is None:
        return []
    if tf.is_tensor(value) or (not isinstance(value, list | tuple | dict) and not hasattr(value, "__dict__")):
        return [np.asarray(value)]
    parts = value if isinstance(value, list | tuple) else dict(getattr(value, "__dict__", value)).values()
    return [leaf for part in parts for leaf in leaves(part)]


def test_what_python_would_not_show_is_accepted():
    x, n = np.float32([1.5, -2.0, 0.25]), np.int32([0, 3, 2])
    batch = leaves(unshared(x, n))
    for lane in range(3):
        single = leaves(unshared.single(x[lane], n[lane]))
        assert len(single) == len(batch)
        for leaf, other in zip(batch, single, strict=True):
            np.testing.assert_allclose(leaf[lane], other, rtol=1e-6)
