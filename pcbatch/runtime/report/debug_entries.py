"""Texts that `pcbatch.debug` has kept of each lane, read and printed."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator, Sequence
from string import Formatter
from typing import Any

import numpy as np

from pcbatch.ir.debugging import DTYPES, FIRST, LAST, WORDS, number_of
from pcbatch.ir.machine import FaultSite, LaneStatus, Program
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import formatting


def sites(program: Program) -> dict[int, FaultSite]:
    """The texts of a program, by the number that entries begin with."""
    found = (site for site in program.faults if site.status is LaneStatus.OK)
    return {number_of(site.message.format(""), site.span): site for site in found}


def show(program: Program, outcome: Outcome, show: Callable[[str], Any] | None = None) -> None:
    """Print the records of each lane, lane by lane, in their order; nothing where a run is still a graph."""
    known = sites(program)
    if not known or not outcome.backend.is_concrete(outcome.status):
        return
    (name,) = next(iter(known.values())).arguments
    record = np.asarray(outcome.fault_values[name][0])
    for lane, own in enumerate(record):
        for line in _lines(own, known):
            (show or builtins.print)(f"lane {lane}{line}")


def _lines(record: np.ndarray, known: dict[int, FaultSite]) -> Iterator[str]:
    """The entries of a lane, and in their place how many are not there."""
    count = int(record[0, 0])
    for number in range(min(count, FIRST)):
        yield _line(record[1 + number], known)
    if count > FIRST + LAST:
        yield f": .. {count - FIRST - LAST:,} more, which were not kept .."
    for number in range(max(FIRST, count - LAST), count):
        yield _line(record[1 + FIRST + (number - FIRST) % LAST], known)


def _line(entry: np.ndarray, known: dict[int, FaultSite]) -> str:
    site = known[int(entry[0])]
    where = "" if site.span is None else f", {formatting.file_name(site.span.file)}:{site.span.line}"
    return f"{where}: {filled(site.message.format(''), list(_values(entry)))}"


def _values(entry: np.ndarray) -> Iterator[Any]:
    """The values of an entry: NumPy scalars and arrays, of those that were too large the text of their beginning."""
    place = 1
    while place < WORDS and entry[place]:
        dtype, axes, kept = entry[place : place + 3].tolist()
        name, (kept_as, words) = list(DTYPES.items())[dtype - 1]
        shape = tuple(entry[place + 3 : place + 3 + axes].tolist())
        begin = place + 3 + axes
        place = begin + kept * words
        flat = np.ascontiguousarray(entry[begin:place]).view(kept_as)
        flat = flat if name == "bfloat16" else flat.astype(name)
        yield flat.reshape(shape)[()] if kept == math.prod(shape) else _beginning(flat, shape)


def _beginning(flat: np.ndarray, shape: Sequence[int]) -> str:
    numbers = " ".join(str(number) for number in flat)
    return f"[{numbers} ..] of shape {list(shape)}"


def fields(text: str) -> int | None:
    """The number of fields of a text; None where it is no template of fields without names."""
    try:
        found = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError:
        return None
    return None if any(found) else len(found)


def filled(text: str, values: Sequence[Any]) -> str:
    """`text` with the values in its fields, or behind it where it has none."""
    if not fields(text):
        return " ".join([text, *map(str, values)])
    try:
        return text.format(*map(_short, values))
    except (TypeError, ValueError):  # a format of numbers, and something else
        return " ".join([text, *map(str, values)])


def _short(value: Any) -> Any:
    """Floats of few bits in as few digits: NumPy formats 0.1 as 0.10000000149011612."""
    return float(str(value)) if isinstance(value, np.floating) else value
