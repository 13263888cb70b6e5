"""LLVM's text of the common parts of handlers: XLA's questions, and the places of arrays in its call frame."""

from __future__ import annotations

from collections.abc import Iterator

from pcbatch.runtime.backends import interop

NAME = "handler"
"""The name of a handler in its module; it takes the address of a `%frame`."""


def about(version: tuple[int, int]) -> Iterator[str]:
    """Answer XLA's question about the handler; do nothing in other stages."""
    yield load("extension", "ptr", "frame", interop.EXTENSION)
    yield "%plain = icmp eq ptr %extension, null"
    yield "br i1 %plain, label %called, label %extended"
    yield "extended:"
    yield load("kind", "i32", "extension", interop.KIND)
    yield f"%asked = icmp eq i32 %kind, {interop.ABOUT}"
    yield "br i1 %asked, label %about, label %called"
    yield "about:"
    yield load("answer", "ptr", "extension", interop.METADATA)
    yield store(f"i32 {version[0]}", "answer", interop.ABOUT_MAJOR)
    yield store(f"i32 {version[1]}", "answer", interop.ABOUT_MINOR)
    yield store("i32 0", "answer", interop.ABOUT_TRAITS)
    yield "ret ptr null"
    yield "called:"
    yield load("stage", "i32", "frame", interop.STAGE)
    yield f"%now = icmp eq i32 %stage, {interop.EXECUTE}"
    yield "br i1 %now, label %run, label %fine"
    yield "fine:"
    yield "ret ptr null"


def buffers(reads: int, count: int) -> Iterator[str]:
    """Read the addresses of all arrays as `%array0`, `%array1`, ..: so many that are read, then those written."""
    yield load("read", "ptr", "frame", interop.ARGUMENTS)
    yield load("written", "ptr", "frame", interop.RESULTS)
    for number in range(count):
        list_, place = ("read", number) if number < reads else ("written", number - reads)
        yield load(f"buffer{number}", "ptr", list_, 8 * place)
        yield load(f"array{number}", "ptr", f"buffer{number}", interop.DATA)


def length(name: str, number: int, axis: int) -> str:
    """Read a length of an array."""
    sizes = f"{name}.sizes"
    return f"{load(sizes, 'ptr', f'buffer{number}', interop.SIZES)}\n{load(name, 'i64', sizes, 8 * axis)}"


def load(name: str, type_: str, base: str, offset: int) -> str:
    """Read a value at an offset from an address."""
    return f"%{name}.at = getelementptr i8, ptr %{base}, i64 {offset}\n%{name} = load {type_}, ptr %{name}.at"


def store(value: str, base: str, offset: int) -> str:
    """Write a value there."""
    return f"%{base}.to{offset} = getelementptr i8, ptr %{base}, i64 {offset}\nstore {value}, ptr %{base}.to{offset}"
