"""The forms of pcbatch's own functions for one example: bounded lists and `pcbatch.map`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.installed import OWN
from pcbatch.runtime.backends.tensorflow import bounded as lanes
from pcbatch.runtime.backends.tensorflow.mapping import checked_count
from pcbatch.single.calls import library, shown
from pcbatch.single.values import Array, Number, Value

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
