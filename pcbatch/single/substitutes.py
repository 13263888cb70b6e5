"""Substitutes for functions that one example calls: pcbatch's own, `heapq` and `bisect`, and gradient tapes.

The functions in C of `heapq` and `bisect` ask for a list, which a bounded list is not.

Gradient tapes watch the tensors of the example's values.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.installed import OWN
from pcbatch.runtime.backends.tensorflow import bounded as lanes
from pcbatch.runtime.backends.tensorflow.mapping import checked_count
from pcbatch.single.calls import library, plain, shown
from pcbatch.single.values import Array, Number, Value, Variable, Watched, constant, operand, tensor

# -- pcbatch's own functions -------------------------------------------------------------------------------------------


Place = tuple[str, int, int, int, int]
"""A call in a source: its file, and where it begins and ends."""


class Bounded(lanes.Bounded):
    """A bounded list that changes in place, as a list does."""

    def _element(self, place: int) -> Any:
        found = self.items[place]
        return found.__copy__() if isinstance(found, Array) else found

    def _store(self, place: int, value: Any) -> None:
        self.items[place] = value

    def _count(self, length: int) -> None:
        self.length = Number(np.int32(length))


def bounded(shape: Any, dtype: Any, capacity: Any) -> Bounded:
    """See `pcbatch.bounded`."""
    found = lanes.bounded(shape, dtype, capacity)
    return Bounded(Array(found.items.numpy()), Number(np.int32(0)))


def mapping(empty: Callable[[Place, int], Any]) -> Callable[..., Any]:
    """`pcbatch.map`; `empty` gives what there is of no calls, by the place of the map and how long its arrays are."""

    def map(function: Callable[..., Any], *arrays: Any, count: Any = None) -> Any:
        if not arrays:
            raise UsageError("PCB556", "`pcbatch.map` needs something to go over: `pcbatch.map(function, array)`")
        elements = list(zip(*arrays, strict=True))
        number = len(elements) if count is None else checked_count(count, len(elements))
        results = [function(*each) for each in elements[:number]]
        if results:
            return _stacked(results, len(elements))
        if count is None:
            raise UsageError("PCB556", "`pcbatch.map` goes over no elements: nobody knows what the results would be")
        return shown(empty(_place(), len(elements)))

    return map


def _place() -> Place:
    """Return the place where the user's code calls the map."""
    frame: Any = inspect.currentframe()
    while frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    line, file = frame.f_lineno, frame.f_code.co_filename
    if hasattr(frame.f_code, "co_positions"):
        first, last, start, end = [*frame.f_code.co_positions()][frame.f_lasti // 2]
        return file, first or line, start or 0, last or line, end or 0
    return file, line, 0, line, 0


def _stacked(results: Sequence[Any], length: int) -> Any:
    """Results of one structure as one, with a first axis more and rows of zeros behind them."""
    first = results[0]
    if isinstance(first, (tuple, list)):
        parts = [_stacked(each, length) for each in zip(*results, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if isinstance(first, dict):
        return {key: _stacked([each[key] for each in results], length) for key in first}
    if not any(isinstance(each, Value) for each in results):
        kinds = {type(each) for each in results}
        dtype = np.float32 if float in kinds else np.int32 if int in kinds else np.bool_
        if kinds <= {bool, int, float}:
            found: Any = np.zeros(length, dtype)
            found[: len(results)] = results
            return Array(found)
    rows = library(tf.stack)([*results])
    return library(tf.pad)(rows, [[0, length - len(results)]] + [[0, 0]] * (len(rows.shape) - 1))


# -- heaps -------------------------------------------------------------------------------------------------------------


MODULES = frozenset({"heapq", "bisect"})


def _in_python(name: str, in_c: str) -> ModuleType:
    """A module of Python's library without the functions that it has in C."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(in_c)
    sys.modules[in_c] = None  # type: ignore[assignment]
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[in_c]
        if before is not None:
            sys.modules[in_c] = before
    return module


_HEAPS, _BISECTIONS = _in_python("heapq", "_heapq"), _in_python("bisect", "_bisect")


def _either(function: Callable[..., Any], of_bounded: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does `of_bounded` to bounded lists."""

    @functools.wraps(function)
    def called(whole: Any, *given: Any, **named: Any) -> Any:
        return (of_bounded if isinstance(whole, Bounded) else function)(whole, *given, **named)

    return called


_HEAPING = ("heappush", "heappop", "heapify", "heapreplace", "heappushpop")
SPECIAL: dict[Any, Callable[..., Any]] = {
    **{getattr(heapq, name): _either(getattr(heapq, name), getattr(_HEAPS, name)) for name in _HEAPING},
    bisect.insort_left: _either(bisect.insort_left, _BISECTIONS.insort_left),
    bisect.insort_right: _either(bisect.insort_right, _BISECTIONS.insort_right),
}
"""Replacements of the two modules' functions."""


# -- gradient tapes ----------------------------------------------------------------------------------------------------


class Tape(tf.GradientTape):  # type: ignore[misc]
    """A gradient tape that takes values of ours for what they hold."""

    def watch(self, tensor: Any) -> None:
        """Follow values; numbers and arrays that nobody has followed so far have a tensor from now on."""
        super().watch(plain(tensor, watched))

    def gradient(self, target: Any, sources: Any, *given: Any, **options: Any) -> Any:
        """The gradient, as values."""
        return shown(super().gradient(plain(target, tensor), plain(sources, _source), *given, **options))

    def jacobian(self, target: Any, sources: Any, *given: Any, **options: Any) -> Any:
        """The Jacobian, as values."""
        return shown(super().jacobian(plain(target, tensor), plain(sources, _source), *given, **options))

    def batch_jacobian(self, target: Any, source: Any, *given: Any, **options: Any) -> Any:
        """The Jacobians of rows, as values."""
        return shown(super().batch_jacobian(plain(target, tensor), plain(source, _source), *given, **options))


class Accumulator(tf.autodiff.ForwardAccumulator):  # type: ignore[misc]
    """Forward mode, of values of ours."""

    def __init__(self, primals: Any, tangents: Any):
        super().__init__(plain(primals, watched), plain(tangents, tensor))

    def jvp(self, primals: Any, *given: Any, **options: Any) -> Any:
        """The derivative along the tangents, as values."""
        return shown(super().jvp(plain(primals, _source), *given, **options))


def watched(value: Any) -> tf.Tensor:
    """The tensor of a value, which it is from now on."""
    if type(value) is Number:
        found = constant(value.value)
        value.__class__ = Watched
        value.tensor = found  # type: ignore[attr-defined]
    elif isinstance(value, Array) and value.watched() is None:
        if value.owner is not None:
            value.value, value.owner = value.value.copy(), None
        value.tensor = constant(value.value)
    return _source(value)


def _source(value: Any) -> Any:
    if isinstance(value, Variable):
        return value.variable
    found = operand(value) if isinstance(value, Value) else value
    return found if isinstance(found, tf.Tensor) else constant(found)
