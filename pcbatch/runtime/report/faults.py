"""Statuses of lanes, and failures of lanes, each with its place in the user's source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.errors import Diagnostic, Span
from pcbatch.ir.machine import LaneStatus
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
