"""Tests of the internals of gradient tapes that `private` uses."""

from __future__ import annotations

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from tests.runtime.probes import ways
from tests.runtime.probes.use import Use


def _tapes_pause() -> bool:
    x = tf.constant(3.0)
    outside = private.may_record()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        inside = private.may_record()
        with private.unrecorded():
            hidden = x * x
            shown = tf.identity(hidden)
        private.record_as_one("probe", [shown], [x], lambda upstream: [upstream * 7.0])
    return (outside, inside) == (False, True) and tape.gradient(hidden, x) is None and tape.gradient(shown, x) == 7.0


def _nobody_watches() -> bool:
    outside = private.is_unseen()
    with tf.GradientTape():
        inside = private.is_unseen()
    with private.new_graph("probe").as_default():
        later = private.is_unseen()
    is_shorter = ways.is_shorter(private.is_unseen, than=lambda: tf.executing_eagerly() and not private.may_record())
    return is_shorter and (outside, inside, later) == (True, False, False)


def _watchers_are_known() -> bool:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        before = private.is_watched([x])
        tape.watch(x)
        watched = private.is_watched([x * 2.0])
    return (before, watched, private.is_watched([x])) == (False, True, False)


def _forward_mode_is_known() -> bool:
    x, y = tf.constant(3.0), tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)):
        inside = private.has_tangents([y, x * 2.0]), private.has_tangents([y])
    return inside == (True, False) and not private.has_tangents([x])


def _gradients_are_set() -> bool:
    graph = private.new_graph("probe")
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        plain, own = tf.sin(x), tf.sin(x)
        private.set_gradient(own.op, lambda upstream: upstream * 7.0)
        custom = tf.custom_gradient(lambda y: (y * 2.0, lambda upstream: upstream * 5.0))(x)
        (found,) = tf.gradients(own, x)
    has_own = [private.has_own_gradient(each.op) for each in (plain, own, custom)]
    return has_own == [False, True, True] and "Mul" in found.op.type


def _inputs_are_changed() -> bool:
    graph = private.new_graph("probe")
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        first, second = tf.sin(x), tf.exp(x)
        last = tf.cos(first)
        private.update_input(last.op, 0, second)
    return private.rewires() and last.op.inputs[0] is second and not first.consumers()


USES = (
    Use("tapes asked at once", _nobody_watches, "each warm call of a program takes a little longer"),
    Use(
        "tapes that pause",
        _tapes_pause,
        "a batched call under a gradient tape fails with an error of TensorFlow's own; PCB580 for calls of "
        "pcbatch.primitive and pcbatch.fallback functions",
    ),
    Use(
        "who watches",
        _watchers_are_known,
        "under any tape every batched call is recorded, whether the tape watches it or not",
    ),
    Use(
        "forward mode",
        _forward_mode_is_known,
        "the first call of a program in forward mode may fail with an error of TensorFlow's own, not PCB601",
    ),
    Use(
        "gradients of operations",
        _gradients_are_set,
        "no gradients through pcbatch.primitive; conditionals under a tape lose a gradient of one's own in an arm",
    ),
    Use(
        "inputs that change",
        _inputs_are_changed,
        "PCB603 for conditionals, and under XLA for loops, in lines that a gradient flows through",
    ),
)
