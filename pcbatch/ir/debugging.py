"""The form of `pcbatch.debug(text, x)` in a program: a record that each lane keeps, read when the lanes have ended.

In "cfg" and "stack" it is a primitive, `entry = __record__(number, text, x)`, which gives the words of an entry, and
which nothing reads. In "machine" the record is a variable of its own, an array of words: row 0 counts the entries, and
the rows behind it have the first `FIRST` entries of the lane and the last `LAST`. After the primitive a block stores
the entry and the count in it and ends, so that a fault of what comes next leaves it whole. The text stands in a fault
site whose status is OK: nothing fails there.

An entry is its number, then for each value the number of its dtype (from 1), of its axes and of its elements that are
there, its sizes, and these elements; the rest is 0.
"""

from __future__ import annotations

import zlib

from pcbatch.errors import Span
from pcbatch.ir.expressions import Apply, Constant, Name
from pcbatch.ir.payload import Compute
from pcbatch.ir.program import Op, Primitive, Update
from pcbatch.ir.types import TensorType

ENTRY, STORED, EMPTY = "__record__", "__recorded__", "__unrecorded__"
"""Pseudo-builtins: the words of an entry; where the next one goes, and the count; a record without entries."""
NAME = "debug_record"
"""The variable of the record, unless that name is taken."""
FIRST, LAST, WORDS = 32, 32, 32
"""Numbers of entries of a lane that are kept, the first ones and the last ones, and of an entry's words of 32 bits."""
TYPE = TensorType("int32", (1 + FIRST + LAST, WORDS))

DTYPES = {
    name: (kept, words)
    for kept, words, names in (
        ("int32", 1, ("bool", "int8", "int16", "int32", "uint8", "uint16")),
        ("int64", 2, ("int64", "uint32", "uint64")),
        ("float32", 1, ("float16", "bfloat16", "float32")),
        ("float64", 2, ("float64",)),
        ("complex64", 2, ("complex64",)),
        ("complex128", 4, ("complex128",)),
    )
    for name in names
}
"""The dtypes that values in entries may have: as which dtype each is kept, and in how many words an element is."""


def number_of(text: str, span: Span | None) -> int:
    """Return the number by which an entry begins, a hash of its text and place."""
    place = "" if span is None else f"{span.line}:{span.column}:"
    return zlib.crc32(f"{place}{text}".encode()) & 0x7FFFFFFF


def text_of(op: Op) -> str | None:
    """The text of the entry that `op` makes, None where it makes none."""
    if not isinstance(op, Primitive | Update):
        return None
    match op.code:
        case Compute(Apply(Name(name), (_, Constant(text), *_))) if name == ENTRY:
            return str(text)
    return None


def message_of(text: str) -> str:
    """The template of the fault site that has `text`: its only field is for the record."""
    return text.replace("{", "{{").replace("}", "}}") + "{}"
