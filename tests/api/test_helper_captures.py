"""What helper functions capture is part of the program: binding it anew is noticed."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

ONES = np.ones(3, np.float32)


def value(tensor):
    return np.asarray(tensor).tolist()


def compilations(function):
    return function.stats().compilations


GAIN = 2
SHIFT = np.array([1.0], np.float32)
BIAS = tf.Variable(0.0)


class SETTINGS:
    power = 1


def innermost(x):
    return GAIN * x


def helper(x, extra=0):
    raised = [each**SETTINGS.power for each in [innermost(x)]]
    return raised[0] + SHIFT[0] + BIAS + extra


@pcbatch.autobatch(jit=False)
def helped(x):
    return helper(x)


def test_rebinding_what_a_helper_captures_is_noticed(monkeypatch):
    """A helper is read, so its numbers are constants of the program: binding them anew compiles anew, arrays do not."""
    batch = 3 * ONES
    here = globals()
    assert value(helped(batch)) == [7.0] * 3
    monkeypatch.setitem(here, "GAIN", 3)  # a helper's helper reads it
    assert value(helped(batch)) == [10.0] * 3
    monkeypatch.setitem(here, "SHIFT", np.array([5.0], np.float32))
    assert value(helped(batch)) == [14.0] * 3
    monkeypatch.setattr(SETTINGS, "power", 2)
    assert value(helped(batch)) == [86.0] * 3
    monkeypatch.setattr(helper, "__defaults__", (100,))
    assert value(helped(batch)) == [186.0] * 3
    monkeypatch.setitem(here, "innermost", lambda x: x)
    assert value(helped(batch)) == [114.0] * 3
    assert compilations(helped) == 5


def test_a_variable_that_a_helper_captures_is_always_fresh():
    assert value(helped(ONES)) == [3.0] * 3
    before = compilations(helped)
    BIAS.assign(10.0)
    assert value(helped(ONES)) == [13.0] * 3
    assert compilations(helped) == before
    BIAS.assign(0.0)


def test_helpers_in_containers_partials_and_methods(monkeypatch):
    steps = [innermost, functools.partial(helper, extra=1)]

    @pcbatch.autobatch(jit=False)
    def stepped(x):
        return steps[1](steps[0](x))

    assert value(stepped(ONES)) == [6.0] * 3
    monkeypatch.setitem(globals(), "GAIN", 3)
    assert value(stepped(ONES)) == [11.0] * 3
    steps[0] = abs
    assert value(stepped(ONES)) == [5.0] * 3


def test_helpers_that_call_each_other_have_a_fingerprint(monkeypatch):
    """`left_or_right` and `right_or_left` capture each other; the number behind them is found all the same."""

    @pcbatch.autobatch(jit=False)
    def walked(x):
        return left_or_right(x, 3)

    assert value(walked(ONES)) == [5.0] * 3
    monkeypatch.setitem(globals(), "STRIDE", 10.0)
    assert value(walked(ONES)) == [32.0] * 3


STRIDE = 1.0


def left_or_right(x, turns):
    return right_or_left(x + STRIDE, turns - 1) if turns else x


def right_or_left(x, turns):
    return left_or_right(2.0 * x, turns - 1) if turns else x


def test_nothing_changed_is_nothing_compiled():
    """The fingerprint of what helpers capture is the same from call to call."""
    for _ in range(3):
        helped(ONES)
    before = compilations(helped)
    helped(ONES)
    assert compilations(helped) == before


KEPT = {}


def difference_to_the_one_before(x):
    before = KEPT.get("x")
    KEPT["x"] = x
    return x if before is None else x - before


def the_one_before(x):
    before = KEPT.get("x", x)
    KEPT["x"] = x
    return before


def sum_of_all(x):
    KEPT.setdefault("all", []).append(x)
    return tf.add_n(KEPT["all"])


def chosen(x):
    before = KEPT.setdefault("chosen", x)
    return tf.cond(x > 0, lambda: before, lambda: x)


def twice(function):
    """What calls a helper in two pieces, and gives what the second call gives."""

    @pcbatch.autobatch
    def called(x):
        first = function(x)
        while x < first + 2.0:
            x = x + 1.0
        return function(x)

    return called


@pytest.mark.parametrize("function", [difference_to_the_one_before, the_one_before, sum_of_all, chosen])
def test_what_a_helper_keeps_of_a_lane_is_refused(function):
    KEPT.clear()
    with pytest.raises(pcbatch.CompileError, match=r"PCB204: (.|\n)* help: ") as caught:
        twice(function)(ONES)
    assert all(each.span.file == __file__ for each in caught.value.diagnostics)
    assert not KEPT


def unread(function):
    """A function that cannot be read, and does what another one does."""

    def called(x):
        try:
            return function(x)
        finally:
            pass

    return called


@pytest.mark.parametrize("function", [difference_to_the_one_before, the_one_before, sum_of_all, chosen])
def test_tensors_that_are_kept_are_refused_where_they_are_used_again(function):
    KEPT.clear()
    with pytest.raises(pcbatch.CompileError, match=r"PCB(401|424): (.|\n)* help: ") as caught:
        twice(unread(function))(ONES)
    assert all(each.span.file == __file__ for each in caught.value.diagnostics)


class Layer:
    """What keeps a tensor and uses it in the same run, as layers do, keeps nothing from run to run."""

    def __call__(self, x):
        self.hidden = tf.tanh(x)
        return self.hidden * self.hidden


layer = Layer()


def test_what_is_kept_in_an_object_of_the_world_is_refused():
    with pytest.raises(pcbatch.CompileError, match=r"PCB204: (.|\n)*self\.hidden = tf\.tanh"):
        twice(layer)(ONES)


def test_a_helper_that_cannot_be_read_may_keep_what_it_makes_anew_in_each_run():
    np.testing.assert_allclose(twice(unread(layer))(ONES), np.tanh(3 * ONES) ** 2, rtol=1e-6)
