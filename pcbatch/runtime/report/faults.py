"""Statuses of lanes, failures with their places in the user's source, and the entries of `pcbatch.debug`."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

import numpy as np

from pcbatch.errors import Diagnostic, Span
from pcbatch.ir.debugging import DTYPES, FIRST, LAST, WORDS, number_of
from pcbatch.ir.machine import FaultSite, LaneStatus, Program
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import formatting

SHOWN_LANES = 5
"""The number of faults that a message draws, and of lanes that it names with each."""
LISTED_LANES = 20
"""The number of lanes that a table lists."""


@dataclass(frozen=True)
class LaneFault:
    """A lane's failure and its place. `message` starts with the name of the exception that Python would have raised."""

    lane: int
    status: LaneStatus
    message: str
    span: Span | None

    def render(self) -> str:
        """The fault with its source line and carets."""
        return Diagnostic(f"lane {self.lane} ({self.status.name})", self.message, self.span).render()

    @property
    def place(self) -> str:
        """The file and the line, `model.py:12`; "" if there is none."""
        return "" if self.span is None else f"{formatting.file_name(self.span.file)}:{self.span.line}"

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        place = f" at {self.place}" if self.place else ""
        return f"<pcbatch.LaneFault: lane {self.lane}, {self.status.name}{place}: {self.message}>"


class Faults(tuple[LaneFault, ...]):
    """The failed lanes of a run, in order: a tuple, which displays each with its source line, in notebooks a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return "()"
        groups = alike(self)[:SHOWN_LANES]
        rest = len(self) - sum(map(len, groups))
        return "\n\n".join([*map(drawn, groups), *([f"and {lanes_of(rest)} more"] if rest else [])])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        rows = [
            formatting.row(
                [str(fault.lane), fault.status.name],
                "\n".join(filter(None, [fault.message, fault.place and f"{fault.place}: {_source(fault)}"])),
            )
            for fault in self[:LISTED_LANES]
        ]
        rest = len(self) - len(rows)
        title = f"{lanes_of(len(self))} failed" if self else "no lane failed"
        return formatting.table(
            title, ("lane", "status", "") if rows else (), rows, [f"and {lanes_of(rest)} more"] if rest else []
        )


def lanes_of(count: int) -> str:
    """A number of lanes, in words."""
    return f"{count:,} lane{'' if count == 1 else 's'}"


def alike(faults: Sequence[LaneFault]) -> list[list[LaneFault]]:
    """The faults in groups of lanes that failed in the same way at the same place."""
    groups: dict[tuple[LaneStatus, str, Span | None], list[LaneFault]] = {}
    for fault in faults:
        groups.setdefault((fault.status, fault.message, fault.span), []).append(fault)
    return [*groups.values()]


def drawn(faults: Sequence[LaneFault]) -> str:
    """Draw one fault of several lanes, with its source line and carets."""
    first, lanes = faults[0], ", ".join(str(fault.lane) for fault in faults[:SHOWN_LANES])
    if len(faults) == 1:
        return first.render()
    more = ", .." if len(faults) > SHOWN_LANES else ""
    return Diagnostic(f"lanes {lanes}{more} ({first.status.name})", first.message, first.span).render()


def _source(fault: LaneFault) -> str:
    return "" if fault.span is None else fault.span.text.strip()


class Statuses(np.ndarray):
    """int32 `[lanes]`, LaneStatus numbers, which print as names; whatever is computed of them is a plain array.

    The status of one lane is a LaneStatus, an int, which prints as a name, too.

    >>> run_status = Statuses.of(np.array([0, 1, 0], np.int32))
    >>> run_status
    [OK ASSERTION OK]
    >>> run_status == LaneStatus.OK
    array([ True, False,  True])
    >>> print(run_status[1])
    ASSERTION
    """

    @classmethod
    def of(cls, numbers: Any) -> Statuses:
        """The statuses of these numbers."""
        return np.asarray(numbers).view(cls)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = (each.view(np.ndarray) if isinstance(each, Statuses) else each for each in inputs)
        out = kwargs.get("out")
        if out is not None:
            kwargs["out"] = tuple(each.view(np.ndarray) if isinstance(each, Statuses) else each for each in out)
        return getattr(ufunc, method)(*plain, **kwargs)

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return LaneStatus._value2member_map_.get(int(found), found) if isinstance(found, np.integer) else found

    def __str__(self) -> str:
        return np.array2string(self.view(np.ndarray), formatter={"int": _name})

    def __repr__(self) -> str:
        return str(self)


def _name(number: Any) -> str:
    """The name of a status; sums of several have none."""
    known = LaneStatus._value2member_map_.get(int(number))
    return str(number) if known is None else known.name


# -- debug entries -----------------------------------------------------------------------------------------------------


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
