"""How often pieces are traced: once in a program, whoever asks for what a trace tells."""

import collections

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.ir.machine import Piece
from pcbatch.runtime.backends.tensorflow import traces


def steps(x, n):
    """A loop around a branch and around something that costs more than a loop's bookkeeping."""
    while n > 0:
        if x[0] > 0.5:
            x = tf.linalg.matvec(MATRIX, x)
        else:
            x = tf.tanh(x) + 1.0
        n -= 1
    return x


MATRIX = tf.constant(np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32) / 40)
X, N = np.linspace(0, 1, 3 * 40, dtype=np.float32).reshape(3, 40), np.array([3, 0, 5], np.int32)


@pytest.fixture
def counted(monkeypatch):
    """How often each piece is traced; those of type inference are other pieces, before any pass."""
    found = collections.Counter()
    trace = traces.anew

    def counting(piece, reads, shared):
        if traces._remembered.get() is not None:
            found[piece, tuple(reads), tuple(shared)] += 1
        return trace(piece, reads, shared)

    monkeypatch.setattr(traces, "anew", counting)
    return found


@pytest.mark.parametrize("schedule", ["auto", "adaptive", "earliest"])
@pytest.mark.parametrize("jit", [True, False])
def test_a_program_traces_each_piece_once(schedule, jit, counted):
    """For the machine and, under "adaptive", for the prices of blocks, for turns that repeat one, for gathered rows.

    And for what stands against native code, as which it runs under "auto" if XLA compiles it.
    """
    f = pcbatch.autobatch(steps, schedule=schedule, jit=jit)
    f(X, N)
    blocks = f.pipeline(X, N).table.blocks
    assert set(counted.values()) == {1}
    executed = [item for block in blocks for item in block.body if isinstance(item, Piece)]
    if f.stats().forms == ("native",):
        executed = list({step.piece: None for item in executed for step in item.steps} or executed)
    assert sum(piece in executed for piece, _, _ in counted) == len(executed)
    again = f(X[:2], N[:2])
    assert set(counted.values()) <= {1, 2}  # another number of lanes is another program
    np.testing.assert_array_equal(again, f(X, N)[:2])


def test_a_program_of_xlas_has_traces_that_were_made_for_xla(monkeypatch):
    """Also where it is first called in a plain graph; in another one, and in ordinary code, it stays what it is."""
    found, trace = [], traces.anew

    def seeing(piece, reads, shared):
        found.append(traces.graphs.in_outer_xla())
        return trace(piece, reads, shared)

    monkeypatch.setattr(traces, "anew", seeing)

    @pcbatch.autobatch(max_depth=8, form="lockstep")
    def f(x, n):
        while n > 0:
            x = x + tf.reduce_max(x)
            n -= 1
        return x

    x, n = tf.constant([[1.0, 2.0], [3.0, np.nan]]), tf.constant([2, 1])
    expected = np.array([[7.0, 8.0], [np.nan, np.nan]], np.float32)
    np.testing.assert_array_equal(tf.function(lambda x, n: f.run(x, n).value)(x, n), expected)
    assert True in found
    for outer in (lambda f: tf.function(f, jit_compile=True), lambda f: f):
        np.testing.assert_array_equal(outer(lambda x, n: f.run(x, n).value)(x, n), expected)
    assert found[-1]
