"""Functions of TensorFlow's by content: the same program has the same name, however often it is traced."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.invariants import portable

X = tf.constant([1.0, -2.0, 0.5])


def mapped(x: tf.Tensor) -> tf.Tensor:
    return tf.map_fn(lambda v: tf.nn.relu(v) + x[0], x)


def scanned(x: tf.Tensor) -> tf.Tensor:
    return tf.scan(lambda a, v: a * x[1] + v, x)


def looped(x: tf.Tensor) -> tf.Tensor:
    def inner(y: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 2, lambda i, z: (i + 1, z + x), (tf.constant(0), y))[1]

    return tf.while_loop(lambda y: tf.reduce_sum(y) < 20.0, lambda y: inner(tf.abs(y) + 1.0), (x,))


def chosen(x: tf.Tensor) -> tf.Tensor:
    return tf.cond(x[0] > 0.0, lambda: mapped(x), lambda: scanned(x))


def gradient(x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(mapped(x) * scanned(x))
    return tape.gradient(y, x)


def given_back(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return x, mapped(x)


@pytest.mark.parametrize("function", [mapped, scanned, looped, chosen, gradient, given_back])
def test_a_program_traced_again_has_the_same_name(function: Any) -> None:
    """TensorFlow numbers functions, and names arguments of a loop's after them."""
    found = []
    for _ in range(2):
        concrete = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec([3]))
        name, every = portable(*private.definitions(concrete))
        found.append((name, [each.SerializeToString(deterministic=True) for each in every]))
    assert found[0] == found[1]
    for definition in every:
        private.define(definition)
    wanted = tf.nest.flatten(concrete(X))
    for one, other in zip(private.call_defined(name, [X], len(wanted)), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_another_order_of_arguments_is_another_program() -> None:
    spec = tf.TensorSpec([3])
    names = set()
    for function in (lambda a, b: a - b, lambda a, b: b - a):
        concrete = tf.function(function, autograph=False).get_concrete_function(spec, spec)
        names.add(portable(*private.definitions(concrete))[0])
    assert len(names) == 2


def test_functions_are_in_one_order_whatever_the_order_of_attributes() -> None:
    """A map of Protocol Buffers has an order that depends on the process and on what was put in first."""
    names = [f"called_{number}" for number in range(30)]

    def calling(keys: list[str]) -> list[Any]:
        library = tf.compat.v1.GraphDef().library
        for number, name in enumerate(names):
            called = library.function.add()
            called.signature.name = name
            called.node_def.add(name=f"node_{number}", op="NoOp")
        main = library.function.add()
        main.signature.name = "main"
        node = main.node_def.add(name="choice", op="Case")
        for key in keys:
            node.attr[key].func.name = key
        return [*library.function]

    forwards, backwards = (portable("main", calling(keys)) for keys in (names, names[::-1]))
    assert len(forwards[1]) == 31
    assert forwards == backwards
