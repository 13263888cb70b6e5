"""Work of loops' turns that only results need is put off: equal results, faults, steps and gradients."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function import pipeline
from pcbatch.ir.machine_printer import print_machine
from pcbatch.ir.machine_verifier import verify_machine
from pcbatch.optimize.machine import deferral
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.machine_interpreter import interpret_machine
from tests.ir.machine_parser import parse_machine

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


def stores_from_the_end(x, gold, n):
    """Places count from either end, and the turns go around a short array: of two at one place the last one counts."""
    h, scores = tf.zeros([WIDTH]), tf.zeros([4, TAGS])
    t = -4
    while t < 4:
        h = step(x[t], h)
        scores[t] = tf.linalg.matvec(HEAD, h, transpose_a=True)
        t += 1
    return scores


def stores_twice(x, gold, n):
    """Into one array, once at a constant place."""
    h, scores = tf.zeros([WIDTH]), tf.zeros([LONGEST, TAGS])
    for t in range(n):
        h = step(x[t], h)
        scores[t] = tf.linalg.matvec(HEAD, h, transpose_a=True)
        scores[0] = tf.linalg.matvec(HEAD, h * 2.0, transpose_a=True)
    return scores


def within_room(x, gold, n):
    """The array says that all turns have room: the loop is left once."""
    h, few = tf.zeros([WIDTH]), x[:8]
    one, other = tf.zeros([8, TAGS]), tf.zeros([8, TAGS])
    for t in range(n):
        h = step(few[t], h)
        one[t] = tf.linalg.matvec(HEAD, h, transpose_a=True)
        other[t] = tf.nn.softmax(tf.linalg.matvec(HEAD, h, transpose_a=True))
    one[0] += 1.0
    return one, other


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
    stores_from_the_end,
    stores_twice,
    within_room,
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
    {"schedule": "earliest"},
    {"schedule": "sweep"},
    {"form": "auto"},
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


def plainly(monkeypatch, function, **options):
    """The function without turns that are put off."""
    monkeypatch.setattr(pipeline, "pays", lambda *_: False)
    found = batched(function, **options)
    assert not deferred(found)
    return found


def assert_close(values, others):
    for one, other in zip(tf.nest.flatten(values), tf.nest.flatten(others), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda each: each.__name__)
def test_the_program_means_the_same(function, monkeypatch):
    """Lane by lane, in the interpreter of the dialect, which runs turn after turn."""
    found = {}
    for name, lanes in (("deferred", batched(function)), ("plain", plainly(monkeypatch, function))):
        monkeypatch.setattr(pipeline, "pays", lambda *_, name=name: name == "deferred")
        compilation = lanes.pipeline(X, GOLD, LENGTH)
        program = compilation.machine_program
        verify_machine(program)
        assert parse_machine(print_machine(program)) == program
        assert any(block.deferred is not None for block in program.blocks) == (name == "deferred")
        captured = compilation.captured_now()
        evaluate, store = interpreter_callbacks(program, replace(compilation.environment, captured=captured))
        given = dict(zip(compilation.parameters(), (X, GOLD, LENGTH), strict=True))
        for lane in (0, 2, 4, 7):
            outcome = interpret_machine(
                program,
                [tf.constant(given[each][lane]) for each in program.parameters],
                evaluate,
                store,
                shared=[captured.values[each] for each in program.shared],
                max_depth=10,
                max_steps=1000,
            )
            found.setdefault(lane, []).append(outcome)
    for one, other in found.values():
        assert (one.status, one.message, one.steps) == (other.status, other.message, other.steps)
        if one.value is not None:
            assert_close(one.value, other.value)


def test_all_turns_of_all_lanes_are_one_launch(monkeypatch):
    """With room for all of them; the cell of the longest lane runs as often as that has turns."""
    monkeypatch.setattr(deferral, "MOST", LONGEST)
    lanes = batched(sums)
    (block,) = deferred(lanes)
    run = lanes.run(X, GOLD, LENGTH)
    assert run.executions[block.label] == 1
    assert_close(run.value, np.array([lanes.single(*each) for each in zip(X, GOLD, map(int, LENGTH), strict=True)]))
    with tf.GradientTape() as tape:
        run = lanes.run(X, GOLD, LENGTH)
        loss = tf.reduce_sum(run.value)
    assert run.executions[block.label] == 1
    assert tape.gradient(loss, HEAD) is not None


@pytest.mark.parametrize(("function", "more"), [(within_room, 1), (stores, 2), (sums, 3), (leaves, 5)])
def test_blocks_that_are_of_no_use_are_not_made(function, more, monkeypatch):
    """Each costs a first call a tenth of its time, and more of a taped one."""
    found = len(batched(function).program("machine", X, GOLD, LENGTH).order)
    assert found - len(plainly(monkeypatch, function).program("machine", X, GOLD, LENGTH).order) == more


def bidirectional(x, gold, n):
    """A tagger: a state from either side, and the loss of every word."""
    before, h, loss = tf.zeros([LONGEST_OF_64, WIDTH]), tf.zeros([WIDTH]), 0.0
    for t in range(n):
        h = step(x[t], h)
        before[t] = h
    h = tf.zeros([WIDTH])
    for t in range(n - 1, -1, -1):
        h = step(x[t], h)
        scores = tf.linalg.matvec(HEAD, before[t] + h, transpose_a=True)
        loss += tf.nn.sparse_softmax_cross_entropy_with_logits(gold[t], scores)
    return loss


LONGEST_OF_64 = 40


@pytest.mark.slow
def test_heads_of_64_sentences_are_two_launches_at_most(monkeypatch):
    """DyNet's agenda runs the softmax and the loss once; in the loop it would run as often as the longest has words."""
    monkeypatch.setattr(deferral, "MOST", 64)
    random = np.random.default_rng(5)
    x = random.normal(size=[64, LONGEST_OF_64, WIDTH]).astype(np.float32)
    gold = random.integers(0, TAGS, size=[64, LONGEST_OF_64]).astype(np.int32)
    length = random.integers(1, LONGEST_OF_64 + 1, 64).astype(np.int32)

    def run(function):
        plain = function.run(x, gold, length)
        with tf.GradientTape() as tape:
            taped = function.run(x, gold, length)
            loss = tf.reduce_sum(taped.value)
        return plain, taped, tape.gradient(loss, [CELL, HEAD])

    lanes = batched(bidirectional)
    heads = [each for each in lanes.program("machine", x, gold, length).blocks if each.deferred is not None]
    found, taped, gradients = run(lanes)
    assert heads
    for each in (found, taped):
        assert all(each.executions[block.label] <= 2 for block in heads)
    monkeypatch.setattr(pipeline, "pays", lambda *_: False)
    expected, _, wanted = run(batched(bidirectional, name="in_the_loop"))
    assert max(expected.executions.values()) >= max(length)
    for each in (found, taped):
        assert_close(each.value, expected.value)
    for one, other in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("turns", [50, 5000])
def test_what_is_kept_does_not_grow_with_the_turns(turns, monkeypatch):
    """Room for 160 KB of a lane, and for four times as much of each array that is computed of it."""
    monkeypatch.setattr(deferral, "MOST", 64)
    wide = 1500
    v = np.zeros([wide, 3], np.float32)

    def long_loop(n):
        h, loss = tf.zeros([wide]), 0.0
        for _ in range(n):
            h = tf.tanh(h + 1.0)
            loss += tf.reduce_logsumexp(tf.linalg.matvec(v, h, transpose_a=True))
        return loss

    program = batched(long_loop).program("machine", np.array([turns, 1], np.int32))
    (block,) = [each for each in program.blocks if each.deferred is not None]
    most = block.deferred.most
    kept = [program.types[name] for name in program.storage]
    sizes = [4 * np.prod(each.shape) for each in kept if each.shape[:1] == (most,)]
    assert most < 64
    assert sum(size for size in sizes if size > 4 * most) <= deferral.BYTES
    assert sum(sizes) <= 2 * deferral.BYTES


def same(run, expected):
    np.testing.assert_array_equal(run.status, expected.status)
    np.testing.assert_array_equal(run.lane_steps, expected.lane_steps)
    assert [str(error) for error in run.errors] == [str(error) for error in expected.errors]
    assert_close(run.value, expected.value)


CROSSED = [(function, {}) for function in PROGRAMS]
CROSSED += [(function, options) for function in (of_a_lane, leaves, stores_outside) for options in OPTIONS]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "options"), CROSSED, ids=lambda each: getattr(each, "__name__", str(each)))
def test_runs_are_equal(function, options, monkeypatch):
    lanes = batched(function, **options)
    assert deferred(lanes)
    run = lanes.run(X, GOLD, LENGTH)
    limit = {"max_steps": options["max_steps"]} if "max_steps" in options else {}
    same(run, plainly(monkeypatch, function, **limit).run(X, GOLD, LENGTH))


def gradients(function):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        run = function.run(x, GOLD, LENGTH)
        total = sum(
            tf.reduce_sum(tf.where(run.status == 0, tf.reshape(v, [LANES, -1])[:, 0], 0.0) ** 2)
            for v in tf.nest.flatten(run.value)
            if v.dtype == tf.float32
        )
    return tape.gradient(total, [x, CELL, HEAD], unconnected_gradients="zero")


TAPED = [(function, {}) for function in PROGRAMS]
TAPED += [(of_a_lane, {"deterministic": True}), (leaves, {"tape": "replay"})]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "options"), TAPED, ids=lambda each: getattr(each, "__name__", str(each)))
def test_gradients_are_equal(function, options, monkeypatch):
    found = gradients(batched(function, **options))
    for one, other in zip(found, gradients(plainly(monkeypatch, function, **options)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_what_stays(monkeypatch):
    """A loop in a loop, a head that the next turn needs, and one of which only the last turn counts."""

    def fed_back(x, gold, n):
        h = tf.zeros([WIDTH])
        total = 0.0
        for t in range(n):
            score = tf.reduce_sum(tf.exp(h))
            total += score
            h = step(x[t], h) * score
        return total

    def in_another(x, gold, n):
        total = 0.0
        for _ in range(n):
            for t in range(n):
                total += tf.reduce_sum(tf.exp(x[t]))
        return total

    def the_last(x, gold, n):
        h, score = tf.zeros([WIDTH]), 0.0
        for t in range(n):
            h = step(x[t], h)
            score = tf.reduce_sum(tf.exp(h))
        return score

    for function in (fed_back, in_another, the_last):
        assert not deferred(batched(function))


@pytest.mark.slow
@pytest.mark.parametrize("function", [sums, stores])
def test_deterministic_results_have_the_same_bits_in_any_batch(function):
    lanes = batched(function, deterministic=True)
    whole = np.asarray(lanes(X, GOLD, LENGTH))
    for size in (1, 2, 5):
        for first in range(0, LANES - size + 1, size):
            part = slice(first, first + size)
            np.testing.assert_array_equal(lanes(X[part], GOLD[part], LENGTH[part]), whole[part])
