"""Whether TensorFlow has what `private` uses of traced functions."""

from __future__ import annotations

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.probes.use import Use


def _variables_are_known() -> bool:
    variable = tf.Variable(1.0)
    traced = tf.function(lambda: variable * 2.0, autograph=False).get_concrete_function()
    return [v is variable for v in private.trainable_variables(traced)] == [True]


def _calls_are_made() -> bool:
    factor = tf.constant(3.0)
    concrete = tf.function(lambda x: [x * factor], autograph=False).get_concrete_function(tf.constant(2.0))
    (found,) = private.call(concrete, [tf.constant(2.0)])
    return hasattr(concrete, "_call_flat") and float(found) == 6.0


def _functions_are_called_directly() -> bool:
    factor = tf.constant([3.0] * 1000)  # what is small would be no capture
    function = tf.function(lambda x: [x * 2.0, x * factor], autograph=False)
    direct = private.direct(function.get_concrete_function(tf.constant(2.0)))
    doubled, others = [] if direct is None else direct([tf.constant(2.0)])
    return float(doubled) == 4.0 and float(others[0]) == 6.0


def _functions_are_called_at_once() -> bool:
    function = tf.function(lambda x: [x * 2.0], autograph=False)
    at_once = private.at_once(function.get_concrete_function(tf.constant(2.0)))
    (doubled,) = [] if at_once is None else at_once([tf.constant(2.0)])
    return float(doubled) == 4.0 and type(doubled) is private.TENSOR_NOW


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


USES = (
    Use("variables of a traced function", _variables_are_known, "no gradients of variables through pcbatch.primitive"),
    Use("calls of traced functions", _calls_are_made, "each call of a program takes longer"),
    Use("calls without a look", _functions_are_called_directly, "each warm call of a program takes longer"),
    Use("calls without a question", _functions_are_called_at_once, "each warm call of a program takes a little longer"),
    Use("a thread's device", _devices_are_told, "beside a GPU, what is run on the CPU is compiled as for the GPU"),
    Use("functions as data", _definitions_are_called, "pcbatch.cache keeps nothing"),
    Use("functions without an order", _nothing_waits, "programs take longer to run without XLA"),
)
