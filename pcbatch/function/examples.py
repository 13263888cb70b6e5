"""Runs of one example: on proxies, or bare once that has taken a while and the typed program agrees with NumPy.

There `pcbatch.map(g, xs, count=n)` is plain Python, also where no call is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

from pcbatch.errors import CompileError, PcbatchError, Span, UsageError
from pcbatch.function.reading_cache import ReadProgram
from pcbatch.ir import values
from pcbatch.ir.types import Type
from pcbatch.options import leaf_axes
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.backends.tensorflow.mapping import padded
from pcbatch.single.agreement import Agreement
from pcbatch.single.bare import Bare, Frozen, kind_of
from pcbatch.single.repairs import UnfitError
from pcbatch.single.running import Singly
from pcbatch.single.surroundings import Surroundings

PATIENCE = 0.2
"""So many seconds runs on proxies take, of examples of one kind, before the function is read for bare runs."""
MOST_KINDS, MOST_READINGS, MOST_FAILURES = 64, 8, 3
"""Limits: of kinds of examples that are told apart, of readings of one, and of its bare runs that fail.

More may fail where they are a quarter of its runs at most.
"""

running: ContextVar[Surroundings | None] = ContextVar("running_singly", default=None)
"""Those of the function that runs one example right now."""


@dataclass
class _Kind:
    """Examples of the same types."""

    seconds: float = 0.0
    """Seconds that they have taken on proxies."""
    program: ReadProgram | None = None
    captured: Any = None
    """The types of captured arrays when the program was read."""
    divides: bool = False
    copies: bool = True
    """True if ints are divided, and if calls need copies of arrays."""
    places: frozenset[Span] = frozenset()
    """The places at which a bare run must be repaired."""
    readings: int = 0
    runs: int = 0
    failures: int = 0
    """Number of bare runs, and of those among them that had to be done again on proxies."""


class Examples:
    """Runs one example at a time of one batched function."""

    def __init__(
        self, function: FunctionType, plain_of: Callable[[Any], Any], empty: Callable[..., Any], backend: Backend
    ):
        self._made = function, plain_of, empty
        self._backend = backend
        self._kinds: dict[Any, _Kind] = {}
        self._bare_ones: dict[tuple[bool, frozenset[Span]], Singly | None] = {}

    @cached_property
    def on_proxies(self) -> Singly:
        """The runner of any example."""
        return Singly(*self._made)

    def _bare(self, copies: bool, places: frozenset[Span]) -> Singly | None:
        """Return the bare runner of an example: its calls copy arrays or not, `places` are to be repaired."""
        key = copies, places
        if key not in self._bare_ones:
            try:
                found = Singly(*self._made, (Bare if copies else Frozen).repairing(places))
            except UnfitError:
                found = None
            self._bare_ones[key] = found
        return self._bare_ones[key]

    def run(self, receiver: Any, args: Any, kwargs: Any, read: Callable[[], ReadProgram]) -> Any:
        """Return the function's result for one example; `read` gives the typed program for such."""
        kind = self._kind(args, kwargs) if self._backend.runs_now(unwatched=True) else None
        if kind is not None and kind.seconds > PATIENCE and self._is_bare(kind, read):
            kind.runs += 1
            try:
                bare = self._bare(kind.copies, kind.places)
                return self._within(bare, receiver, args, kwargs, "raise" if kind.divides else "ignore")
            except Exception:  # proxies know better, or raise it as the user is to see it
                kind.failures += 1
        started = time.perf_counter()
        try:
            return self._within(self.on_proxies, receiver, args, kwargs)
        finally:
            if kind is not None:
                kind.seconds += time.perf_counter() - started

    def _within(self, singly: Singly | None, receiver: Any, args: Any, kwargs: Any, *divide: Any) -> Any:
        assert singly is not None
        token = running.set(singly.around)
        try:
            return singly(receiver, args, kwargs, *divide)
        finally:
            running.reset(token)

    def _kind(self, args: Any, kwargs: Mapping[str, Any]) -> _Kind | None:
        """The kind of an example; None where it has something that cannot be told apart."""
        try:
            key = kind_of(args), kind_of(kwargs)
            found = self._kinds.get(key)
        except TypeError:
            return None
        if found is None:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            found = self._kinds[key] = _Kind()
        return found

    def _is_bare(self, kind: _Kind, read: Callable[[], ReadProgram]) -> bool:
        """Return whether examples of a kind may run bare at present."""
        if kind.failures > max(MOST_FAILURES, kind.runs // 4):
            return False
        if kind.program is not None:
            captured = kind.program.captured(self._backend)
            if captured is not None and captured.types == kind.captured:
                return kind.captured is not None
        if kind.readings >= MOST_READINGS:
            return False
        kind.readings += 1
        token = running.set(None)
        try:
            program = read()
        except PcbatchError:
            kind.readings = MOST_READINGS
            return False
        finally:
            running.reset(token)
        captured = program.captured(self._backend)
        if captured is None:
            return False
        agreement = Agreement(program.reading.program, {**program.reading.names, **captured.values})
        kind.program, kind.captured = program, captured.types
        kind.divides, kind.copies = agreement.divides, agreement.copies
        kind.places = frozenset(agreement.repaired)
        if not agreement.holds or self._bare(kind.copies, kind.places) is None:
            kind.readings = MOST_READINGS
            kind.program = None
        return kind.program is not None


# -- map ---------------------------------------------------------------------------------------------------------------


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
