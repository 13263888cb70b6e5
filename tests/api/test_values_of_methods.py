"""Methods that change their object and give a value: what that has of the object, and what the object has then."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

X = np.array([1.0, 2.0, 3.0], np.float32)


class Deck:
    def __init__(self):
        self.total = 0.0
        self.rows = [0.0, 5.0]
        self.old = [1.0, 2.0]

    def put(self, x):
        self.rows[0] += x

    def update(self, x):
        self.rows[0] += x

    def reverse(self, rows):
        self.rows = rows

    def pop(self):
        return self.rows.pop()

    def put_get(self, x):
        self.rows[0] += x
        return self.rows[0]

    def counted(self):
        self.total += 1.0
        return self.rows

    def described(self):
        self.total += 1.0
        return {"rows": [self.rows], "total": self.total}

    def flushed(self):
        rows = self.rows
        self.rows = [7.0]
        return rows

    def made(self, x):
        self.rows = [x, x]
        return self.rows

    def itself(self):
        self.total += 1.0
        return self

    def step(self, x):
        self.old = self.rows
        self.rows = [self.old[0] + x, 5.0]

    def swapped(self):
        self.old, self.rows = self.rows, self.old
        return 1.0

    def __iadd__(self, x):
        self.rows[0] += x
        return self


def a_part_is_given(x):
    d = Deck()
    rows = d.counted()
    d.put(x)
    return rows[0] + d.total


def a_part_in_a_part_is_given(x):
    d = Deck()
    found = d.described()
    d.put(x)
    return found["rows"][0][0]


def a_part_in_a_part_is_stored_into(x):
    d = Deck()
    found = d.described()
    found["rows"][0][0] = x
    return d.rows[0]


def a_new_part_is_given(x):
    d = Deck()
    rows = d.made(x)
    d.put(x)
    return rows[0]


def the_object_is_given(x):
    d = Deck()
    e = d.itself()
    e.put(x)
    return d.rows[0]


def what_is_given_has_a_name(x):
    d = Deck()
    rows = d.rows
    given = d.counted()
    given[0] = x
    return rows[0]


def what_was_there_has_a_name(x):
    d = Deck()
    rows = d.rows
    given = d.flushed()
    given[0] = x
    return rows[0]


def a_part_has_moved(x):
    d = Deck()
    rows = d.rows
    d.step(x)
    d.old[0] = x
    return rows[0]


def parts_have_changed_places(x):
    d = Deck()
    rows = d.rows
    y = d.swapped()
    d.old[0] = 9.0
    return rows[0] + y


def a_method_is_called_as_one_of_dicts(x):
    d = Deck()
    rows = d.rows
    d.update(x)
    return rows[0]


def a_method_is_called_as_one_of_lists(x):
    d = Deck()
    rows = d.rows
    y = d.pop()
    return y + len(rows)


def an_argument_is_kept_by_a_method_that_is_called_as_one_of_lists(x):
    d = Deck()
    rows = [x, x]
    d.reverse(rows)
    rows[0] = 9.0
    return d.rows[0]


def an_operator_changes_a_part(x):
    d = Deck()
    rows = d.rows
    d += x
    return rows[0]


def changed_in_one_expression(x):
    d = Deck()
    pair = (d.rows, d.put_get(x))
    return pair[0][0] + pair[1]


def numbers_are_given(x):
    d = Deck()
    y = d.put_get(1.0) + 10.0 * d.put_get(x)
    d.put(x)
    return y + d.rows[0]


def numbers_are_given_in_a_loop(x):
    d = Deck()
    pairs = [d.put_get(x), d.put_get(x)]
    y = pairs[0]
    while y < 20.0:
        y += d.put_get(x) * d.put_get(1.0)
    return y + d.rows[0]


def another_part_is_given(x):
    d = Deck()
    found = d.described()
    d.step(x)
    d.old = [3.0]
    d.total += x
    return found["total"] + found["rows"][0][1] + d.total


def what_was_there_is_given(x):
    d = Deck()
    rows = d.flushed()
    d.put(x)
    rows[0] = x
    return rows[0] + 10.0 * d.rows[0]


def the_part_before_a_step(x):
    d = Deck()
    y = 0.0
    for _ in range(3):
        before = d.rows
        d.step(x)
        d.put(1.0)
        y += d.rows[0] - before[0]
    return y


def popped_and_put(x):
    d = Deck()
    y = d.pop()
    d.put(x)
    return y + d.rows[0]


def an_operator_in_a_loop(x):
    d = Deck()
    while d.rows[0] < 5.0:
        d += x
    return d.rows[0]


def a_slice_is_a_copy(x):
    d = Deck()
    rows = d.rows[:]
    d.put(x)
    return rows[0] + d.rows[0]


@pytest.mark.parametrize(
    "function",
    [
        a_part_is_given,
        a_part_in_a_part_is_given,
        a_part_in_a_part_is_stored_into,
        a_new_part_is_given,
        the_object_is_given,
        what_is_given_has_a_name,
        what_was_there_has_a_name,
        a_part_has_moved,
        parts_have_changed_places,
        a_method_is_called_as_one_of_dicts,
        a_method_is_called_as_one_of_lists,
        an_argument_is_kept_by_a_method_that_is_called_as_one_of_lists,
        an_operator_changes_a_part,
        changed_in_one_expression,
        numbers_are_given,
        numbers_are_given_in_a_loop,
        another_part_is_given,
        what_was_there_is_given,
        the_part_before_a_step,
        popped_and_put,
        an_operator_in_a_loop,
        a_slice_is_a_copy,
    ],
    ids=lambda function: function.__name__,
)
def test_a_change_shows_where_it_does_in_python(function):
    np.testing.assert_array_equal(pcbatch.autobatch(function)(X), [function(float(x)) for x in X])


def test_one_call_of_objects_and_of_lists():
    """What is known of a call where it is one of an object is not taken for true where it is one of a list."""

    @pcbatch.autobatch
    def both(x):
        def last(c):
            y = c.pop()
            z = c.pop()
            return y[0] + 10.0 * z[0]

        rows = Rows(x)
        return last(rows) + 100.0 * last([[x], [2.0 * x]])

    np.testing.assert_array_equal(both(X), [both.single(x) for x in X])


class Rows:
    def __init__(self, x):
        self.rows = [[x], [3.0 * x]]

    def pop(self):
        return self.rows.pop()
