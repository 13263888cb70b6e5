"""Control by Python's own `if` and `while`; see `backends.control`.

A program is its function, and runs when it is called. Arrays must keep their dtypes and axes all the same, and under a
guard their shapes: what gets through here gets through where a compiler has to lay them out beforehand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import (
    Explanation,
    Handlers,
    Launch,
    Lowering,
    PullBack,
    Records,
    RunOutcome,
    Spec,
    Surroundings,
)
from pcbatch.runtime.store.cache_session import Name


class NumPyRecords:
    """See `control.Records`."""

    def none(self, specs: Sequence[Spec]) -> list[Any]:
        return [np.empty(0, object) for _ in specs]

    def added(self, records: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        found = []
        for record, array in zip(records, arrays, strict=True):
            found.append(np.empty(len(record) + 1, object))
            found[-1][:-1], found[-1][-1] = record, array
        return found

    def without_last(self, records: Sequence[Any], specs: Sequence[Spec]) -> tuple[list[Any], list[Any]]:
        return [record[:-1] for record in records], [record[-1] for record in records]

    def joined(self, records: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
        return [
            np.concatenate([np.zeros((0, *map(int, shape[1:])), dtype), *record])  # type: ignore[arg-type]
            for record, (dtype, shape) in zip(records, specs, strict=True)
        ]


class NoHandlers:
    """See `control.Handlers`: there are none."""

    def version(self) -> tuple[int, int] | None:
        return None

    def register(self, name: str, address: int) -> None:
        raise NotImplementedError("NumPy traces no program of a caller's, which could call a handler")

    def call(
        self, made: str | Launch, arrays: Sequence[Any], specs: Sequence[Spec], changed: Sequence[int] = ()
    ) -> list[Any]:
        raise NotImplementedError("NumPy traces no program of a caller's, which could call a handler")

    def kernels_on(self) -> str | None:
        return None

    def here(self, function: Callable[[], list[Any]], otherwise: Callable[[], list[Any]]) -> list[Any]:
        return function()


class NumPyControl:
    """See `control.Control`."""

    records: Records = NumPyRecords()
    handlers: Handlers = NoHandlers()

    # -- conditions and loops ------------------------------------------------------------------------------------------

    def cond(
        self,
        predicate: Any,
        function: Callable[[], list[Any]],
        otherwise: list[Any] | Callable[[], list[Any]],
        *,
        seldom: bool = False,
    ) -> list[Any]:
        if callable(otherwise):
            return list(function() if predicate else otherwise())
        return _like(list(function()), list(otherwise)) if predicate else list(otherwise)

    def switch(self, number: Any, functions: Sequence[Callable[[], list[Any]]], before: Sequence[Any]) -> list[Any]:
        return _like(list(functions[int(number)]()), list(before), exactly=True)

    def guarded(
        self,
        predicate: Any,
        function: Callable[..., list[Any]],
        before: Sequence[Any],
        in_place: Sequence[bool],
    ) -> list[Any]:
        return _like(list(function(predicate, *before)), list(before), exactly=True) if predicate else list(before)

    def while_loop(
        self,
        condition: Callable[[Any], Any],
        body: Callable[[Any], Any],
        state: Any,
        *,
        seldom: bool = False,
        stops: bool = False,
    ) -> Any:
        while condition(state):
            state = _like(body(state), state)
        return state

    def place(self) -> str:
        return "CPU"

    # -- programs ------------------------------------------------------------------------------------------------------

    def scope(self, name: str) -> AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def compile(
        self, function: Callable[..., Any], jit: bool, specs: Sequence[Spec] | None = None, name: Name | None = None
    ) -> Callable[..., Any]:
        return function

    def direct(self, compiled: Callable[..., Any], arrays: Sequence[Any]) -> Callable[[Sequence[Any]], Sequence[Any]]:
        return lambda given: list(compiled(*given))

    def lower(self, compiled: Callable[..., Any], specs: Sequence[Spec], jit: bool) -> None:
        """Do nothing: NumPy learns nothing before it runs."""

    def targeting(self, place: str) -> AbstractContextManager[None]:
        return nullcontext()

    def lowering(self, function: Callable[..., Any], specs: Sequence[Spec]) -> Lowering:
        raise NotImplementedError("NumPy runs functions, it does not write them down")

    def explain(self, error: Exception) -> Explanation | None:
        return None  # Python's traceback names the line

    # -- inside a caller's program -------------------------------------------------------------------------------------

    def runs_now(self, *, unwatched: bool = False) -> bool:
        return True

    def inside(self, what: Surroundings) -> bool:
        return False

    def is_concrete(self, array: Any) -> bool:
        return True

    def checked_values(self, program: Program, ended: RunOutcome, texts: Sequence[Sequence[str]]) -> tuple[Any, ...]:
        raise NotImplementedError("NumPy traces no program of a caller's: a run ends before its values are used")

    def version(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return ("numpy", np.__version__), ()

    def forbid_gradients(self, function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
        return function  # NumPy takes none

    def is_watched(self, arrays: Sequence[Any]) -> bool:
        return False

    def differentiable(
        self,
        function: Callable[[list[Any]], tuple[Sequence[Any], PullBack]],
        arrays: Sequence[Any],
        name: str,
        further: Any = None,
    ) -> list[Any]:
        return list(function(list(arrays))[0])


def _like(new: Any, old: Any, *, exactly: bool = False) -> Any:
    """`new`, a structure of arrays in which each has the dtype and the axes that it has in `old`; TypeError if not.

    Axes may get another length, as stacks that grow do, unless it is to be `exactly` alike.
    """
    if isinstance(old, dict):
        if new.keys() != old.keys():
            raise TypeError(f"{sorted(new)} is carried on in the place of {sorted(old)}")
        _like([*new.values()], [old[key] for key in new], exactly=exactly)
    elif isinstance(old, list | tuple):
        for each in zip(new, old, strict=True):
            _like(*each, exactly=exactly)
    elif new is not old:
        both = ((np.asarray(each).dtype, np.shape(each)) for each in (new, old))
        found, wanted = ((dtype, shape if exactly else len(shape)) for dtype, shape in both)
        if found != wanted:
            raise TypeError(f"an array of {found} is carried on in the place of one of {wanted}")
    return new
