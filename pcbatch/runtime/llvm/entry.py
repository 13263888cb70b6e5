"""The way into native code: a function of Python's own, in machine code, that looks at arrays and hands on addresses.

To ask each array for its type, its sizes and its address takes Python a microsecond, and `ctypes` one for the call. So
this is done by a function that is like those of Python's modules in C. It reads NumPy's arrays as `ndarraytypes.h` has
them; where they do not lie so in memory there is no such function, and callers do the same by Python.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pcbatch.runtime.llvm import compiler
from pcbatch.runtime.llvm.frame_text import load, store
from pcbatch.runtime.llvm.interface import FAILED, STATUS, STOP
from pcbatch.runtime.llvm.types import ALIGNED

Entry = Callable[[tuple[Any, ...], np.ndarray, int], int]
"""`entry(arrays, memory, words)` runs native code on the arrays, which writes to `memory`.

`words` is the address of what the code takes; the entry fills in the addresses of arrays. It returns where in `memory`
the outputs begin, plus `ALIGNED` where a lane has failed; `OTHERS` if the arrays are none that it was made for, and
nothing has run; `UNDONE` if not all lanes have ended. What Python raised meanwhile it raises.
"""
OTHERS, UNDONE = -1, -2
_HEAD = object.__basicsize__
_DATA, _RANK, _SIZES, _CLASS_OF_ELEMENTS, _FLAGS = (_HEAD + 8 * place for place in (0, 1, 2, 5, 6))
"""Places in an array's memory: the address of its elements, the number of axes, their sizes, the dtype, flags."""
_FAST_CALL = 0x80
"""METH_FASTCALL: a function that gets its arguments one after another in memory."""

_TEXT = f"""
declare i64 @PyLong_AsSsize_t(ptr)
declare ptr @PyLong_FromSsize_t(i64)
declare ptr @PyErr_Occurred()
define void @nothing(ptr %words) {{
  ret void
}}
define ptr @entry(ptr %self, ptr %given, i64 %count) {{
{load("arrays", "ptr", "given", 0)}
{load("memory", "ptr", "given", 8)}
{load("address", "ptr", "given", 16)}
%number.of.words = call i64 @PyLong_AsSsize_t(ptr %address)
%words = inttoptr i64 %number.of.words to ptr
{load("run", "ptr", "self", bytes.__basicsize__ - 1)}
{load("class", "i64", "self", bytes.__basicsize__ + 7)}
{load("wanted", "i64", "self", bytes.__basicsize__ + 15)}
{load("place", "i64", "self", bytes.__basicsize__ + 23)}
{load("outputs", "i64", "self", bytes.__basicsize__ + 31)}
{load("lanes", "i64", "self", bytes.__basicsize__ + 39)}
%specs = getelementptr i8, ptr %self, i64 {bytes.__basicsize__ + 47}
{load("length", "i64", "arrays", _HEAD)}
%items = getelementptr i8, ptr %arrays, i64 {tuple.__basicsize__}
%start = getelementptr i64, ptr %words, i64 %place
%as.many = icmp eq i64 %length, %wanted
br i1 %as.many, label %each, label %others

each:
%number = phi i64 [0, %0], [%further, %taken]
%spec = phi ptr [%specs, %0], [%spec.behind, %taken]
%is.left = icmp slt i64 %number, %wanted
br i1 %is.left, label %object, label %laid
object:
%item.at = getelementptr ptr, ptr %items, i64 %number
%item = load ptr, ptr %item.at
{load("kind", "i64", "item", _HEAD - 8)}
%is.array = icmp eq i64 %kind, %class
br i1 %is.array, label %array, label %others
array:
{load("elements", "i64", "item", _CLASS_OF_ELEMENTS)}
{load("elements.told", "i64", "spec", 0)}
{load("rank", "i32", "item", _RANK)}
{load("rank.told", "i64", "spec", 8)}
{load("flags", "i32", "item", _FLAGS)}
{load("sizes", "ptr", "item", _SIZES)}
%sizes.told = getelementptr i8, ptr %spec, i64 16
%axes = zext i32 %rank to i64
%bit = and i32 %flags, 1
%is.packed = icmp ne i32 %bit, 0
%are.elements = icmp eq i64 %elements, %elements.told
%is.rank = icmp eq i64 %axes, %rank.told
%both = and i1 %are.elements, %is.rank
%is.alike = and i1 %both, %is.packed
br i1 %is.alike, label %sides, label %others
sides:
%axis = phi i64 [0, %array], [%axis.behind, %side.same]
%is.side = icmp slt i64 %axis, %axes
br i1 %is.side, label %side, label %taken
side:
%size.at = getelementptr i64, ptr %sizes, i64 %axis
%size = load i64, ptr %size.at
%size.told.at = getelementptr i64, ptr %sizes.told, i64 %axis
%size.told = load i64, ptr %size.told.at
%is.size = icmp eq i64 %size, %size.told
br i1 %is.size, label %side.same, label %others
side.same:
%axis.behind = add i64 %axis, 1
br label %sides
taken:
{load("data", "i64", "item", _DATA)}
%word = getelementptr i64, ptr %start, i64 %number
store i64 %data, ptr %word
%further = add i64 %number, 1
%spec.behind = getelementptr i64, ptr %sizes.told, i64 %axes
br label %each

laid:
{load("first", "i64", "memory", _DATA)}
%below = sub i64 0, %first
%gap = and i64 %below, {ALIGNED - 1}
%aligned = add i64 %first, %gap
%written = getelementptr i64, ptr %start, i64 %wanted
br label %outs
outs:
%out = phi i64 [0, %laid], [%out.behind, %output]
%is.out = icmp slt i64 %out, %outputs
br i1 %is.out, label %output, label %go
output:
%offset.at = getelementptr i64, ptr %spec, i64 %out
%offset = load i64, ptr %offset.at
%output.address = add i64 %aligned, %offset
%written.at = getelementptr i64, ptr %written, i64 %out
store i64 %output.address, ptr %written.at
%out.behind = add i64 %out, 1
br label %outs
go:
%control = load ptr, ptr %words
{store("i64 0", "words", 8)}
{store("i64 %lanes", "words", 16)}
{store("i64 0", "control", 8 * FAILED)}
{store("i64 0", "control", 8 * STOP)}
call void %run(ptr %words)
{load("status", "i64", "control", 8 * STATUS)}
{load("failed", "i64", "control", 8 * FAILED)}
%has.ended = icmp eq i64 %status, 0
br i1 %has.ended, label %ended, label %undone
ended:
%told = mul i64 %failed, {ALIGNED}
%where = add i64 %gap, %told
br label %end
undone:
%raised = call ptr @PyErr_Occurred()
%is.raised = icmp ne ptr %raised, null
br i1 %is.raised, label %raises, label %end
raises:
ret ptr null
others:
br label %end
end:
%found = phi i64 [%where, %ended], [{UNDONE}, %undone], [{OTHERS}, %others]
%object.of.found = call ptr @PyLong_FromSsize_t(i64 %found)
ret ptr %object.of.found
}}
"""


_MAKING = threading.Lock()


class _Method(ctypes.Structure):
    """PyMethodDef: a function's name, address, flags, and what it says of itself."""

    _fields_ = [("name", ctypes.c_char_p), ("at", ctypes.c_size_t), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def entry(run: int, lanes: int, arrays: Sequence[np.ndarray], place: int, offsets: Sequence[int]) -> Entry | None:
    """The entry of the native function at the address `run`, for so many lanes of arrays of the types of these.

    `place` is the number of the word that is the address of the first one; those of outputs, which have these
    `offsets`, come behind them. None where there can be no entry.
    """
    with _MAKING:  # of two engines one would be collected, and entries live in it
        made = _made()
    known = all(each.dtype is np.dtype(each.dtype.type) for each in arrays)
    return _entry(made[0], run, lanes, arrays, place, offsets) if made and known else None


def _entry(
    method: _Method, run: int, lanes: int, arrays: Sequence[np.ndarray], place: int, offsets: Sequence[int]
) -> Entry:
    specs = [number for each in arrays for number in (id(each.dtype), each.ndim, *each.shape)]
    words = [run, id(np.ndarray), len(arrays), place, len(offsets), lanes, *specs, *offsets]
    found: Entry = _new(ctypes.addressof(method), struct.pack(f"{len(words)}q", *words), None)
    return found


@functools.cache
def _made() -> tuple[_Method, Any] | None:
    """The entries' machine code, which works, and what it lives in."""
    (address, nothing), engine = compiler.addresses(compiler.object_code(_TEXT, level=0), ("entry", "nothing"))
    method = _Method(b"entry", address, _FAST_CALL, None)
    return (method, engine) if _works(method, nothing) else None


def _works(method: _Method, nothing: int) -> bool:
    """Return whether an entry finds the addresses of arrays, and tells others from them."""
    arrays = np.zeros(3), np.zeros((4, 5), np.int8)[1:], np.ones((), np.int32)
    memory, control = np.zeros(4 * ALIGNED, np.uint8), (ctypes.c_int64 * 8)()
    words = (ctypes.c_int64 * 8)(ctypes.addressof(control))
    found = _entry(method, nothing, 7, arrays, 3, (0, ALIGNED))
    start = -memory.ctypes.data % ALIGNED
    first = memory.ctypes.data + start
    told = found(arrays, memory, ctypes.addressof(words))
    first_ones = np.zeros(2), np.zeros(6)[::2], np.zeros(3, np.int64), np.zeros((1, 3))
    others: list[tuple[Any, ...]] = [arrays[:2], (*arrays[:2], 1), *((each, *arrays[1:]) for each in first_ones)]
    return (told, [*words]) == (
        start,
        [words[0], 0, 7, *(each.ctypes.data for each in arrays), first, first + ALIGNED],
    ) and all(found(each, memory, ctypes.addressof(words)) == OTHERS for each in others)
