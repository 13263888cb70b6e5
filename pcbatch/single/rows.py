"""Rows that are values, and stores through them: `m[0][1] = x` changes `m`, `row = m[0]` and `row[1] = x` do not.

Which of the two a store is, the user's code says between the instruction that took the row and the one that stores: in
the second one something else is stored, or dropped, in between.
"""

from __future__ import annotations

import dis
from bisect import bisect_right
from functools import lru_cache
from types import CodeType, FrameType

from pcbatch.installed import OWN

Taken = tuple[int, int]
"""A frame, by its identity, and the instruction that it is at."""


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that runs no code of pcbatch's."""
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return frame


def taken(frame: FrameType | None) -> Taken | None:
    """Where the user's code is, which takes a row."""
    found = user_frame(frame)
    return None if found is None else (id(found), found.f_lasti)


def is_stored_at_once(frame: FrameType | None, row: Taken | None) -> bool:
    """Whether the user's code stores into a row that the same statement has taken for that."""
    found = user_frame(frame)
    if found is None or row is None or row[0] != id(found):
        return False
    offsets, names = _instructions(found.f_code)
    first, last = (bisect_right(offsets, place) - 1 for place in (row[1], found.f_lasti))  # it may be at their caches
    return first < last and not any(each == "POP_TOP" or each.startswith("STORE_") for each in names[first + 1 : last])


@lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> tuple[list[int], list[str]]:
    """Where the instructions of a code begin, and their names."""
    found = list(dis.get_instructions(code))
    return [each.offset for each in found], [each.opname for each in found]
