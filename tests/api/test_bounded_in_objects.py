"""Bounded lists that are parts of objects and dicts: taken from, then changed."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = np.array([1.0, 2.0, 3.0], np.float32)


class Todo:
    def __init__(self):
        self.items = pcbatch.bounded((), tf.float32, 4)

    def replaced(self, x):
        last = self.items.pop()
        self.items[0] = last + x
        return last

    def replaced_if_many(self, x):
        last = self.items.pop()
        if len(self.items) == 0:
            return last
        self.items[0] = last + x
        return last


def of_an_object(x):
    todo = Todo()
    todo.items.append(x)
    todo.items.append(2.0)
    last = todo.items.pop()
    todo.items[0] = last + x
    return last + todo.items[0]


def of_a_dict(x):
    work = {"todo": pcbatch.bounded((), tf.float32, 4), "n": 0}
    work["todo"].append(x)
    work["todo"].append(2.0)
    last = work["todo"].pop()
    work["todo"][0] = last + x
    return last + work["todo"][0] + len(work["todo"])


def in_methods(x):
    todo = Todo()
    todo.items.append(x)
    todo.items.append(2.0 * x)
    todo.items.append(0.5)
    y = todo.replaced(x) + todo.replaced_if_many(x)
    return y + todo.replaced_if_many(1.0) + len(todo.items)


def itself(items):
    return items


def given_back(x):
    """A list with two names."""
    items = pcbatch.bounded((), tf.float32, 4)
    items.append(x)
    other = itself(items)
    other.append(2.0)
    return items[-1]


@pytest.mark.parametrize(
    "function", [of_an_object, of_a_dict, in_methods, given_back], ids=lambda function: function.__name__
)
def test_what_is_taken_is_taken_before_the_rest_changes(function):
    batched = pcbatch.autobatch(function)
    for backend in ("tensorflow", "reference"):
        given = batched.options(backend=backend)(X)
        np.testing.assert_allclose(given, [function(x) for x in X])
    np.testing.assert_allclose([batched.single(x) for x in X], given)
