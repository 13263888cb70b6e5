"""The user's source as reports print it: the lines of a function, and which file it stands in."""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Collection
from functools import lru_cache

from pcbatch.syntax import parse


def line_text(file: str, line: int) -> str:
    """A line without its ending, tabs as spaces; "" where there is none."""
    return linecache.getline(file, line).rstrip().expandtabs()


def extent(file: str, lines: Collection[int]) -> range:
    """The lines of the function that all `lines` are in, decorators included; from the first to the last if unknown."""
    first, last = min(lines), max(lines)
    around = [each for each in _functions(tuple(linecache.getlines(file))) if first in each and last in each]
    return min(around, key=len, default=range(first, last + 1))


@lru_cache(maxsize=16)
def _functions(text: tuple[str, ...]) -> tuple[range, ...]:
    """The lines of each function of a file; none of a file that is no longer Python."""
    try:
        tree = parse("".join(text))
    except SyntaxError:
        return ()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    firsts = [min([node.lineno, *(each.lineno for each in node.decorator_list)]) for node in functions]
    return tuple(range(first, (node.end_lineno or first) + 1) for first, node in zip(firsts, functions, strict=True))


def file_name(file: str) -> str:
    """A file's name as one would type it here: relative to the working directory if it lies in it."""
    try:
        near = os.path.relpath(file)
    except ValueError:  # on another drive
        return file
    return file if near.startswith(os.pardir) or not os.path.exists(file) else near.replace(os.sep, "/")


def table(header: tuple[str, ...], rows: Collection[tuple[str, ...]]) -> list[str]:
    """Lines with aligned columns: numbers to the right, the last column, which is text, to the left."""
    count = len(header) - 1
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(count)]
    lined = [[cell.rjust(width) for cell, width in zip(row[:count], widths, strict=True)] for row in (header, *rows)]
    return ["  ".join([*cells, row[-1]]).rstrip() for cells, row in zip(lined, (header, *rows), strict=True)]
