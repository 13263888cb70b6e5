"""Rows that are values, and stores through them: `m[0][1] = x` changes `m`, `row = m[0]` and `row[1] = x` do not.

Which of the two a store is, the user's code says between the instruction that took the row and the one that stores: in
the second one something else is stored, or dropped, in between.
"""

from __future__ import annotations

import dis
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
    places, names = _instructions(found.f_code)
    first, last = places.get(row[1]), places.get(found.f_lasti)
    if first is None or last is None or first >= last:
        return False
    return not any(name == "POP_TOP" or name.startswith("STORE_") for name in names[first + 1 : last])


@lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> tuple[dict[int, int], list[str]]:
    """The instructions of a code: the number of each by its offset, and their names."""
    found = list(dis.get_instructions(code))
    return {each.offset: number for number, each in enumerate(found)}, [each.opname for each in found]
