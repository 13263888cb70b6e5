"""Text and tables as prompts and notebooks show them: figures to the right, source text to the left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

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
