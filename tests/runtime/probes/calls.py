"""Tests of the internals for traced functions that `private` uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.private import lookup
from tests.runtime.probes import ways
from tests.runtime.probes.use import Use


def _variables_are_known() -> bool:
    variable = tf.Variable(1.0)
    traced = tf.function(lambda: variable * 2.0, autograph=False).get_concrete_function()
    return [v is variable for v in private.trainable_variables(traced)] == [True]


def _tripled() -> tuple[Any, list[tf.Tensor]]:
    """A concrete function that captures, with arguments for it: it gives 4 and 6."""
    factor = tf.constant([3.0] * 1000)  # what is small would be no capture
    function = tf.function(lambda x: [x * 2.0, x * factor], autograph=False)
    return function.get_concrete_function(tf.constant(2.0)), [tf.constant(2.0)]


def _are_right(found: Sequence[tf.Tensor]) -> bool:
    doubled, tripled = found
    return float(doubled) == 4.0 and type(doubled) is private.TENSOR_NOW and float(tripled[0]) == 6.0


def _calls_are_made() -> bool:
    concrete, given = _tripled()
    is_shorter = ways.is_shorter(lambda: private.call(concrete, given), than=lambda: concrete(*given))
    return is_shorter and _are_right(private.call(concrete, given))


def _functions_are_called_directly() -> bool:
    concrete, given = _tripled()
    direct = private.direct(concrete)
    if direct is None:
        return False
    is_shorter = ways.is_shorter(lambda: direct(given), than=lambda: private.call(concrete, given))
    return is_shorter and _are_right(direct(given))


def _functions_are_called_at_once() -> bool:
    concrete, given = _tripled()
    (name, _), whole = private.definitions(concrete), [*given, *concrete.captured_inputs]

    def looked_up() -> list[tf.Tensor]:
        return private.call_defined(name, whole, 2)

    def is_quick(compiled: bool) -> bool:
        direct = private.direct(concrete, compiled)
        if direct is None:
            return False
        return ways.is_shorter(lambda: direct(given), than=looked_up) and _are_right(direct(given))

    return is_quick(compiled=False) and is_quick(compiled=True)


def _tensors_tell() -> bool:
    """Their dtypes and shapes."""
    tensors = [tf.zeros([2, 3], tf.int32)]
    is_shorter = [
        ways.is_shorter(way, than=lambda: [(tensor.dtype, tensor.shape) for tensor in tensors])
        for way in (lambda: private.specs(tensors), lambda: [private.spec(tensor) for tensor in tensors])
    ]
    dtype, shape = private.spec(tensors[0])
    return all(is_shorter) and private.specs(tensors) == ((dtype, shape),) == ((tf.int32, (2, 3)),)


def _devices_are_told() -> bool:
    with tf.device("/CPU:0"):
        inside = private.device_now()
    return "/device:CPU:0" in inside


def _nothing_waits() -> bool:
    def two_effects() -> None:
        tf.raw_ops.PrintV2(input="1")
        tf.raw_ops.PrintV2(input="2")

    function = tf.function(two_effects, autograph=False, experimental_attributes=private.unordered())
    return not any(op.control_inputs for op in function.get_concrete_function().graph.get_operations())


def _definitions_are_called() -> bool:
    """Functions as plain data, which TensorFlow runs by name."""
    if not private.keeps_functions():
        return False

    def plus(x: tf.Tensor) -> tf.Tensor:
        return x + 1.0

    concrete = tf.function(plus, autograph=False).get_concrete_function(tf.TensorSpec([], tf.float32))
    _, (*_, definition) = private.definitions(concrete)
    copy = type(definition)()
    copy.CopyFrom(definition)
    copy.signature.name = "pcbatch_probe"
    private.define(copy)
    (found,) = private.call_defined("pcbatch_probe", [tf.constant(1.0)], 1)
    private.undefine("pcbatch_probe")
    return float(found) == 2.0


def _memory_is_adopted() -> bool:
    memory = np.arange(64, dtype=np.float32)
    array, public = memory[-memory.ctypes.data % 64 // 4 :][:4], tf.experimental.dlpack.from_dlpack
    make = private.from_dlpack()
    is_shorter = ways.is_shorter(lambda: make(array.__dlpack__()), than=lambda: public(array.__dlpack__()))
    return is_shorter and make(array.__dlpack__()).numpy().tolist() == array.tolist()


def _beginning_is_told() -> bool:
    return private.has_begun() and hasattr(lookup.needed(lookup.CONTEXT)(), "_initialized")


USES = (
    Use("variables of a traced function", _variables_are_known, "no gradients of variables through pcbatch.primitive"),
    Use("calls of traced functions", _calls_are_made, "each call of a program takes longer"),
    Use("calls without a look", _functions_are_called_directly, "each warm call of a program takes longer"),
    Use("calls without a question", _functions_are_called_at_once, "each warm call of a program takes a little longer"),
    Use("tensors in memory of one's own", _memory_is_adopted, "each warm native call takes a little longer"),
    Use("dtypes and shapes of tensors", _tensors_tell, "each warm call of a program takes a little longer"),
    Use("a thread's device", _devices_are_told, "beside a GPU, what is run on the CPU is compiled as for the GPU"),
    Use("whether TensorFlow has begun", _beginning_is_told, "pcbatch.gpu always says that it comes too late"),
    Use("functions as data", _definitions_are_called, "pcbatch.cache keeps nothing"),
    Use("functions without an order", _nothing_waits, "programs take longer to run without XLA"),
)
