"""Whether TensorFlow has what `private` uses of what only XLA has."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import native, private, prompt, ready
from pcbatch.runtime.backends.tensorflow.probes.use import Use


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
    return private.has_modules() and native.are_made()


def _constants_are_read() -> bool:
    traced = tf.function(lambda x: x + tf.range(64), jit_compile=True, autograph=False)
    module = traced.experimental_get_compiler_ir(tf.TensorSpec([64], tf.int32))(stage="hlo_serialized")
    found = private.hlo_constants(module)
    return found is not None and any(numbers.tolist() == [*range(64)] for numbers in found.values())


MANY = 10**7


def _loops_read_memory() -> bool:
    """A loop that another thread ends, by a number in memory; if it does not read that, it ends by itself."""
    mark = prompt.Mark()

    def loop(array: tf.Tensor) -> Sequence[tf.Tensor]:
        def goes_on(turn: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
            return (turn < MANY) & ~prompt.read(array, turn)

        start = tf.constant(0), tf.ones([3])
        return tf.while_loop(goes_on, lambda turn, x: [turn + 1, tf.sin(x)], start)

    compiled = tf.function(loop, jit_compile=True, autograph=False)
    stopped = prompt.Mark()
    stopped.set()
    compiled(stopped.array)  # is compiled by now
    timer = threading.Timer(0.02, mark.set)
    timer.start()
    turns, _ = compiled(mark.array)
    timer.join()
    return 0 < int(turns) < MANY


def _products_are_native() -> bool:
    """XLA may hand a product to a library that a native function cannot call: it compiles none of 2.22.0rc0's."""

    def product(x: tf.Tensor, matrix: tf.Tensor) -> list[tf.Tensor]:
        with ready.reusing():
            return native.call(lambda x, matrix: [tf.matmul(x, matrix)], [x, matrix])

    found, _ = tf.function(product, jit_compile=True, autograph=False)(tf.ones([2, 5]), tf.ones([5, 12]))
    return native.are_made() and bool(tf.reduce_all(found == 5.0))


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
        "reading large arrays under XLA takes longer; as without native functions",
    ),
    Use("part of an array", _slices_are_read, "as without native functions"),
    Use(
        "constants of HLO",
        _constants_are_read,
        "cheap programs with a constant of a few dozen numbers run in lockstep, which takes several times as long",
    ),
    Use("native functions", _modules_are_called, "cheap programs run in lockstep, which takes several times as long"),
    Use(
        "products in native functions",
        _products_are_native,
        "PCB440 for cheap programs with products of matrices, unless form='lockstep'",
    ),
)
