"""Tables for notebooks: figures to the right, source text to the left, a bar behind the share of the work."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_NUMBER = "text-align:right;white-space:nowrap"
_TEXT = "text-align:left;white-space:pre;font-family:monospace"


def table(title: str, header: Sequence[str], body: Sequence[str], legend: Sequence[str]) -> str:
    """A table of `body`, rows that `row` has made, under a title and above the lines of a legend."""
    head = "".join(f'<th style="{_NUMBER}">{escape(name)}</th>' for name in header)
    lines = "<br>".join(map(escape, legend))
    return (
        f"<div><p>{escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"<p><small>{lines}</small></p></div>"
    )


def row(figures: Sequence[str], text: str, *, share: float = 0.0, strong: bool = False) -> str:
    """A row of figures and a source line; `share`, between 0 and 1, is drawn as a bar behind the last figure."""
    cells = [f'<td style="{_NUMBER}">{escape(figure)}</td>' for figure in figures[:-1]]
    bar = f";background:linear-gradient(to left,rgba(255,165,0,.45) {share:.1%},transparent {share:.1%})"
    cells.append(f'<td style="{_NUMBER}{bar if share else ""}">{escape(figures[-1])}</td>')
    weight = ";font-weight:bold" if strong else ""
    return f'<tr>{"".join(cells)}<td style="{_TEXT}{weight}">{escape(text)}</td></tr>'
