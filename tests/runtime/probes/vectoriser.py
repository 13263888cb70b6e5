"""Tests of the internals of pfor that `private` uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from tests.runtime.probes.use import Use


def _no_rules(registry: Any, wrap: Any) -> None:
    """Leave a copy of pfor as it is."""


def _vectorized(body: Callable[[tf.Tensor], tf.Tensor], register: Callable[[Any, Any], None] = _no_rules) -> Any:
    """`body`, of one lane's number, for the numbers 1 and 2 by a copy of pfor with such rules of its own."""
    graph = private.new_graph("probe")
    with graph.as_default():
        number = tf.compat.v1.placeholder(tf.float32, [])
        result = body(number)
    conversion = private.Conversion(private.copy_of_pfor(register), graph, 2)
    conversion.give(number, tf.constant([1.0, 2.0]), True)
    return conversion.convert(result)


def _pfor_converts() -> bool:
    def run() -> tf.Tensor:
        found = _vectorized(lambda x: x * 2.0 + 1.0)
        return found.t if found.is_stacked else tf.zeros(2)

    return tf.function(run, autograph=False)().numpy().tolist() == [3.0, 5.0]


def _copies_are_apart() -> bool:
    def squares(x: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.Square(x=x)

    def run() -> tf.Tensor:
        theirs = tf.vectorized_map(squares, tf.constant([1.0, 2.0]))
        return tf.stack([_vectorized(squares, _halving).t, _vectorized(squares).t, theirs])

    return tf.function(run, autograph=False)().numpy().tolist() == [[0.5, 1.0], [1.0, 4.0], [1.0, 4.0]]


def _halving(registry: Any, wrap: Any) -> None:
    """Let a copy of pfor halve where it should square."""
    registry["Square"] = lambda inputs: [wrap(inputs.stacked_input(0) / 2.0, True)]


def _rules_on_operations_are_found() -> bool:
    seen = []

    def rule(inputs: Any) -> Iterator[tuple[tf.Tensor, bool]]:
        seen.append((private.is_tensorflows(inputs), tf.get_static_value(private.lanes_of(inputs))))
        yield inputs.stacked_input(0) * 5.0, True

    def marked(x: tf.Tensor) -> tf.Tensor:
        result = tf.sin(x)
        private.set_rule(result.op, rule)
        return result

    def run() -> tf.Tensor:
        return _vectorized(marked).t + tf.vectorized_map(marked, tf.constant([1.0, 2.0]))

    found = tf.function(run, autograph=False)().numpy().tolist()
    return found == [10.0, 20.0] and [theirs for theirs, _ in seen] == [False, True]


def _failing_operations_are_found() -> bool:
    found: list[str] = []

    def run() -> tf.Tensor:
        try:
            _vectorized(lambda x: tf.unique(x[None]).y)
        except Exception as error:  # whatever pfor raises
            found.extend(operation.type for operation in private.operations_being_converted(error))
        return tf.zeros([])

    tf.function(run, autograph=False)()
    return found[-1:] == ["Unique"]


USES = (
    Use("pfor converts", _pfor_converts, "PCB580: batched functions run with backend='reference' only"),
    Use("a copy of pfor", _copies_are_apart, "PCB580: batched functions run with backend='reference' only"),
    Use(
        "rules on operations",
        _rules_on_operations_are_found,
        "TensorFlow's rules batch pcbatch.primitive and pcbatch.fallback functions; draws trace ten times as long",
    ),
    Use("the operation that failed", _failing_operations_are_found, "PCB402 becomes an error of TensorFlow's own"),
)
