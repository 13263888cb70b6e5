"""Modules of programs: those of which pcbatch refuses every batched function, and those that do what Python does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pcbatch
from pcbatch.errors import CompileError


def refusals(path: Path) -> list[CompileError]:
    """What is raised where the functions of a module are made batched, or are called with its `ARGUMENTS`.

    `ARGUMENTS` has batches of arguments for what can be made, by the expression that is called.
    """
    found: list[CompileError] = []

    def autobatch(function: Any = None, **options: Any) -> Any:
        if function is None:
            return lambda function: autobatch(function, **options)
        try:
            return REAL(function, jit=False, **options)
        except CompileError as error:
            found.append(error)
            return function

    names = loaded(path, autobatch)
    for expression, arguments in names.get("ARGUMENTS", {}).items():
        try:
            eval(expression, names)(*arguments)
        except CompileError as error:
            found.append(error)
        else:
            raise AssertionError(f"{expression} of {path} is not refused")
    return found


REAL = pcbatch.autobatch


def loaded(path: Path, autobatch: Callable[..., Any]) -> dict[str, Any]:
    """The names of a module that is run with `autobatch` in the place of pcbatch's own."""
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    with _in_place_of_its_own(autobatch):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), names)
    return names


@contextmanager
def _in_place_of_its_own(autobatch: Callable[..., Any]) -> Iterator[None]:
    pcbatch.autobatch = autobatch  # type: ignore[assignment]
    try:
        yield
    finally:
        pcbatch.autobatch = REAL


def plainly(function: Any = None, **options: Any) -> Any:
    """A stand-in for `autobatch` that leaves functions as they are."""
    return (lambda function: function) if function is None else function
