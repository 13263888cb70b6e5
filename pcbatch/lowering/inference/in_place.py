"""Augmented assignments whose target turns out to be a list, or another object that they change in place.

    ys = xs
    xs += zs        # of lists: `ys` sees it; of numbers and arrays: `xs = xs + zs`

Which of the two it is, is known when types are inferred. The program is built as if it were numbers, and anew where it
is not.
"""

from __future__ import annotations

import ast
from typing import Any

from pcbatch.errors import InPlaceError
from pcbatch.ir import records
from pcbatch.ir.code import Code

LOOK = "_pcb_in_place"
"""The name by which a traced piece knows the function below."""
_KINDS: dict[str, type] = {"__iadd__": list, "__imul__": list, "__ior__": dict}


def target_of(code: Code) -> str:
    """What the augmented assignment that became `code` is of: the left operand; "" where that is not seen."""
    match code.value:
        case ast.BinOp(left=left) | ast.Call(func=ast.Attribute(attr="multiply"), args=[left, _, *_]):
            return ast.unparse(left)
    return ""


def look(value: Any, method: str) -> None:
    """InPlaceError if `value`, the target of an augmented assignment, is an object that would change by `method`."""
    is_record = records.fields_of(value) is not None and hasattr(type(value), method)
    if isinstance(value, _KINDS[method]) or is_record:
        raise InPlaceError("PCB205", "this changes an object in place", "write `x = x + y` for a new one")
