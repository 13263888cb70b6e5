"""Tests of the features of XLA that `private` uses."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private, prompt
from pcbatch.runtime.backends.tensorflow.xla_cpu import lane_arrays
from tests.runtime.probes.use import Use


def _xla_is_known() -> bool:
    def inside() -> tf.Tensor:
        nested = tf.function(lambda: tf.constant(private.in_xla(tf.compat.v1.get_default_graph())), autograph=False)
        return tf.constant(private.in_xla(tf.compat.v1.get_default_graph())) & nested()

    found = [bool(tf.function(inside, autograph=False, jit_compile=jit)()) for jit in (True, None)]
    return found == [True, False]


def _slices_are_updated() -> bool:
    update = private.update_slice()
    if update is None:
        return False
    found = tf.function(update, jit_compile=True)(tf.zeros(3), tf.ones(1), tf.constant([1]))
    return found.numpy().tolist() == [0.0, 1.0, 0.0]


def _slices_are_read() -> bool:
    part = private.dynamic_slice()
    if part is None:
        return False
    found = tf.function(part, jit_compile=True)(tf.range(3), tf.constant([1]), tf.constant([1]))
    return found.numpy().tolist() == [1]


def _modules_are_called() -> bool:
    return private.has_modules() and lane_arrays.are_made()


def _constants_are_read() -> bool:
    traced = tf.function(lambda x: x + tf.range(64), jit_compile=True, autograph=False)
    module = traced.experimental_get_compiler_ir(tf.TensorSpec([64], tf.int32))(stage="hlo_serialized")
    found = private.hlo_constants(module)
    return found is not None and any(numbers.tolist() == [*range(64)] for numbers in found.values())


def _code_is_lowered_for_cpus() -> bool:
    traced, spec = tf.function(lambda x: tf.sin(x), jit_compile=True, autograph=False), tf.TensorSpec([64])
    found: bool = private.compiler_ir(traced, [spec])("hlo") == traced.experimental_get_compiler_ir(spec)(stage="hlo")
    return found


MANY = 10**7


def _loops_read_memory() -> bool:
    """A loop that another thread ends, by a number in memory; if it does not read that, it ends by itself."""

    def loop(array: tf.Tensor) -> Sequence[tf.Tensor]:
        def goes_on(turn: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
            return (turn < MANY) & ~prompt.read(array, turn)

        start = tf.constant(0), tf.ones([3])
        return tf.while_loop(goes_on, lambda turn, x: [turn + 1, tf.sin(x)], start)

    compiled = tf.function(loop, jit_compile=True, autograph=False)
    stopped = prompt.Mark()
    stopped.set()
    compiled(stopped.array)  # is compiled by now
    turns = 0
    for seconds in (0.02, 0.05, 0.2):  # on a busy machine the mark may be set before the loop has begun
        mark = prompt.Mark()
        timer = threading.Timer(seconds, mark.set)
        timer.start()
        turns = turns or int(compiled(mark.array)[0])
        timer.join()
    return 0 < turns < MANY


USES = (
    Use(
        "loops that are told to stop", _loops_read_memory, "Ctrl-C in a run in lockstep takes effect when it has ended"
    ),
    Use(
        "being inside XLA",
        _xla_is_known,
        "all is taken to run without XLA: nothing is tuned to it; a recursion or a fault inside a jit_compile=True "
        "function of the user's own fails with a message of XLA's. A warning says so",
    ),
    Use(
        "update of a slice",
        _slices_are_updated,
        "reading large arrays under XLA takes longer; as without small loops as functions",
    ),
    Use("part of an array", _slices_are_read, "as without small loops as functions"),
    Use(
        "constants of HLO",
        _constants_are_read,
        "cheap programs with a constant of a few dozen numbers run in lockstep, which takes several times as long",
    ),
    Use("code lowered for CPUs", _code_is_lowered_for_cpus, "first calls take 50 ms more"),
    Use("small loops as functions", _modules_are_called, "lanes that are gathered are listed in some 3 to 40 us more"),
)
