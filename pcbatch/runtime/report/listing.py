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


def table(header: tuple[str, ...], rows: Collection[tuple[str, ...]]) -> list[str]:
    """Lines with aligned columns: numbers to the right, the last column, which is text, to the left."""
    count = len(header) - 1
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(count)]
    lined = [[cell.rjust(width) for cell, width in zip(row[:count], widths, strict=True)] for row in (header, *rows)]
    return ["  ".join([*cells, row[-1]]).rstrip() for cells, row in zip(lined, (header, *rows), strict=True)]
