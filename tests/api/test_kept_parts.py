"""A part of an object that has a name of its own, while a method or an attribute changes the object."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

import pcbatch

X = np.array([1.0, 2.0, 3.0], np.float32)


@dataclasses.dataclass
class Deck:
    total: float = 0.0
    rows: list = dataclasses.field(default_factory=lambda: [0.0, 5.0])

    @property
    def upper(self):
        return self.rows

    def move(self, x):
        self.total += x

    def put(self, x):
        self.rows[0] += x

    def renew(self, x):
        self.rows = [x, x]

    def put_some(self, x):
        if x > 1.5:
            self.rows[0] += x
        return self.total


def kept_while_a_method_puts(x):
    d = Deck()
    rows = d.rows
    d.put(x)
    return rows[0] + d.total


def kept_by_its_maker(x):
    rows = [0.0, 5.0]
    d = Deck(0.0, rows)
    d.put(x)
    return rows[0] + d.total


def kept_by_another_object(x):
    d = Deck()
    e = Deck(1.0, d.rows)
    d.put(x)
    return e.rows[0] + d.rows[0]


def kept_by_a_helper_of_the_program(x):
    def changed(d):
        d.put(x)
        return d.total if x > 1.5 else 0.0

    d = Deck()
    rows = d.rows
    y = changed(d)
    return rows[0] + y


def kept_while_a_method_branches(x):
    d = Deck()
    rows = d.rows
    y = d.put_some(x)
    return rows[0] + y


def kept_by_a_property(x):
    d = Deck()
    rows = d.upper
    y = d.put_some(x)
    return rows[0] + y


def put_while_the_object_is_read(x):
    d = Deck()
    rows = d.rows
    rows[0] += x
    return d.total + d.rows[0]


def kept_while_the_total_moves(x):
    d = Deck()
    rows = d.rows
    d.move(x)
    d.total += x
    return rows[0] + d.total


def kept_while_the_rows_are_others(x):
    d = Deck()
    rows = d.rows
    d.renew(x)
    return rows[1] + d.rows[0]


def kept_by_a_property_while_the_total_moves(x):
    d = Deck()
    rows = d.upper
    d.total = x
    return rows[1] + d.total


def kept_as_a_copy(x):
    d = Deck()
    rows = copy.copy(d.rows)
    d.put(x)
    return rows[0] + d.rows[0]


def kept_and_not_read(x):
    d = Deck()
    rows = d.rows
    y = rows[1]
    d.put(x)
    return y + d.rows[0]


def kept_while_another_object_puts(x):
    d, e = Deck(), Deck()
    rows = d.rows
    e.put(x)
    return rows[0] + e.rows[0]


@pytest.mark.parametrize(
    "function",
    [
        kept_while_a_method_puts,
        kept_by_its_maker,
        kept_by_another_object,
        kept_by_a_helper_of_the_program,
        kept_while_a_method_branches,
        kept_by_a_property,
        put_while_the_object_is_read,
        kept_while_the_total_moves,
        kept_while_the_rows_are_others,
        kept_by_a_property_while_the_total_moves,
        kept_as_a_copy,
        kept_and_not_read,
        kept_while_another_object_puts,
    ],
    ids=lambda function: function.__name__,
)
def test_a_kept_part_shows_what_it_shows_in_python(function):
    np.testing.assert_array_equal(pcbatch.autobatch(function)(X), [function(float(x)) for x in X])
