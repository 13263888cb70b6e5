"""Code of a page, run as a program: what the page shows behind `# ->` is what a batch gives, `f.single`, and Python.

A section's blocks are one program. In it a line `f(..)  # -> text` is shown: the value prints as the text.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import indent
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import tensorflow as tf

import pcbatch
from tests.programs.judging import FAILURES, PLAIN, numbers, same

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^(\S.*?)  # -> (.*)$", re.MULTILINE)
APART = re.compile(r"^```.*?^```$|^\|.*?$|^#.*?$|^<!--.*?-->$|^!\[.*?$|^:::.*?$", re.DOTALL | re.MULTILINE)
"""Text that is no sentence: code, rows of tables, headings, comments, pictures, names that a page documents."""
ROW = re.compile(r"^\| (`.*`) \| (PCB\d+) \| (`.*`) \|$", re.MULTILINE)
IMPORTS = re.compile(r"^import (numpy as np|tensorflow as tf|pcbatch)\n", re.MULTILINE)


def sections(page: Path) -> dict[str, str]:
    """The program of each section of a page that has one, by its title."""
    found: dict[str, str] = {}
    for text in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        title, _, body = text.partition("\n")
        blocks = BLOCK.findall(body)
        if blocks:
            found[title] = "\n\n".join(blocks)
    return found


def check(program: str, file: Path, ways: str = "undecorated singly") -> None:
    """Run the program of a section as a batch and in these other ways, and compare what it shows."""
    text = SHOWN.sub(lambda match: f"shown(lambda: {match[1]}, {match[2]!r})", IMPORTS.sub("", program))
    batches = list(_values(text, file, pcbatch))
    assert batches, "nothing is shown"
    for value, wanted in batches:
        assert printed(value) == wanted, f"{printed(value)} instead of {wanted}"
    for way in (each for each in (_undecorated, _singly) if each.__name__[1:] in ways.split()):
        others = _values(text, file, _stand_in(way))
        for (batch, wanted), (other, _) in zip(batches, others, strict=True):
            if not isinstance(other, Lanes):
                continue  # a run, a status
            found = numbers(batch)
            for place, lane in enumerate(other):
                parts = [leaf[place] for leaf in found]
                assert same(parts, None if lane is None else numbers(lane)), f"{wanted}: {way.__name__} gives {other}"


def sentences(page: Path) -> list[str]:
    """The sentences of a page, without its tables; code counts as one word."""
    text = APART.sub("\n", page.read_text(encoding="utf-8"))
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", text)
    words = [re.sub(r"`[^`]*`", "CODE", " ".join(part.split())) for part in parts]
    return [each for part in words for each in re.split(r"(?<=[.!?])(?:\*\*)?\s+(?=[A-Z*\[(]|pcbatch )", part) if each]


def rows(page: Path) -> list[tuple[str, str, str]]:
    """The rows of a page's table of refusals: statements that are refused, the code, statements that are not."""

    def lines(cell: str) -> str:
        return "\n".join(re.findall(r"`([^`]*)`", cell))

    return [(lines(bad), code, lines(good)) for bad, code, good in ROW.findall(page.read_text(encoding="utf-8"))]


def check_row(statements: str, code: str, file: Path) -> None:
    """Compile a function of such statements, which is refused with the code; "" if it is to run."""
    text = f"RATES = {{'low': 0.5}}\n\n\ndef row(x, n, xs, key):\n{indent(statements, '    ')}\n    return x\n"
    module = _loaded(text, file, pcbatch)
    lanes = np.float32([1.5, 3.0]), np.int32([1, 2]), np.float32([[1, -2, 3, 4]] * 2), pcbatch.random.keys(0, 2)
    found = ""
    try:
        pcbatch.autobatch(module.row).options(backend="reference")(*lanes)
    except pcbatch.PcbatchError as error:
        found = ", ".join(sorted(set(re.findall(r"^(PCB\d{3}):", str(error), re.MULTILINE))))
    assert found == code, statements


def _loaded(text: str, file: Path, module: Any, **names: Any) -> ModuleType:
    """The module of a program's text."""
    file.write_text(text, encoding="utf-8")
    linecache.checkcache(str(file))
    program = ModuleType(file.stem)
    vars(program).update(np=np, tf=tf, pcbatch=module, **names)
    sys.modules[file.stem] = program
    try:
        exec(compile(text, str(file), "exec", dont_inherit=True), vars(program))
    finally:
        del sys.modules[file.stem]
    return program


def _values(text: str, file: Path, module: Any) -> Iterator[tuple[Any, str]]:
    """What a program shows, with the page's text for it."""
    found: list[tuple[Any, str]] = []
    _loaded(text, file, module, shown=lambda make, wanted: found.append((make(), wanted)))
    return iter(found)


def printed(value: Any) -> str:
    """A value as pages write it."""
    match value:
        case tuple() | list():
            inner = ", ".join(map(printed, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner})"
        case dict():
            return f"{{{', '.join(f'{key!r}: {printed(item)}' for key, item in value.items())}}}"
        case tf.Tensor():
            value = value.numpy()
    return " ".join(re.sub(r"\[\s+", "[", str(value)).split())


# -- one example after the other ---------------------------------------------------------------------------------------


class Lanes(list[Any]):
    """The results of all lanes: None of one that has failed."""

    def __getitem__(self, key: Any) -> Any:
        return Lanes(each[key] for each in self)

    def __getattr__(self, name: str) -> Any:
        return Lanes(getattr(each, name) for each in self)


class OneByOne:
    """A batched function that calls another function for each example: from outside, with a batch."""

    inside = False

    def __init__(self, function: Callable[..., Any], inner: Callable[..., Any], bound: Callable[[Any], OneByOne]):
        self.function, self.inner, self.bound = function, inner, bound

    def __get__(self, receiver: Any, owner: Any) -> OneByOne:
        return self if receiver is None else self.bound(receiver)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if OneByOne.inside:
            return self.inner(*args, **kwargs)
        counts = [_count(each) for each in (*args, *kwargs.values())]
        lanes = next(each for each in counts if each is not None)
        OneByOne.inside = True
        try:
            return Lanes(self._one(lane, args, kwargs) for lane in range(lanes))
        finally:
            OneByOne.inside = False

    def _one(self, lane: int, args: Any, kwargs: Any) -> Any:
        named = {name: _lane(each, lane) for name, each in kwargs.items()}
        try:
            return self.function(*(_lane(each, lane) for each in args), **named)
        except (*FAILURES, tf.errors.InvalidArgumentError):
            return None

    def __getattr__(self, name: str) -> Any:
        return MagicMock()


def _undecorated(function: Callable[..., Any]) -> OneByOne:
    def by_value(*args: Any, **kwargs: Any) -> Any:
        copied = [each.copy() if isinstance(each, np.ndarray) else each for each in args]
        return function(*copied, **kwargs)

    return OneByOne(function, by_value, lambda receiver: _undecorated(partial(function, receiver)))


def _singly(function: Callable[..., Any], **options: Any) -> OneByOne:
    return _single_of(pcbatch.autobatch(function, **options))


def _single_of(batched: Any) -> OneByOne:
    def bound(receiver: Any) -> OneByOne:
        return _single_of(batched.__get__(receiver, type(receiver)))

    return OneByOne(batched.single, batched, bound)


def _stand_in(way: Callable[..., OneByOne]) -> Any:
    """A module in the place of pcbatch."""

    def autobatch(function: Any = None, **options: Any) -> Any:
        if function is None:
            return lambda function: autobatch(function, **options)
        return way(function, **options) if way is _singly else way(function)

    plain = SimpleNamespace(autobatch=autobatch, sync=lambda: None, debug=lambda *_: None)
    plain.cost, plain.random = lambda _: lambda function: function, pcbatch.random
    plain.bounded = pcbatch.bounded if way is _singly else lambda shape, dtype, capacity: []
    plain.map = pcbatch.map if way is _singly else lambda function, *arrays: np.array([*map(function, *arrays)])
    return plain


def _array(value: Any) -> np.ndarray | None:
    """An argument that is an array, as a batch takes it."""
    if isinstance(value, tf.Tensor | np.ndarray):
        return np.asarray(value)
    if isinstance(value, list) and all(isinstance(each, int | float | list) for each in value):
        found = np.asarray(value)
        return found.astype({"i": np.int32, "f": np.float32}.get(found.dtype.kind, found.dtype))
    return None


def _parts(value: Any) -> dict[Any, Any]:
    """The parts of a structure."""
    match value:
        case tuple() | list():
            return dict(enumerate(value))
        case dict():
            return value
    return dict(getattr(value, "__dict__", {})) if type(value).__module__ not in ("builtins", "numpy") else {}


def _count(value: Any) -> int | None:
    array = _array(value)
    if array is not None:
        return len(array)
    return next((found for each in _parts(value).values() if (found := _count(each)) is not None), None)


def _lane(value: Any, lane: int) -> Any:
    """One example of an argument."""
    if isinstance(value, tf.Tensor):
        return value[lane]
    array = _array(value)
    if array is not None:
        one = array[lane]
        return one.item() if one.shape == () and one.dtype in PLAIN else np.copy(one)
    parts = {key: _lane(each, lane) for key, each in _parts(value).items()}
    match value:
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*parts.values())
        case tuple() | list():
            return type(value)(parts.values())
        case dict():
            return parts
    if not parts or _count(value) is None or callable(value):
        return value
    made = object.__new__(type(value))
    vars(made).update(parts)
    return made
