"""`pcbatch.map(g, xs, count=n)` in one example as plain Python, also where no call is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from pcbatch.errors import CompileError, Span, UsageError
from pcbatch.ir import values
from pcbatch.ir.types import Type
from pcbatch.options import leaf_axes
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.backends.tensorflow.mapping import padded

Asked = Callable[[], Mapping[Span, Type]]
"""A function that returns the result types of maps, by their places, in the batched program."""
_asked: ContextVar[Asked | None] = ContextVar("asked", default=None)


@contextmanager
def asking(asked: Asked) -> Iterator[None]:
    """Ask this, the outermost one, for the types of results that are not there inside."""
    token = None if _asked.get() is not None else _asked.set(asked)
    try:
        yield
    finally:
        if token is not None:
            _asked.reset(token)


def empty_map(place: tuple[Any, ...], length: int) -> Any:
    """Return the result of the map at a place in the source over no elements of `length`: rows of zeros."""
    return padded([], length, _type(Span(*place)))


def _type(span: Span) -> Type:
    """Return the result type that the map at `span` would have."""
    asked = _asked.get()
    try:
        known = {} if asked is None else asked()
    except CompileError as error:
        raise UsageError("PCB556", f"a `pcbatch.map` with count 0 needs to know what its calls give: {error}") from None
    if span in known:
        return known[span]
    # Before Python 3.11 only the line of a call is known.
    here = [] if span.end_column else [kind for each, kind in known.items() if _is_on_line(each, span)]
    if not here or any(kind != here[0] for kind in here):
        raise UsageError("PCB556", "`pcbatch.map` with count 0: nobody knows what the results would be")
    return here[0]


def _is_on_line(span: Span, line: Span) -> bool:
    return span.file == line.file and span.line <= line.line <= span.end_line


def as_batch(backend: Backend, examples: Mapping[str, Any], axes: Mapping[str, Any]) -> dict[str, Any]:
    """Return one example's arguments as a batch of one; those without `axes` stay as they are."""

    def with_lane(name: str, value: Any) -> Any:
        if name not in axes:
            return value
        type_ = backend.type_of(value)
        pairs = zip(values.flatten(type_, value), leaf_axes(axes[name], type_, name), strict=True)
        return values.pack(
            type_, [leaf if axis is None else np.expand_dims(np.asarray(leaf), axis) for leaf, (_, axis) in pairs]
        )

    return {name: with_lane(name, value) for name, value in examples.items()}
