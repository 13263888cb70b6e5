"""StableHLO for any number of lanes: one text, fitted to the texts that XLA is given for some numbers.

Sizes in such a text are `a + b * lanes + c * depth + d * lanes * depth` with integers a to d. They are found from the
texts for several numbers of lanes and depths of stacks, all of which the fitted text must give again. Where it does
not, because an operation depends on sizes in another way, there is no such text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

_LOCATION = re.compile(r' ?loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*\)')
_HEADER = re.compile(r'^module @(?:"[^"]*"|\S+).*\{$', re.MULTILINE)
_FUNCTION = re.compile(r'func\.func (?:private |public )?@("[^"]*"|[\w.$-]+)\(')
_SYMBOL = re.compile(r'@("[^"]*"|[\w.$-]+)')
_TOKEN = re.compile(r"(\d+)")
_CONSTANT = re.compile(r"^(\s*)(%[\w#]+) = stablehlo\.constant dense<(.*)> : tensor<(\d+)x(i32|i64)>$")
_HOLE = re.compile(r"⟦(-?\d+),(-?\d+),(-?\d+),(-?\d+)⟧")
_CALLED = re.compile(r"stablehlo\.custom_call @(\"[^\"]*\"|[\w.$-]+)")


@dataclass(frozen=True)
class Sample:
    """The text of a program for a number of lanes and a depth of stacks."""

    lanes: int
    depth: int
    text: str


def plain(text: str) -> str:
    """A module's text without locations and names that differ from one process to the next."""
    lines = (line for line in _LOCATION.sub("", text).splitlines() if not line.startswith("#loc"))
    text = _HEADER.sub("module @pcbatch {", "\n".join(lines), count=1)
    names = [name for name in _FUNCTION.findall(text) if name != "main"]
    short = {name: f"f{number}" for number, name in enumerate(dict.fromkeys(names))}
    return _SYMBOL.sub(lambda found: f"@{short.get(found[1], found[1])}", text) + "\n"


def custom_calls(text: str) -> list[str]:
    """The names of what a module calls that is no operation of StableHLO."""
    return [*dict.fromkeys(name.strip('"') for name in _CALLED.findall(text))]


def fitted(samples: Sequence[Sample]) -> str | None:
    """The text of which `samples` are instances, its sizes written `⟦a,b,c,d⟧`; None where there is none."""
    fit = _Fit([(each.lanes, each.depth) for each in samples])
    lines = [each.text.splitlines() for each in samples]
    if len({len(each) for each in lines}) != 1:
        return None
    found = []
    for number, same in enumerate(zip(*lines, strict=True)):
        line = same[0] if len({*same}) == 1 else _constant(same, fit, number) or _sizes(same, fit)
        if line is None:
            return None
        found.append(line)
    return "\n".join(found) + "\n"


def filled(text: str, lanes: int, depth: int) -> str:
    """The module's text for a number of lanes and a depth of stacks."""

    def number(found: re.Match[str]) -> str:
        a, b, c, d = map(int, found.groups())
        return str(a + b * lanes + c * depth + d * lanes * depth)

    return _HOLE.sub(number, text)


def varies(text: str) -> tuple[bool, bool]:
    """Tell whether a fitted text depends on the number of lanes, and on the depth of stacks."""
    holes = [tuple(map(int, found)) for found in _HOLE.findall(text)]
    return any(b or d for _, b, _, d in holes), any(c or d for _, _, c, d in holes)


class _Fit:
    """Integers a to d for a number that differs by sample."""

    def __init__(self, sizes: Sequence[tuple[int, int]]):
        self._sizes = sizes
        terms: list[Callable[[int, int], int]] = [lambda lanes, depth: 1]
        self._places = [0]
        candidates: list[tuple[int, Callable[[int, int], int]]] = [
            (1, lambda lanes, depth: lanes),
            (2, lambda lanes, depth: depth),
            (3, lambda lanes, depth: lanes * depth),
        ]
        for place, term in candidates:  # what the samples do not tell apart is left out
            tried = np.array([[float(each(*size)) for each in [*terms, term]] for size in sizes])
            if np.linalg.matrix_rank(tried / np.abs(tried).max(axis=0)) == len(terms) + 1:
                terms.append(term)
                self._places.append(place)
        scaled = np.array([[float(each(*size)) for each in terms] for size in sizes])
        self._scale = np.abs(scaled).max(axis=0)
        self._inverse = np.linalg.pinv(scaled / self._scale)

    def hole(self, numbers: Sequence[int]) -> str | None:
        """The text of a size that has these values, by sample."""
        found = self._inverse @ np.array(numbers, float) / self._scale
        factors = [0, 0, 0, 0]
        for place, each in zip(self._places, found.tolist(), strict=True):
            factors[place] = round(each)
        hole = "⟦{},{},{},{}⟧".format(*factors)
        fits = all(filled(hole, *size) == str(each) for size, each in zip(self._sizes, numbers, strict=True))
        return hole if fits else None


def _sizes(lines: Sequence[str], fit: _Fit) -> str | None:
    """One line for all samples, whose texts differ in numbers."""
    parts = [_TOKEN.split(line) for line in lines]
    if len({len(each) for each in parts}) != 1:
        return None
    found = []
    for place, same in enumerate(zip(*parts, strict=True)):
        if len({*same}) == 1:
            found.append(same[0])
            continue
        part = fit.hole([*map(int, same)]) if place % 2 else None
        if part is None:
            return None
        found.append(part)
    return "".join(found)


def _constant(lines: Sequence[str], fit: _Fit, number: int) -> str | None:
    """A constant whose length differs by sample, as operations: XLA's input has the numbers 0, 1, .. written out."""
    found = [_CONSTANT.match(line) for line in lines]
    if not all(found):
        return None
    heads = {(each[1], each[2], each[5]) for each in found if each}
    arrays = [_numbers(each[3], int(each[4]), each[5]) for each in found if each]
    if len(heads) != 1 or any(each is None or len(each) < 2 for each in arrays):
        return None
    known = [each for each in arrays if each is not None]
    if any(len({*np.diff(each).tolist()}) != 1 for each in known):
        return None
    length = fit.hole([len(each) for each in known])
    first = fit.hole([int(each[0]) for each in known])
    step = fit.hole([int(each[1]) - int(each[0]) for each in known])
    if length is None or first is None or step is None:
        return None
    ((indent, name, dtype),) = heads
    type_, scratch = f"tensor<{length}x{dtype}>", (f"%pcbatch{number}_{place}" for place in itertools.count())
    places, steps, product, start = (next(scratch) for _ in range(4))
    operations = [
        f"{places} = stablehlo.iota dim = 0 : {type_}",
        f"{steps} = stablehlo.constant dense<{step}> : {type_}",
        f"{product} = stablehlo.multiply {places}, {steps} : {type_}",
        f"{start} = stablehlo.constant dense<{first}> : {type_}",
        f"{name} = stablehlo.add {product}, {start} : {type_}",
    ]
    return "\n".join(indent + each for each in operations)


def _numbers(literal: str, length: int, dtype: str) -> np.ndarray | None:
    """The numbers of a constant that are written out, in hexadecimal or not."""
    if literal.startswith("["):
        texts = literal.strip("[]").split(", ")
        return np.array([int(each) for each in texts]) if len(texts) == length else None
    if not literal.startswith('"0x'):
        return None
    found = np.frombuffer(bytes.fromhex(literal.strip('"')[2:]), {"i32": "<i4", "i64": "<i8"}[dtype])
    return found.astype(np.int64) if len(found) == length else None
