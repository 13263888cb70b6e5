"""`with` blocks of the IR: from an Enter to its Exit, and as the one statement of Python that they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from textwrap import indent

from pcbatch.ir.code import Code
from pcbatch.ir.program import Enter, Exit, Op, Primitive, Update, reads, writes


def steps(ops: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """`ops` in order, each alone; a `with` block together, from its Enter to its Exit."""
    place = 0
    while place < len(ops):
        length = _length(ops[place:])
        yield tuple(ops[place : place + length])
        place += length


def _length(ops: Sequence[Op]) -> int:
    depth = 0
    for place, op in enumerate(ops):
        depth += isinstance(op, Enter) - isinstance(op, Exit)
        if depth <= 0:
            return place + 1
    return len(ops)


def as_statement(block: Sequence[Op]) -> Primitive:
    """A `with` block as one primitive that does all that is in it."""
    known = {name for op in block for name in (*reads(op), *writes(op))}
    opens, closes = [isinstance(op, Enter) for op in block], [isinstance(op, Exit) for op in block]
    texts = [op.code.text if isinstance(op, Primitive | Enter | Update) else "" for op in block]
    text = "\n".join(line for lines in indented(opens, closes, texts) for line in lines)
    code = Code(ast.unparse(ast.parse(text)))
    return Primitive(code.writes, tuple(name for name in code.reads if name in known), code, block[0].span)


def indented(opens: Sequence[bool], closes: Sequence[bool], texts: Sequence[str]) -> list[list[str]]:
    """The lines of each statement, where some are headers that open a `with` block and some, without text, close one.

    A header is a `with` statement whose body is `pass`, which stays where the block is empty.
    """
    found: list[list[str]] = []
    depth = 0
    for place, (opening, closing, text) in enumerate(zip(opens, closes, texts, strict=True)):
        depth -= closing
        is_empty = opening and closes[place + 1]
        header = text.removesuffix("\n    pass") if opening and not is_empty else text
        found.append(indent(header, "    " * depth).splitlines())
        depth += opening
    return found
