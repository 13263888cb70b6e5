"""Truth and choice: `bool`, `not`, `and`, `or`, `a if c else b`, `any` and `all` of values of a lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.tensorflow.gradients import refuse_variables
from pcbatch.runtime.backends.tensorflow.recorder import when
from pcbatch.runtime.backends.tensorflow.structures import joined_type, leaf_tensors, type_of, wrap
from pcbatch.runtime.backends.tensorflow.weak import carrier, is_lane_value


def to_bool(x: Any) -> Any:
    """`bool(x)`: numbers are true unless zero; TypeError for arrays, whose truth is ambiguous."""
    if not is_lane_value(x):
        return bool(x)
    tensor = carrier(x)
    if tensor.shape.rank != 0:
        shape = tensor.shape.as_list()
        raise TypeError(f"the truth value of an array of shape {shape} is ambiguous; write tf.reduce_any(..)")
    return tensor if tensor.dtype == tf.bool else tf.not_equal(tensor, tf.zeros_like(tensor))


def negate(a: Any) -> Any:
    """`not a`."""
    truth = to_bool(a)
    return tf.logical_not(truth) if is_lane_value(truth) else not truth


def both(a: Any, b: Callable[[], Any]) -> Any:
    """`a and b()`: both are evaluated, but faults of `b` count only where `a` holds. Their types must join."""
    if not is_lane_value(a):
        return a and b()
    holds = to_bool(a)
    with when(holds):
        other = b()
    _refuse_mixed(a, other, "and")
    return choose(holds, other, a)


def either(a: Any, b: Callable[[], Any]) -> Any:
    """`a or b()`: both are evaluated, but faults of `b` count only where `a` does not hold. Their types must join."""
    if not is_lane_value(a):
        return a or b()
    holds = to_bool(a)
    with when(tf.logical_not(holds)):
        other = b()
    _refuse_mixed(a, other, "or")
    return choose(holds, a, other)


def guarded(condition: Any, what: Callable[[], Any]) -> Any:
    """`what()`, whose faults count only where `condition` holds."""
    with when(to_bool(condition)):
        return what()


def _refuse_mixed(a: Any, b: Any, operator: str) -> None:
    """TypeError for a number and a bool: Python gives one of them, a lane's value has one type."""
    kinds = [type_of(each) for each in (a, b)]
    names = [each.dtype for each in kinds if isinstance(each, TensorType)]
    if len(names) == len(kinds) and len([name for name in names if name == "bool"]) == 1:
        raise TypeError(f"`{operator}` gives one of its operands, got {names[0]} or {names[1]}")


def select(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """`a() if condition else b()`: faults of the arm that is not taken do not count. Their types must join."""
    holds = to_bool(condition)
    if not is_lane_value(holds):
        return a() if holds else b()
    with when(holds):
        first = a()
    with when(tf.logical_not(holds)):
        second = b()
    return choose(holds, first, second)


def choose(condition: tf.Tensor, a: Any, b: Any) -> Any:
    """`a` where the scalar `condition` holds, else `b`, in the join of their types."""
    type_ = joined_type(a, b)
    refuse_variables([*values.flatten(type_, a), *values.flatten(type_, b)])
    leaves = leaf_tensors(a, type_), leaf_tensors(b, type_)
    if not tf.is_symbolic_tensor(condition):  # a tape sees what one example takes
        chosen = leaves[0] if bool(condition) else leaves[1]
    else:
        chosen = [tf.where(condition, x, y, name=_CHOICE) for x, y in zip(*leaves, strict=True)]
    return wrap(values.pack(type_, chosen), type_)


_CHOICE = "pcbatch_choice"
"""The name of the operation, by which `is_choice` knows it from a user's `tf.where`."""


def is_choice(operation: Any) -> bool:
    """Return whether an operation is a choice that one example would make by evaluating only one of the values."""
    return _CHOICE in operation.name and operation.type in ("Select", "SelectV2")


def any_of(xs: Any) -> Any:
    """Return `any(xs)` of a vector, or of a fixed number of values: those that Python would skip cannot fail."""
    if is_lane_value(xs):
        return tf.reduce_any(_truths(xs, "any"))
    return _settled(xs, False, tf.logical_not, tf.logical_or)


def all_of(xs: Any) -> Any:
    """`all(xs)`, see `any_of`."""
    if is_lane_value(xs):
        return tf.reduce_all(_truths(xs, "all"))
    return _settled(xs, True, tf.identity, tf.logical_and)


def _truths(x: Any, name: str) -> tf.Tensor:
    tensor = carrier(x)
    if tensor.shape.rank != 1:
        raise TypeError(f"{name} of one array takes a vector; write tf.reduce_{name}(..)")
    return tensor if tensor.dtype == tf.bool else tf.not_equal(tensor, tf.zeros_like(tensor))


def _settled(
    xs: Any, start: bool, goes_on: Callable[[tf.Tensor], tf.Tensor], combined: Callable[..., tf.Tensor]
) -> Any:
    """The truth of all items together; an item counts for lanes whose answer is still open, as Python evaluates it."""
    answer: Any = start
    items = iter(xs)
    while True:
        with when(goes_on(tf.convert_to_tensor(answer))):
            try:
                truth = to_bool(next(items))
            except StopIteration:
                return answer
        if not is_lane_value(truth) and not is_lane_value(answer):
            answer = truth
            if truth is not start:
                return answer
        else:
            answer = combined(answer, truth)
