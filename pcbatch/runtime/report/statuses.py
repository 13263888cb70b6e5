"""Statuses of lanes, as numbers that print as names."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcbatch.ir.status import LaneStatus


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
