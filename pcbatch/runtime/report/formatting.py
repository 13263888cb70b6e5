"""Text and tables as prompts and notebooks show them: figures to the right, source text to the left."""

from __future__ import annotations

import ast
import linecache
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np

from pcbatch.ir import values
from pcbatch.threads import parse

# -- display -----------------------------------------------------------------------------------------------------------

_NUMBER = "text-align:right;white-space:nowrap"
_TEXT = "text-align:left;white-space:pre;font-family:monospace"


def table(title: str, header: Sequence[str], body: Sequence[str], legend: Sequence[str]) -> str:
    """A table of `body`, rows that `row` has made, under a title and above the lines of a legend."""
    head = "".join(f'<th style="{_NUMBER}">{escape(name)}</th>' for name in header)
    below = f"<p><small>{'<br>'.join(map(escape, legend))}</small></p>" if legend else ""
    rows = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>" if body else ""
    return f"<div><p>{escape(title)}</p>{rows}{below}</div>"


def row(figures: Sequence[str], text: str, *, share: float = 0.0, strong: bool = False) -> str:
    """A row of figures and a source line; `share`, between 0 and 1, is drawn as a bar behind the last figure."""
    cells = [f'<td style="{_NUMBER}">{escape(figure)}</td>' for figure in figures[:-1]]
    bar = f";background:linear-gradient(to left,rgba(255,165,0,.45) {share:.1%},transparent {share:.1%})"
    cells.append(f'<td style="{_NUMBER}{bar if share else ""}">{escape(figures[-1])}</td>')
    weight = ";font-weight:bold" if strong else ""
    return f'<tr>{"".join(cells)}<td style="{_TEXT}{weight}">{escape(text)}</td></tr>'


def figures(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], legend: Sequence[str] = ()) -> str:
    """A table of rows of figures, the last column of which is text."""
    return table(title, header, [row(each[:-1], each[-1]) for each in rows], legend)


def points(texts: Sequence[str]) -> str:
    """A list of sentences; "" of none."""
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in texts)}</ul>" if texts else ""


class Text(str):
    r"""A string that displays as text, not quoted; whatever is made of it, and a pickle, is a plain string.

    >>> Text("function f(x)\nb0:\n")
    function f(x)
    b0:
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self).rstrip("\n")

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)

    def __copy__(self) -> str:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> str:
        return self


# -- listing -----------------------------------------------------------------------------------------------------------
# The user's source as reports print it: the lines of a function, and which file it stands in.


def line_text(file: str, line: int) -> str:
    """A line without its ending, tabs as spaces; "" where there is none."""
    return linecache.getline(file, line).rstrip().expandtabs()


def definition(file: str, line: int) -> tuple[str, range]:
    """The function that a line is in, its name and its lines, decorators included; the line alone where there is none.

    Of functions in each other it is the one inside.
    """
    around = [each for each in _functions(tuple(linecache.getlines(file))) if line in each[1]]
    return min(around, key=lambda each: len(each[1]), default=("", range(line, line + 1)))


@lru_cache(maxsize=16)
def _functions(text: tuple[str, ...]) -> tuple[tuple[str, range], ...]:
    """The name and the lines of each function of a file; none of a file that is no longer Python."""
    try:
        tree = parse("".join(text))
    except SyntaxError:
        return ()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    firsts = [min([node.lineno, *(each.lineno for each in node.decorator_list)]) for node in functions]
    return tuple(
        (node.name, range(first, (node.end_lineno or first) + 1)) for first, node in zip(firsts, functions, strict=True)
    )


def file_name(file: str) -> str:
    """A file's name as one would type it here: relative to the working directory if it lies in it."""
    try:
        near = os.path.relpath(file)
    except ValueError:  # on another drive
        return file
    return file if near.startswith(os.pardir) or not os.path.exists(file) else near.replace(os.sep, "/")


def columns(header: tuple[str, ...], rows: Collection[tuple[str, ...]]) -> list[str]:
    """Lines with aligned columns: numbers to the right, the last column, which is text, to the left."""
    count = len(header) - 1
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(count)]
    lined = [[cell.rjust(width) for cell, width in zip(row[:count], widths, strict=True)] for row in (header, *rows)]
    return ["  ".join([*cells, row[-1]]).rstrip() for cells, row in zip(lined, (header, *rows), strict=True)]


# -- value formatting --------------------------------------------------------------------------------------------------
# One lane's value as text and as JSON: structures of NumPy scalars and arrays.


def _leaf(value: Any) -> str:
    return str(np.asarray(value))


def written(value: Any, leaf: Callable[[Any], str] = _leaf) -> str:
    """The value as a person writes it: `3`, `0.1`, `[1 2]`, `(True, {'a': 2.5})`; numbers and arrays as `leaf` says."""

    def inner(item: Any) -> str:
        return written(item, leaf)

    match value:
        case tuple() if not hasattr(value, "_fields"):
            return f"({', '.join(map(inner, value))}{',' * (len(value) == 1)})"
        case list():
            return f"[{', '.join(map(inner, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{key!r}: {inner(item)}" for key, item in value.items()) + "}"
    fields = values.fields_of(value)
    if fields is None:
        return leaf(value)
    return f"{type(value).__name__}({', '.join(f'{name}={inner(item)}' for name, item in fields.items())})"


def listed(value: Any) -> Any:
    """Return the value for JSON: objects for named parts, lists, numbers, and text for numbers that JSON lacks."""
    match value:
        case list():
            return [listed(item) for item in value]
        case tuple() if not hasattr(value, "_fields"):
            return [listed(item) for item in value]
        case Mapping():
            return {str(key): listed(item) for key, item in value.items()}
    fields = values.fields_of(value)
    if fields is not None:
        return {name: listed(item) for name, item in fields.items()}
    array = np.asarray(value)
    return [listed(item) for item in array] if array.ndim else _number(array[()])


def _number(scalar: Any) -> Any:
    """A scalar in the digits of its own precision: float32 0.1 is 0.1."""
    if isinstance(scalar, (np.bool_, np.integer)):
        return scalar.item()
    try:
        number = float(str(scalar))
    except ValueError:  # complex numbers
        return str(scalar)
    return number if math.isfinite(number) else str(number)
