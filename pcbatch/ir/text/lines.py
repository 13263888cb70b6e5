"""Lines of the IR's text, for the parsers of all dialects: numbers, indentation, comments, lists of names."""

from __future__ import annotations

import re

INDENT = "  "
LINE_COMMENT = re.compile(r"\s+# line \d+$")
NAME = r"[^\W\d]\w*"
NAMES = rf"{NAME}(?:, {NAME})*"

Line = tuple[int, str]
"""The number of a line and its text."""


class IRSyntaxError(ValueError):
    """The text is not a program. `line` is the 1-based line of the IR's text."""

    def __init__(self, line: int, message: str):
        self.line = line
        super().__init__(f"line {line}: {message}")


def lines_of(text: str, levels: int) -> list[Line]:
    """Lines that say something: blank and comment lines left out. Indented by `levels` levels at most."""
    lines: list[Line] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(INDENT * levels + " "):
            raise IRSyntaxError(number, "unexpected indentation")
        if line.strip() and not line.lstrip().startswith("#"):
            lines.append((number, line))
    return lines


def indented(lines: list[Line], levels: int = 1) -> bool:
    """Return whether the next line is indented by `levels` levels or more."""
    return bool(lines) and lines[0][1].startswith(INDENT * levels)


def take(lines: list[Line], levels: int = 1) -> Line:
    """The next line without its indentation of `levels` levels."""
    number, text = lines.pop(0)
    return number, text.removeprefix(INDENT * levels)


def without_comment(text: str) -> str:
    """`text` without the `# line 7` behind it."""
    return LINE_COMMENT.sub("", text)


def split(text: str | None) -> tuple[str, ...]:
    """The names of a list that is written `a, b, c`; none for no text."""
    return tuple(text.split(", ")) if text else ()
