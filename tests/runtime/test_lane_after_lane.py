"""What no rule vectorises runs lane after lane, for the lanes that take part, and a note says so."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import PrimitiveError

X = np.array([1.0, 2.0, -3.0, 0.5], np.float32)
N = np.array([5, 0, 8, 1], np.int32)


def agrees(function, *arguments, notes=None, rtol=1e-5):
    """Whether a batch equals its examples; and what is noted of it, the places left out."""
    run = function.run(*arguments)
    assert not run.status.any()
    for lane in range(len(arguments[0])):
        one = function.single(*(argument[lane] for argument in arguments))
        for rows, row in zip(tf.nest.flatten(run.value), tf.nest.flatten(one), strict=True):
            np.testing.assert_allclose(rows[lane], row, rtol)
    told = [note.split(": ")[1] for note in function.stats().notes]
    if notes is not None:
        assert told == notes
        assert all(note in str(run.profile()) for note in function.stats().notes)


def grown(x, n):
    return tf.while_loop(lambda c, _: c < n, lambda c, s: (c + 1, s * 1.5), (0, x))[1]


@pcbatch.autobatch(form="lockstep")
def loops(x, n):
    total = 0.0
    while n > 0:
        total = total + grown(x, n)
        n = n - 2
    return total


def test_a_loop_inside_an_operation_makes_the_turns_of_its_lane():
    agrees(loops, X, N, notes=[])  # it is read as a loop of the program
    agrees(loops.options(jit=False), X, N, notes=[])
    np.testing.assert_array_equal(loops(X, N)[2:3], loops(X[2:3], N[2:3]))


@pcbatch.autobatch(form="lockstep")
def collected(x, n):
    squares = tf.map_fn(lambda each: each * each, tf.range(4.0) * x)
    sums = tf.scan(lambda total, each: total + each, squares)
    with tf.GradientTape() as tape:
        tape.watch(x)
        step = lambda c, s: (c + 1, tf.sin(s) * x)  # noqa: E731
        y = tf.while_loop(lambda c, _: c < n, step, (0, x), maximum_iterations=10)[1]
    return sums, tape.gradient(y, x)


@pytest.mark.parametrize("jit", [True, False])
def test_lists_that_loops_collect_and_gradients_through_loops(jit):
    note = "While runs lane after lane"
    agrees(collected.options(jit=jit), X, N, notes=[note, note, note] if jit else None)


@pcbatch.autobatch(form="lockstep")
def endless(x, n):
    if n > 0:
        x = tf.while_loop(lambda y: y != 0, lambda y: y - n, (x,))[0]
    return x


@pytest.mark.parametrize("jit", [True, False])
def test_lanes_that_wait_elsewhere_are_not_computed(jit):
    """For their values the loop would not end: 3 is no multiple of 2, and 1 - 0 - 0 .. never 0."""
    function = endless.options(jit=jit)
    np.testing.assert_array_equal(function([3, 3, 4, 1], [1, 0, 2, -2]), [0, 3, 0, 1])


@pcbatch.autobatch
def failing(x, n):
    y = 6 // n
    return tf.while_loop(lambda z: z != 0, lambda z: z - n, (x,))[0] + y


@pcbatch.autobatch
def stored(a, n):
    a[n] = 5
    return a, halved(a[0], n)


def halved(x, n):
    return tf.while_loop(lambda z: z != 0, lambda z: z - tf.where(n < 3, n, 0), (x - x + 4,))[0]


@pytest.mark.parametrize("form", ["lockstep", "native"])
def test_a_lane_that_has_failed_is_not_computed(form):
    """Its loop would not end, in the piece of the failure, and in a later one."""
    run = failing.options(form=form).run([4, 4], [2, 0])
    np.testing.assert_array_equal(run.value, [3, 0])
    assert [status == 0 for status in run.status.tolist()] == [True, False]
    run = stored.options(form=form).run(np.zeros((3, 3), np.int32), [2, 1, 3])
    assert [status == 0 for status in run.status.tolist()] == [True, True, False]


WEIGHTS = tf.Variable([[1.0, 2.0], [3.0, 4.0]])


@pcbatch.autobatch(form="lockstep")
def reading(x, n):
    return tf.while_loop(lambda c, y: c < n, lambda c, y: (c + 1, tf.linalg.matvec(WEIGHTS, y)), (0, x))[1]


def test_a_loop_that_reads_a_variable_sees_what_it_is_now():
    arguments = np.ones((4, 2), np.float32), N % 4
    agrees(reading, *arguments)
    before = WEIGHTS.numpy()
    WEIGHTS.assign(before + 1.0)
    agrees(reading, *arguments)
    WEIGHTS.assign(before)


@pcbatch.autobatch(form="lockstep")
def without_rules(a, n):
    """One that no native function takes between, a group of several operations, and one inside a function."""
    ranked = tf.cast(tf.math.in_top_k(n % 3, a, 2), a.dtype)
    woven = tf.dynamic_stitch([[0, 2], [1]], [a[:2], tf.sort(a[2:])])
    return ranked[:, None] * woven @ a, tf.function(lambda m: tf.dynamic_stitch([[0, 2], [1]], [m[:2], m[2:]]))(a)


@pytest.mark.parametrize("jit", [True, False])
def test_operations_without_a_rule(jit):
    rng = np.random.default_rng(1)
    rows, lengths = rng.normal(size=(4, 3, 3)).astype(np.float32), rng.integers(0, 4, (4, 3), np.int32)
    agrees(without_rules.options(jit=jit), rows, lengths)


@pcbatch.autobatch(form="lockstep", jit=False)
def loose(x):
    found = tf.unique(x)
    return tf.reduce_sum(found.y * 2.0), found.idx


def test_arrays_of_any_length_stay_among_the_operations_of_their_lane():
    """It runs where each of its parts is used: no variable can hold one of them from here to there."""
    note = "Unique runs lane after lane"
    agrees(loose, np.array([[1.0, 2.0, 1.0], [3.0, 3.0, 3.0]], np.float32), notes=[note, note])


@pcbatch.autobatch(form="lockstep")
def shared_only(x):
    table = tf.scan(lambda total, each: total + each, tf.range(3.0))
    return x + table[2]


def test_what_no_lane_has_a_part_in_is_computed_once():
    agrees(shared_only, X, notes=[])


def unbounded(x, n):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda c, _: c < n, lambda c, s: (c + 1, s * x), (0, x))[1]
    return tape.gradient(y, x)


@tf.function(autograph=False)
def grown_array(x):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    array = tf.while_loop(lambda c, _: c < 3, lambda c, a: (c + 1, a.write(c, x)), (0, array))[1]
    return tf.ensure_shape(array.stack(), [3])


def growing(x, n):
    return grown_array(x)


def array_of_a_lane(x, n):
    array = tf.TensorArray(tf.float32, size=2)
    array.write(0, x)
    return array.stack()


def test_arrays_that_are_written_to_are_made_where_they_are_used():
    with pytest.raises(PrimitiveError, match=r"PCB404: .* class TensorArray .*") as error:
        pcbatch.autobatch(array_of_a_lane)(X, N)
    assert error.value.diagnostics[0].span.text.strip() == "array = tf.TensorArray(tf.float32, size=2)"
    bounded = tf.function(lambda x: tf.TensorArray(tf.float32, size=2).unstack([x, 2 * x]).stack(), autograph=False)

    def inside(x):
        return bounded(x)

    agrees(pcbatch.autobatch(inside), X)


@pytest.mark.parametrize("function", [unbounded, growing])
@pytest.mark.parametrize("form", ["lockstep", "auto"])
def test_xla_must_know_how_many_turns_there_may_be(function, form):
    with pytest.raises(PrimitiveError, match="maximum_iterations") as error:
        pcbatch.autobatch(function, form=form)(X, N)
    (only,) = error.value.diagnostics
    assert (only.code, only.span.file) == ("PCB414", __file__)


@pcbatch.autobatch(form="lockstep")
def integrals(a):
    return tf.math.special.expint(a)


def test_what_xla_has_no_version_of_is_refused_at_its_line():
    with pytest.raises(PrimitiveError, match="Expint") as error:
        integrals(np.ones((2, 2, 2), np.float32))
    (only,) = error.value.diagnostics
    assert (only.code, only.span.file) == ("PCB440", __file__)


@pcbatch.autobatch(form="lockstep")
def partly(x, n, unused):
    doubled = lambda y, z: (y + 1, z * 2.0 + tf.cast(unused * 0, tf.float32))  # noqa: E731
    return tf.while_loop(lambda y, z: y < n, doubled, (0, x))[0]


@pcbatch.autobatch(form="lockstep")
def sampled(x, n, unused):
    found = tf.while_loop(lambda a, b, c: a < n, lambda a, b, c: (a + 1, b + x, c * x), (0, x, x))
    return found[1] if n > 3 else x


def test_results_and_arguments_that_nobody_needs_do_not_end_the_process():
    np.testing.assert_array_equal(partly(X, N, N), N)
    np.testing.assert_allclose(sampled(X, N, N), np.where(N > 3, X * (N + 1), X))


def of_determinants(m, n):
    total = 0.0
    while n > 0:
        total += tf.linalg.det(m)
        n -= 1
    return total


def test_what_xla_has_no_code_for_is_refused_where_it_stands():
    given = np.ones([2, 2, 2], np.float32), np.array([1, 2])
    with pytest.raises(PrimitiveError) as caught:
        pcbatch.autobatch(of_determinants)(*given)
    (only,) = caught.value.diagnostics
    assert (only.code, only.span.file) == ("PCB440", __file__)
    np.testing.assert_allclose(pcbatch.autobatch(of_determinants, jit=False)(*given), [0.0, 0.0])
