"""Calls of batched functions from code that is one piece: one operation each, which all lanes run as one batch.

A density that `pcbatch.nuts` is handed is such code: its gradient is taken in the piece that calls it, so calls in it
cannot be taken out of it. The trace for one example has an operation that only says what comes out; for all lanes its
rule runs the callee, with the arguments that differ by lane as a batch. A gradient that is asked for inside the piece
comes from a taped run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.ir import values
from pcbatch.ir.types import StructType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends import pieces
from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, private
from pcbatch.runtime.backends.tensorflow.opaque import Call
from pcbatch.runtime.backends.tensorflow.recorder import can_fault, fault

Arguments = Mapping[str, Any]


class Program(Protocol):
    """A batched function as compiled for some arguments."""

    @property
    def result_type(self) -> Type:
        """The type of its result for one example."""

    @property
    def captured(self) -> list[Any]:
        """The arrays that it captures, and variables."""

    @property
    def can_fail(self) -> bool:
        """True if a lane of it may fail."""

    def state(self) -> tuple[Any, ...]:
        """A snapshot of the program and of the arrays that it captures, to be compared with a later one."""


class Callee(Protocol):
    """A batched function, as it is run for the lanes of a piece."""

    function: Any
    """The batched function itself."""
    static_argnames: tuple[str, ...]

    def program(self, arguments: Arguments, axes: Arguments) -> Program:
        """Return its program for arguments with such axes."""

    def run_batch(self, arguments: Arguments, axes: Arguments) -> tuple[Any, Any]:
        """The results for a batch, and a mask of the lanes that have not failed, bool `[lanes]`."""


def run(function: Any, *arguments: Any, site: int, **keywords: Any) -> Any:
    """Return what a batched function gives for the lane of the piece that is traced; a fault where it fails."""
    arguments = tuple(tf.convert_to_tensor(each) if isinstance(each, tf.Variable) else each for each in arguments)
    value, fine = function.as_operation(arguments, keywords)
    if fine is not None:
        fault(~fine, site)
    return value


def call_batched(callee: Callee, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, tf.Tensor | None]:
    """`callee(*args, **kwargs)` for the lane of the piece that is traced, and whether the lane has not failed there.

    The latter is None where no lane can fail.
    PieceRefusalError PCB405 inside a function that TensorFlow calls, PCB413 where the callee reads from around it what
    differs by lane.
    """
    name = callee.function.__name__
    is_run = tf.executing_eagerly()  # for this lane alone, by the reference
    if not can_fault() or not (is_run or custom_vectorised_ops.is_tracing_lane()):
        raise PieceRefusalError(
            "PCB405",
            f"the batched function `{name}` is called inside a function that TensorFlow runs by itself",
            "call it outside of tf.map_fn, tf.scan, tf.while_loop, tf.cond, tf.vectorized_map and tf.function: a loop "
            "of calls can be a batched function of its own",
        )
    call = Call(callee.function, args, kwargs, static=frozenset(callee.static_argnames))
    given = _with_leaves(call, [*map(_row, call.leaves)])
    axes = _axes(call, [tf.is_tensor(leaf) for leaf in _leaves_of(call, given)])
    program = callee.program(given, axes)
    if any(map(_is_of_lane, program.captured)):
        raise PieceRefusalError(
            "PCB413",
            f"`{name}` reads a value from around it that differs by lane, or by which a gradient is taken",
            "pass it as an argument",
        )
    pieces.note(program.state)
    call.result = program.result_type
    results = [*leaf_types(call.result)]

    def one(*_: tf.Tensor) -> list[tf.Tensor]:
        return [*(tf.zeros(each.shape, each.dtype) for each in results), tf.constant(True)]

    def batch(varies: Sequence[bool], *leaves: tf.Tensor) -> list[tf.Tensor]:
        assert call.result is not None
        value, fine = callee.run_batch(_with_leaves(call, leaves), _axes(call, varies))
        return [*map(tf.convert_to_tensor, values.flatten(call.result, value)), fine]

    if is_run:
        *found, fine = (each[0] for each in batch([True] * len(call.leaves), *map(_row, call.leaves)))
        return call.pack(found), fine if program.can_fail else None
    watched = [place for place, leaf in enumerate(call.leaves) if private.is_watched([leaf])]
    *found, fine = custom_vectorised_ops.call(
        one, call.leaves, custom_vectorised_ops.Run(batch, frozenset(watched)), name
    )
    return call.pack(found), fine if program.can_fail else None


def _row(leaf: tf.Tensor) -> tf.Tensor:
    return tf.expand_dims(leaf, 0)


def _is_of_lane(array: Any) -> bool:
    if isinstance(array, tf.Variable):
        return private.is_watched([array.handle])
    return tf.is_tensor(array) and (tf.is_symbolic_tensor(array) or private.is_watched([array]))


def _with_leaves(call: Call, leaves: Sequence[tf.Tensor]) -> dict[str, Any]:
    """The arguments with `leaves` in place of their own; Python's numbers stay."""
    own = _leaves_of(call, call.bound.arguments)
    kept = [each if isinstance(each, (bool, int, float)) else leaf for each, leaf in zip(own, leaves, strict=True)]
    return dict(call.arguments(kept, wrapped=False).arguments)


def _leaves_of(call: Call, arguments: Arguments) -> list[Any]:
    """The leaves of arguments of the call that have some of a lane."""
    return [leaf for name, type_ in call.types.items() for leaf in values.flatten(type_, arguments[name])]


def _axes(call: Call, varies: Sequence[bool]) -> dict[str, Any]:
    """The axes of all arguments: 0 for the leaves that differ by lane."""
    remaining = iter(varies)

    def axes(type_: Type) -> Any:
        if not isinstance(type_, StructType):
            return 0 if next(remaining) else None
        parts = [axes(item) for item in type_.items]
        return dict(zip(type_.keys, parts, strict=True)) if type_.keys else tuple(parts)

    found = {name: axes(type_) for name, type_ in call.types.items()}
    return {name: found.get(name) for name in call.bound.signature.parameters}
