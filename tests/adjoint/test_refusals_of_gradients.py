"""Where there is no gradient it is refused by a code, when it is asked for; nothing is None or wrong instead."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import GradientError
from pcbatch.runtime.backends.tensorflow import shared_operand_gradients
from tests.adjoint import programs
from tests.adjoint.programs import COUNTS, NUMBERS
from tests.adjoint.truth import batched

HALVED_X = tf.constant([3.0, 7.0])


@pcbatch.autobatch(jit=False)
def halved(x):
    while x > 1.0:
        x = x * 0.5
    return x


def slope(function, x, **how):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x, **how)


def second(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        first = slope(halved, x)
    return outer.gradient(first, x)


def second_by_upstream(x):
    upstream = tf.ones(2)
    with tf.GradientTape() as outer:
        outer.watch(upstream)
        first = slope(halved, x, output_gradients=upstream)
    return outer.gradient(first, upstream)


def jacobian(x, **how):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = halved(x)
    return tape.jacobian(y, x, **how)


def forward_mode_by_weights(x):
    """The first call of a function that reads a variable, so that it is traced there."""
    weight = tf.Variable([[0.5, 0.0], [0.0, 0.5]])

    @pcbatch.autobatch
    def turned(x, n):
        for _ in range(n):
            x = tf.tanh(tf.linalg.matvec(weight, x))
        return x

    with tf.autodiff.ForwardAccumulator(weight, tf.ones([2, 2])) as accumulator:
        y = turned(tf.stack([x, x]), [1, 2])
    return accumulator.jvp(y)


def forward_mode(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as accumulator:
        y = halved(x)
    return accumulator.jvp(y)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda x: slope(halved.options(progress=True), x), "PCB601: .*progress"),
        (forward_mode, "PCB601: .*forward mode"),
        (forward_mode_by_weights, "PCB601: .*forward mode"),
        (tf.function(second, jit_compile=True), "PCB60[47]"),
        (tf.function(lambda x: slope(halved, x), jit_compile=True), "PCB607"),
    ],
)
def test_ways_that_there_are_not(ask, code):
    with pytest.raises(GradientError, match=code):
        ask(HALVED_X)


def test_a_jacobian_row_by_row():
    found = jacobian(HALVED_X, experimental_use_pfor=False)
    np.testing.assert_array_equal(found, np.diag([0.25, 0.125]))


def test_the_derivative_of_a_gradient_by_what_flows_into_it():
    np.testing.assert_array_equal(second_by_upstream(HALVED_X), [0.25, 0.125])


@pcbatch.autobatch(jit=False)
def turned(x, n):
    while n > 0:
        x = tf.image.adjust_hue(x, 0.1)
        n = n - 1
    return x


def test_an_operation_without_a_gradient_is_named_at_its_line():
    x, n = tf.ones([2, 2, 2, 3]), tf.constant([1, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = turned(x, n)  # nobody has asked yet
        z = tf.reduce_sum(x)
    assert tape.gradient(z, x).shape == x.shape
    assert np.all(np.isfinite(y))
    with pytest.raises(GradientError, match=r"PCB602: TensorFlow's \w+ has no gradient(.|\n)*adjust_hue"):
        slope(lambda x: turned(x, n), x)


@pcbatch.autobatch(jit=False)
def spun(z, n):
    while n > 0:
        z = z * tf.complex(0.0, 1.0)
        n = n - 1
    return tf.math.real(z)


def test_complex_numbers_between_blocks():
    z = tf.complex(HALVED_X, HALVED_X)
    np.testing.assert_array_equal(spun(z, tf.constant([1, 2])), [-3.0, -7.0])
    with pytest.raises(GradientError, match=r"PCB606: .*`z`"):
        slope(lambda z: spun(z, tf.constant([1, 2])), z)


@pcbatch.autobatch(jit=False)
def counted(x):
    return int(x)


def test_what_has_no_gradient_has_none():
    with tf.GradientTape() as tape:
        tape.watch(HALVED_X)
        y, other = counted(HALVED_X), HALVED_X + 1.0
    assert tape.gradient(y, HALVED_X) is None
    assert slope(lambda x: halved(tf.stop_gradient(x)), HALVED_X) is None
    assert other.shape == (2,)


# -- acts of sabotage: each trap is noticed by the test beside ---------------------------------------------------------


def test_rows_of_failed_lanes_would_poison_what_is_shared(monkeypatch):
    """Zero times infinity: see `test_failed_lanes_leave_no_trace`."""
    monkeypatch.setattr(shared_operand_gradients, "_where", lambda mask, rows: rows)
    zero = tf.constant([1.0, 0.0, 2.0, -3.0, 0.0, 0.5], tf.float64)
    found = batched(programs.fails.options(jit=False, name="sabotaged"), (zero, COUNTS), (programs.W,))
    assert not np.all(np.isfinite(found[1]))


def test_what_is_vectorised_first_has_lost_its_custom_gradient():
    """See `test_custom_gradients_are_kept`: there it is 7, by the operations it is 2."""
    with tf.GradientTape() as tape:
        tape.watch(NUMBERS)
        y = tf.vectorized_map(programs.seven, NUMBERS)
    lost = tape.gradient(y, NUMBERS)
    assert set(lost.numpy()) <= {2.0, 7.0}
    kept = batched(programs.own_gradient.options(jit=False), (NUMBERS, tf.ones(6, tf.int32)))[0]
    weight = np.random.default_rng(0).normal(size=6)
    assert np.max(np.abs(kept - 2.0 * weight * np.cos(2.0 * NUMBERS))) > 0.1


def test_a_saved_model_is_differentiated_again(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = programs.W, programs.B

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float64), tf.TensorSpec([None], tf.int32)])
        def __call__(self, x, n):
            return programs.loop.options(jit=False)(x, n)

    model = Model()
    tf.saved_model.save(model, str(tmp_path))
    again = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(again(programs.VECTORS, COUNTS), model(programs.VECTORS, COUNTS))
    slopes = [slope(lambda x, each=each: each(x, COUNTS), programs.VECTORS) for each in (again, model)]
    np.testing.assert_allclose(*slopes)
