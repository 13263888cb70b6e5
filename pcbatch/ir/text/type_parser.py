"""Reads types back from text: `weak int32[]`, `float32[3, 4]`, `(int32[], bool[])`, `{a: int32[]}`, `P(x=int32[])`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pcbatch.ir.types import NONE, StructType, TensorType, Type

_WORD = re.compile(r"[^\s()\[\]{}=,:'\"]+")
_SHAPE = re.compile(r"\[(\d+(?:, \d+)*)?\]")
_LITERAL = re.compile(r"-?\.?\d[\w.+-]*|\((?:[^()]|\([^()]*\))*\)|(?:True|False|None)\b")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def parse_type(text: str) -> Type:
    """The type that `text` denotes; ValueError if it is none."""
    type_, end = parse_type_at(text, 0)
    if end != len(text):
        raise ValueError(f"unexpected {text[end:]!r} after a type")
    return type_


def parse_type_at(text: str, start: int) -> tuple[Type, int]:
    """The type that starts at `text[start]` and the place behind it; ValueError if there is none."""
    reader = _Reader(text, start)
    return reader.type(), reader.place


class _Reader:
    """A cursor over one line of text."""

    def __init__(self, text: str, place: int):
        self.text = text
        self.place = place

    def skip(self, token: str) -> bool:
        """Step over `token` if it comes next."""
        found = self.text.startswith(token, self.place)
        self.place += len(token) if found else 0
        return found

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Step over a match of `pattern`, which must come next."""
        found = pattern.match(self.text, self.place)
        if found is None:
            raise ValueError(f"expected {what} at {self.text[self.place :]!r}")
        self.place = found.end()
        return found

    def type(self) -> Type:
        if self.skip("("):
            return self.struct("tuple", ")")
        if self.skip("["):
            return self.struct("list", "]")
        if self.skip("{"):
            return self.struct("dict", "}", ": ")
        weak = self.skip("weak ")
        word = self.match(_WORD, "a type")[0]
        if word == "None" and not weak:
            return NONE
        if not weak and self.skip("("):
            return self.struct(word, ")", "=")
        shape = self.match(_SHAPE, f"a shape after {word!r}")[1]
        return TensorType(word, tuple(map(int, shape.split(", "))) if shape else (), weak)

    def struct(self, kind: str, close: str, separator: str = "") -> StructType:
        """The items of a structure whose opening bracket has been read; `separator` stands behind each key, if any."""
        keys: list[Any] = []
        items: list[Type] = []
        while not self.skip(close):
            if items and not self.skip(", "):
                raise ValueError(f"expected ', ' or {close!r} at {self.text[self.place :]!r}")
            if separator:
                keys.append(self.key(separator))
            items.append(self.type())
            if kind == "tuple" and len(items) == 1 and self.text.startswith(",)", self.place):
                self.place += 1
        return StructType(kind, tuple(items), tuple(keys))

    def key(self, separator: str) -> Any:
        """A key: a word, or a literal of Python's."""
        literal = _STRING.match(self.text, self.place) or _LITERAL.match(self.text, self.place)
        key: Any
        if literal is not None:
            self.place = literal.end()
            key = ast.literal_eval(literal[0])
        else:
            key = self.match(_WORD, "a key")[0]
        if not self.skip(separator):
            raise ValueError(f"expected {separator!r} after the key {key!r}")
        return key
