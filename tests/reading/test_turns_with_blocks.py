"""Loops with a `with` in them: what their turns change is guessed, and programs are as without guesses."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.reading import loops

DEBUG = False


def descended(x, n):
    steps, total = 0, x[0] * 0.0
    while steps < n:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x)
        x -= 0.1 * tape.gradient(y, x)
        total = total + y
        steps += 1
    return x, total, steps


def still(x, n):
    """`size` changes in no turn, and has to be known."""
    size = 2
    for _ in range(n):
        with tf.name_scope("doubled"):
            x = x * 2.0
        if DEBUG:
            size += 1
        size = size + 0
        x = x + tf.zeros(size)
    return x


def under_two_names(x, n):
    y = x
    for _ in range(n):
        with tf.name_scope("halved"):
            half = y * 0.5
        x += half
    return x, y


def kept(x, n):
    """An array that is changed in place by what gives it another type is another array."""
    count = n * 0
    for k in range(3):
        with tf.name_scope("counted"):
            more = k + 1
        count += more
    return x + tf.cast(count, x.dtype)


def of_constants(x, n):
    """The loop is written out: what it counts has to be known."""
    rows = []
    for k in range(3):
        with tf.name_scope("grown"):
            row = x * float(k)
        rows.append(row)
        n += k
    return tf.stack(rows), n


PROGRAMS = [descended, still, under_two_names, kept, of_constants]
ARGUMENTS = np.float32([[1.0, 2.0], [3.0, -4.0]]), np.int32([2, 3])


@pytest.mark.parametrize("function", PROGRAMS)
def test_a_guess_changes_no_program(function, monkeypatch):
    guessed = f"{pcbatch.autobatch(function).program('cfg', *ARGUMENTS)}"
    monkeypatch.setattr(loops, "changing", lambda reader, node: {})
    assert f"{pcbatch.autobatch(function).program('cfg', *ARGUMENTS)}" == guessed


def test_a_guess_saves_a_round(monkeypatch):
    rounds = []
    of = loops.Head.enter
    monkeypatch.setattr(loops.Head, "enter", lambda head: rounds.append(head) or of(head))
    pcbatch.autobatch(descended).program("cfg", *ARGUMENTS)
    assert len(rounds) == 1
