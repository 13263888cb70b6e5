"""Judges a batched program by the undecorated function, called on Python's numbers and NumPy's arrays of one lane.

A *run* is a way to run a batch: `run(function, arguments)` takes the undecorated function and arrays `[lanes, ...]`. It
returns for each lane the leaves of its result, or None where the lane has failed. It refuses a program by an error with
a code. `tests.programs.readings` has all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pcbatch.errors import PcbatchError
from tests.harness import leaves

Lane = list[np.ndarray] | None
"""The leaves of a lane's result; None for a lane that has failed."""
Run = Callable[[Callable[..., Any], tuple[np.ndarray, ...]], list[Lane]]
Kind = Literal["right", "refused", "wrong", "raw"]
FAILURES = (ArithmeticError, AssertionError, LookupError, ValueError)
"""The exceptions by which a program fails a lane; any other one says that the program is no program."""
PLAIN = (np.int32, np.float32, np.bool_)
"""The dtypes whose scalars are Python's numbers; int64 and float64 scalars are NumPy's, which are not weak."""
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Outcome:
    """A right answer, a refusal, a wrong answer or an error without a code."""

    kind: Kind
    detail: str = ""
    """The codes of a refusal, the first lane that differs, or the error."""

    def __str__(self) -> str:
        """As tables of outcomes have it: `right`, `refused PCB205`, `wrong`."""
        return f"{self.kind} {self.detail}" if self.kind == "refused" else self.kind


class NoProgramError(Exception):
    """Python itself cannot run it: a fault of the test, or of what has made it smaller."""


def judge(
    function: Callable[..., Any],
    arguments: tuple[np.ndarray, ...],
    run: Run,
    twin: Callable[..., Any] | None = None,
) -> Outcome:
    """The outcome of one run of a batch, by `twin` if the function itself cannot be called without pcbatch."""
    wanted = truth(twin or function, arguments)
    try:
        found = run(function, copy.deepcopy(arguments))
    except PcbatchError as error:
        return Outcome("refused", ",".join(sorted(codes(error))))
    except Exception as error:
        return Outcome("raw", f"{type(error).__name__}: {error}".splitlines()[0][:200])
    for number, (got, lane) in enumerate(zip(found, wanted, strict=True)):
        if not same(got, lane):
            return Outcome("wrong", f"lane {number}: {written(got)} instead of {written(lane)}")
    return Outcome("right")


def codes(error: PcbatchError) -> set[str]:
    """The codes of an error."""
    diagnostics = getattr(error, "diagnostics", ())
    return {diagnostic.code for diagnostic in diagnostics} or {getattr(error, "code", type(error).__name__)}


# -- the truth ---------------------------------------------------------------------------------------------------------


def truth(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    """The results of Python and NumPy, lane by lane."""
    results: list[Lane] = []
    for example in examples(arguments):
        try:
            results.append(numbers(function(*example)))
        except FAILURES:
            results.append(None)
        except Exception as error:
            raise NoProgramError(f"{type(error).__name__}: {error}") from error
    return results


def examples(arguments: tuple[np.ndarray, ...]) -> Iterator[tuple[Any, ...]]:
    """The arguments of each lane: int32, float32 and bool scalars as Python's numbers, arrays as copies."""
    for values in zip(*arguments, strict=True):
        yield tuple(value.item() if value.shape == () and value.dtype in PLAIN else value.copy() for value in values)


# -- comparing ---------------------------------------------------------------------------------------------------------


def numbers(value: Any) -> list[np.ndarray]:
    """The leaves of a result, objects of the program's classes taken apart by their attributes."""
    found: list[np.ndarray] = []
    for leaf in leaves(value):
        if hasattr(leaf, "__dict__") and not hasattr(leaf, "dtype"):
            found += [part for name in sorted(vars(leaf)) for part in numbers(vars(leaf)[name])]
        elif leaf is not None:
            found.append(np.array(leaf))
    return found


def same(got: Lane, wanted: Lane) -> bool:
    """Whether two lanes have the same numbers; a list of numbers may be one array in one and several in the other."""
    if got is None or wanted is None:
        return got is wanted
    if len(got) != len(wanted):
        got, wanted = ([part for leaf in lane for part in np.ravel(leaf)] for lane in (got, wanted))
    return len(got) == len(wanted) and all(map(_equal, got, wanted))


def _equal(got: Any, wanted: Any) -> bool:
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        return False
    if got.dtype.kind in "biu" and wanted.dtype.kind in "biu":
        return np.array_equal(got.astype(np.int64), wanted.astype(np.int64))
    return np.allclose(got.astype(float), wanted.astype(float), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


def written(lane: Lane) -> str:
    """A lane's numbers in one line."""
    return "a failure" if lane is None else ", ".join(str(leaf.tolist()) for leaf in lane)
