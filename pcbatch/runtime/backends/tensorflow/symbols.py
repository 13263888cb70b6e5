"""The types of single operations, found by calling each on symbols: placeholders in one graph, which nobody runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.types import Type
from pcbatch.runtime.backends.tensorflow import gradients, marked, private
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, is_of_keras, type_of, wrap
from pcbatch.runtime.backends.tensorflow.traces import placeholders
from pcbatch.runtime.backends.tensorflow.watching import watch
from pcbatch.runtime.backends.tensorflow.weak import Weak


class Symbols:
    """A graph in which operations are tried. `tapes` says whether the user's code may take gradients."""

    def __init__(self, tapes: bool = False):
        self._graph = private.watched_graph("reading", watch)
        self._tapes = tapes
        self._known: dict[Type, Any] = {}

    def symbol(self, type_: Type, *, own: bool = False) -> Any:
        """A value of this type: one for all that ask, or one of the caller's `own`."""
        if own or type_ not in self._known:
            with self._graph.as_default():
                found = wrap(values.pack(type_, placeholders(type_)), type_)
            if own:
                return found
            self._known[type_] = found
        return self._known[type_]

    def called(self, make: Callable[[], Any]) -> tuple[Any, bool]:
        """What `make` gives, which calls operations on symbols, and whether it checks anything that may fail a lane."""
        with (
            self._graph.as_default(),
            marked.tracing_lane(),
            gradients.taping(self._tapes),
            recording() as recorder,
        ):
            found = make()
        return found, bool(recorder.sites)

    def type_of(self, value: Any) -> Type | None:
        """The type of a number or an array that an operation has given; None for everything else."""
        if not (is_value(value) or is_of_keras(value)):
            return None
        with self._graph.as_default():
            try:
                return type_of(value)
            except NotATensorError:
                return None

    @contextlib.contextmanager
    def entered(self, manager: Any) -> Iterator[Any]:
        """What a context manager of the library gives, around operations on symbols."""
        with self._graph.as_default(), manager as found:
            yield found


def is_value(value: Any) -> bool:
    """Whether it is a lane's, and no number of Python's."""
    return isinstance(value, Weak | tf.Tensor | tf.Variable | tf.IndexedSlices)
