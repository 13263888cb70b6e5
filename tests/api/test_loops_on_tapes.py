"""A tape in a body, around loops, branches, helpers and batched calls: the gradient is that of `f.single`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = np.array([[0.5, 0.6], [0.1, -0.2], [0.3, 0.4]], np.float32)
K = np.array([1, 3, 0], np.int32)
W = tf.Variable([[0.9, -0.3], [0.2, 0.7]])
C = tf.constant([0.25, 0.75])


def agree(function: Any, *batch: Any, **tolerance: float) -> Any:
    """Assert that each lane gives what `single` gives; return what the batch gives."""
    found = function(*batch)
    wanted = [function.single(*(each[lane] for each in batch)) for lane in range(len(batch[0]))]
    for lane, each in enumerate(wanted):
        for mine, other in zip(tf.nest.flatten(found), tf.nest.flatten(each), strict=True):
            other = np.zeros_like(mine[lane]) if other is None else other  # of a lane that makes no turn
            np.testing.assert_allclose(mine[lane], other, rtol=2e-5, atol=1e-6, **tolerance)
    return found


def numerically(function: Any, x: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """The gradient of a function of one array of float64 by differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        found[place] = (float(function(up)) - float(function(down))) / (2 * step)
    return found


@pcbatch.autobatch
def energy(x, k):
    return tf.reduce_sum(x * x) if k < 1 else tf.sin(energy(x, k - 1)) + energy(x * 0.5, k - 2)


def iterated(x, k):
    while k > 0:
        x = tf.sin(x) * 1.5
        k = k - 1
    return tf.reduce_sum(x * x)


def recursive(x, k):
    if k < 1:
        return tf.reduce_sum(x * x)
    return tf.sin(recursive(x * 0.5, k - 1)) * 2.0


def test_a_loop_on_a_tape() -> None:
    @pcbatch.autobatch
    def slope(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            total = 0.0
            for t in range(k):
                y = tf.sin(y) * C + 0.1 * tf.cast(t, tf.float32)
                total = total + tf.reduce_sum(y * y)
            total = total + tf.reduce_sum(tf.exp(y))
        return total, tape.gradient(total, x)

    _, found = agree(slope, X, K)

    def plain(x: np.ndarray) -> float:
        y, total = x, 0.0
        for t in range(3):
            y = np.sin(y) * np.array([0.25, 0.75]) + 0.1 * t
            total += np.sum(y * y)
        return total + float(np.sum(np.exp(y)))

    np.testing.assert_allclose(found[1], numerically(plain, X[1].astype(np.float64)), rtol=1e-4)


def test_batched_calls_and_helpers_that_loop_or_recurse() -> None:
    @pcbatch.autobatch
    def descended(x, k):
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = energy(x, k) + iterated(x, k) * recursive(x, k)
            x = x - 0.1 * tape.gradient(y, x)
        return x

    agree(descended, X, K)


@pytest.mark.slow
def test_branches_and_expressions_on_a_tape() -> None:
    @pcbatch.autobatch
    def slope(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            if x[0] > 0.2:
                y = tf.reduce_sum(x * x)
            else:
                y = -tf.reduce_sum(tf.exp(x))
            z = y * iterated(x, k) if k > 1 else y
        return tape.gradient(z, x)

    agree(slope, X, K)


@pytest.mark.slow
def test_a_persistent_tape_and_a_local_function() -> None:
    @pcbatch.autobatch
    def slopes(x, k, scale):
        def f(y):
            n = k
            while n > 0:
                y = tf.tanh(y * scale)
                n -= 1
            return y

        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, scale])
            y = f(x)
            a = tf.reduce_sum(y)
            b = y[0] * 2.0
        return tape.gradient(a, x), tape.gradient(b, scale), tape.gradient(a, [x, scale])

    agree(slopes, X, K, np.array([0.5, 1.5, 2.0], np.float32))


def test_a_variable_is_an_argument_of_what_loops() -> None:
    def rolled(w, x, k):
        while k > 0:
            x = tf.tanh(tf.linalg.matvec(w, x))
            k -= 1
        return tf.reduce_sum(x)

    @pcbatch.autobatch
    def by_weight(x, k):
        with tf.GradientTape() as tape:
            y = rolled(W + 0.0, x, k)
        return tape.gradient(y, W)

    agree(by_weight, X, K)

    @pcbatch.autobatch
    def beside(x, k):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x)
            for _ in range(k):
                y = y + tf.reduce_sum(tf.linalg.matvec(W, x))
        return tape.gradient(y, W)

    agree(beside, X, K)

    @pcbatch.autobatch
    def reading(y, k):
        while k > 0 and y[0] > 9.0:
            y = y - 1.0
        return tf.reduce_sum(tf.linalg.matvec(W, y))

    @pcbatch.autobatch
    def inside(x, k):
        with tf.GradientTape() as tape:
            y = reading(x, k)
        return tape.gradient(y, W)

    with pytest.raises(pcbatch.CompileError, match=r"(?s)PCB413: `reading` .* y = reading.*pass it as an argument"):
        inside(X, K)


def test_statements_of_which_nothing_is_read() -> None:
    @pcbatch.autobatch
    def slope(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x)
            if x[0] > 0.2:
                unread = y * 2.0  # noqa: F841
            for t in range(k):
                assert t < 2, "too long"
        return tape.gradient(y, x)

    run = slope.run(X, K)
    np.testing.assert_allclose(run.value[::2], 2 * X[::2])
    assert [error.lane for error in run.errors] == [1]
    assert "what a gradient is taken of has failed" in run.errors[0].message

    @pcbatch.autobatch
    def grown(x, k):
        found = []
        with tf.GradientTape() as tape:
            tape.watch(x)
            for _ in range(k):
                found.append(x * 2.0)
            y = tf.reduce_sum(x * x)
        return tape.gradient(y, x), sum(found)

    with pytest.raises(pcbatch.CompileError, match=r"(?s)PCB107.*for _ in range"):
        grown(X, K)


def test_lanes_that_fail_on_a_tape() -> None:
    def checked(x, k):
        while k > 0:
            assert k != 3, "three"
            x, k = x * 2.0, k - 1
        return tf.reduce_sum(x * x)

    @pcbatch.autobatch
    def slope(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = checked(x, k)
        return tape.gradient(y, x)

    run = slope.run(X, K)
    assert [each.name for each in map(pcbatch.LaneStatus, np.asarray(run.status).tolist())] == ["OK", "RAISED", "OK"]
    np.testing.assert_allclose(run.value[0], slope.single(X[0], 1), rtol=1e-6)
    assert "failed" in str(run.errors[0])


def test_what_a_loop_on_a_tape_changes_is_not_lost() -> None:
    @pcbatch.autobatch
    def stored(x, k):
        a = tf.zeros(4) + 0.0
        with tf.GradientTape() as tape:
            tape.watch(x)
            for t in range(k):
                a[t] = x[0]
            y = tf.reduce_sum(a) + tf.reduce_sum(x)
        return tape.gradient(y, x)

    with pytest.raises(pcbatch.CompileError, match="PCB107"):
        stored(X, K)

    @pcbatch.autobatch
    def appended(x, k):
        seen = [x]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            while k > 0:
                seen[0] = y
                y = y * 2.0
                k = k - 1
            total = tf.reduce_sum(y)
        return tape.gradient(total, x), seen[0]

    with pytest.raises(pcbatch.CompileError, match="PCB422"):
        appended(X, K)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"backend": "reference"}, {"strategy": "local"}, {"strategy": "agenda"}, {"jit": False}], ids=str
)
def test_every_way_to_run_it_gives_the_same(options: Any) -> None:
    found = looped.options(**options)(X, K)
    np.testing.assert_allclose(found, looped(X, K), rtol=1e-5)


@pytest.mark.slow
def test_inside_a_function_and_as_text() -> None:
    found = tf.function(lambda x, k: looped(x, k))(tf.constant(X), tf.constant(K))
    np.testing.assert_allclose(found, looped(X, K), rtol=1e-5)
    for text in (looped.ir("cfg"), looped.ir("cfg", X, K)):
        assert "__run__(looped_" in text


@pcbatch.autobatch
def looped(x, k):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(k):
            y = tf.sin(y) * 2.0
    return tape.gradient(y, x)


@pytest.mark.slow
def test_a_tape_in_a_loop_on_a_tape() -> None:
    @pcbatch.autobatch
    def nested(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(k):
                with tf.GradientTape() as inner:
                    inner.watch(y)
                    z = tf.reduce_sum(y**3)
                y = y - 0.1 * inner.gradient(z, y)
        return tape.gradient(y, x)

    agree(nested, X, K)


def outer_gradient(function: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x)


def test_a_gradient_through_a_call_with_a_tape_in_its_body() -> None:
    """The run in the body carries first derivatives, and says so where a second one is asked for: it gave zeros."""

    @pcbatch.autobatch
    def scaled(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = iterated(x, k)
        return y * tf.stop_gradient(tape.gradient(y, x)[0])

    x = tf.constant(X)
    found = outer_gradient(lambda x: scaled(x, K), x)
    for lane in range(3):
        wanted = outer_gradient(lambda one, lane=lane: scaled.single(one, K[lane]), x[lane])
        np.testing.assert_allclose(found[lane], wanted, rtol=1e-5)

    @pcbatch.autobatch
    def steepness(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = iterated(x, k)
        return tf.reduce_sum(tape.gradient(y, x) ** 2)

    with pytest.raises(pcbatch.GradientError, match="PCB604: a second derivative through the batched function"):
        outer_gradient(lambda x: steepness(x, K), x)


def test_what_stays_refused_says_where() -> None:
    @pcbatch.autobatch
    def stopped(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(k):
                with tape.stop_recording():
                    y = y * 2.0
        return tape.gradient(y, x)

    with pytest.raises(pcbatch.CompileError, match="PCB107: a loop inside of `with`"):
        stopped(X, K)


def raised(x, k):
    return x if k <= 0 else raised(x * x, k - 1) + 1.0


def test_what_is_given_twice_counts_once_at_each_place():
    """The loop begins with `y` and `x` as one tensor; the helper calls itself in an expression."""

    @pcbatch.autobatch
    def powers(x, k):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x
            for _ in range(k):
                y = y * x
            z = raised(x, k)
        return tape.gradient(y, x), tape.gradient(z, x)

    agree(powers, X[:, 0], K)
