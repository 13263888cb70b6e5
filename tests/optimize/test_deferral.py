"""What turns of loops compute and only results need is put off: equal results, faults, steps and gradients."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function import pipeline
from pcbatch.optimize.machine import deferral

WIDTH, TAGS, LONGEST, LANES = 3, 4, 12, 9
RANDOM = np.random.default_rng(3)
CELL, HEAD = (tf.Variable(RANDOM.normal(size=s).astype(np.float32)) for s in ((WIDTH, WIDTH), (WIDTH, TAGS)))
X = RANDOM.normal(size=[LANES, LONGEST, WIDTH]).astype(np.float32)
GOLD = RANDOM.integers(0, TAGS, size=[LANES, LONGEST]).astype(np.int32)
LENGTH = np.array([0, 1, 2, 12, 5, 7, 3, 12, 1], np.int32)


@pytest.fixture(autouse=True)
def everything_pays(monkeypatch):
    """Cheap turns are put off, too, a few at a time."""
    monkeypatch.setattr(pipeline, "pays", lambda *_: True)
    monkeypatch.setattr(deferral, "MOST", 8)


def step(x, h):
    return tf.tanh(x + tf.linalg.matvec(CELL, h))


def sums(x, gold, n):
    h, loss = tf.zeros([WIDTH]), 0.0
    for t in range(n):
        h = step(x[t], h)
        loss += tf.nn.sparse_softmax_cross_entropy_with_logits(gold[t], tf.linalg.matvec(HEAD, h, transpose_a=True))
    return loss


def stores(x, gold, n):
    h, scores = tf.zeros([WIDTH]), tf.zeros([LONGEST, TAGS])
    for t in range(n - 1, -1, -1):
        h = step(x[t], h)
        scores[t] = tf.nn.softmax(tf.linalg.matvec(HEAD, h, transpose_a=True))
    return scores


def stores_over_each_other(x, gold, n):
    """The last one at a place counts."""
    h, scores = tf.zeros([WIDTH]), tf.zeros([TAGS, TAGS])
    for t in range(n):
        h = step(x[t], h)
        scores[gold[t]] = tf.linalg.matvec(HEAD, h, transpose_a=True)
    return scores


def of_a_lane(x, gold, n):
    """Turns read what all of a lane's have in common, and what was there before the turn."""
    query, h, total, last = x[0], tf.zeros([WIDTH]), 0.0, tf.zeros([WIDTH])
    for t in range(n):
        total = 0.5 * total + tf.reduce_sum(tf.exp(query * h) * x[0])
        h = step(x[t], h)
        last = h
    return total, last


def leaves(x, gold, n):
    h, loss = tf.zeros([WIDTH]), 0.0
    for t in range(n):
        h = step(x[t], h)
        if gold[t] == 0:
            break
        loss += tf.reduce_logsumexp(tf.linalg.matvec(HEAD, h, transpose_a=True))
    return loss, h


def in_an_arm(x, gold, n):
    h, loss, count = tf.zeros([WIDTH]), 0.0, 0
    for t in range(n):
        h = step(x[t], h)
        if gold[t] > 1:
            loss += tf.reduce_logsumexp(tf.linalg.matvec(HEAD, h, transpose_a=True))
            count += 1
    return loss, count


def asks_of_an_array(x, gold, n):
    """The condition of the loop can fail, so that it is asked once."""
    h, loss, t = tf.zeros([WIDTH]), 0.0, 0
    while gold[t] > 0:
        h = step(x[t], h)
        loss += tf.reduce_logsumexp(tf.linalg.matvec(HEAD, h, transpose_a=True))
        t += 1
    return loss + t


def fails(x, gold, n):
    h, loss = tf.zeros([WIDTH]), 0.0
    for t in range(n):
        h = step(x[t], h)
        assert gold[t] < 3, f"{t}"
        loss += tf.reduce_logsumexp(tf.linalg.matvec(HEAD, h, transpose_a=True))
    return loss


def stores_outside(x, gold, n):
    """Of two faults the first one counts: that of a store, whose value is put off, is found in its turn."""
    h, scores = tf.zeros([WIDTH]), tf.zeros([6, TAGS])
    for t in range(n):
        h = step(x[t], h)
        scores[t] = tf.linalg.matvec(HEAD, h, transpose_a=True)
        assert t < 8, "late"
    return scores


def before_a_loop(x, gold, n):
    h, loss = tf.zeros([WIDTH]), 0.0
    for t in range(n):
        h = step(x[t], h)
        loss += tf.reduce_logsumexp(tf.linalg.matvec(HEAD, h, transpose_a=True))
    for t in range(n):
        h = step(h, x[t])
        loss -= tf.reduce_max(tf.linalg.matvec(HEAD, h, transpose_a=True))
    return loss


def all_of_it(x, gold, n):
    """Nothing is handed from turn to turn."""
    scores = tf.zeros([LONGEST, TAGS])
    for t in range(n):
        scores[t] = tf.linalg.matvec(HEAD, x[t], transpose_a=True)
    return scores


PROGRAMS = [
    sums,
    stores,
    stores_over_each_other,
    of_a_lane,
    leaves,
    in_an_arm,
    asks_of_an_array,
    fails,
    stores_outside,
    before_a_loop,
    all_of_it,
]
OPTIONS = [
    {},
    {"schedule": "earliest"},
    {"schedule": "sweep"},
    {"form": "mixed"},
    {"jit": False},
    {"max_lanes": 4},
    {"deterministic": True},
    {"max_steps": 10},
    {"schedule": "busiest", "max_steps": 3},
]


def batched(function, **options):
    return pcbatch.autobatch(function, **{"form": "lockstep", **options})


def deferred(function):
    return [block for block in function.program("machine", X, GOLD, LENGTH).blocks if block.deferred is not None]


def same(run, expected):
    np.testing.assert_array_equal(run.status, expected.status)
    np.testing.assert_array_equal(run.lane_steps, expected.lane_steps)
    assert [str(error) for error in run.errors] == [str(error) for error in expected.errors]
    for one, other in zip(tf.nest.flatten(run.value), tf.nest.flatten(expected.value), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda each: each.__name__)
def test_it_is_put_off_and_equal(function, monkeypatch):
    lanes = batched(function)
    assert deferred(lanes)
    run = lanes.run(X, GOLD, LENGTH)
    monkeypatch.setattr(pipeline, "pays", lambda *_: False)
    plain = batched(function, schedule="earliest")
    assert not deferred(plain)
    same(run, plain.run(X, GOLD, LENGTH))
    for lane in np.flatnonzero(run.status == 0)[:3]:
        single = lanes.single(X[lane], GOLD[lane], int(LENGTH[lane]))
        for one, other in zip(tf.nest.flatten(run.value), tf.nest.flatten(single), strict=True):
            np.testing.assert_allclose(one[lane], other, rtol=1e-5, atol=1e-6)
