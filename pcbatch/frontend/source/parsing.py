"""The text of a file as Python's own tree, or why it has none."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import lru_cache

from pcbatch.errors import Diagnostic, Span, UnsupportedSyntaxError
from pcbatch.frontend.source.nodes import children
from pcbatch.syntax import parse


@dataclass(frozen=True)
class Refusal:
    """The fault of a construct, a label for its carets and the help."""

    code: str
    message: str
    label: str
    help: str

    def at(self, span: Span) -> Diagnostic:
        """The diagnostic that shows it at `span`."""
        return Diagnostic(self.code, self.message, span, self.label, self.help)


PYTHON_2 = Refusal("PCB125", "this is syntax of Python 2", "here", "write Python 3")


EXPRESSIONS, STATEMENTS = 200, 150
"""Maximal nesting of a definition: every pass recurses by calls, of which Python allows 1,000. Python's own parser
takes 200 parentheses and 100 blocks, but any number of operators and `elif`s."""


@lru_cache(maxsize=64)
def parse_lines(lines: tuple[str, ...], file: str) -> ast.Module:
    """The tree of a file's text; UnsupportedSyntaxError if it is not Python."""
    try:
        return parse("".join(lines), filename=file)
    except SyntaxError as error:
        line, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
        width = error.end_offset - (error.offset or 1) if error.end_lineno == line and error.end_offset else 1
        span = Span(file, line, column, line, column + max(1, width))
        if (error.msg or "").startswith("Missing parentheses in call to"):
            old = replace(PYTHON_2, message=f"{PYTHON_2.message}: {error.msg}")
            raise UnsupportedSyntaxError([old.at(span)]) from None
        raise UnsupportedSyntaxError([Diagnostic("PCB152", f"not valid Python: {error.msg}", span)]) from None
    except ValueError as error:  # a null byte
        message = f"{file} is not valid Python: {error}"
        raise UnsupportedSyntaxError([Diagnostic("PCB152", message, None, help="save it as text")]) from None


def check_nesting(definition: ast.AST, file: str) -> None:
    """UnsupportedSyntaxError where a definition is nested deeper than the passes can go."""
    waiting: list[tuple[ast.AST, float]] = [(definition, 0.0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > 1.0 and isinstance(node, ast.expr | ast.stmt):
            message = "this is nested too deep: each operator in a row and each elif is a level"
            advice = (
                f"give parts of it names; at most {EXPRESSIONS} levels of expressions or {STATEMENTS} of statements"
            )
            raise UnsupportedSyntaxError([Diagnostic("PCB152", message, Span.of_line(file, node.lineno), help=advice)])
        depth += 1.0 / (STATEMENTS if isinstance(node, ast.stmt) else EXPRESSIONS)
        waiting += [(child, depth) for child in children(node)]
