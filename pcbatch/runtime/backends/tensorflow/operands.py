"""Pairs of the user's operands whose dtypes do not go together: `s / n` of a float and an int."""

from __future__ import annotations

import ast
import dis
import itertools
import linecache
import re
from collections.abc import Iterator
from types import CodeType, TracebackType

from pcbatch.errors import Span
from pcbatch.ir.operators import ARITHMETIC, COMPARISONS
from pcbatch.threads import parse

# -- bytecode ----------------------------------------------------------------------------------------------------------
# Finds the operator for a position in a line's bytecode on Python 3.10; later versions record it themselves.

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_COMPREHENSIONS: dict[str, type[Comprehension]] = {
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
    "<dictcomp>": ast.DictComp,
    "<genexpr>": ast.GeneratorExp,
}
_SCOPES = (ast.Lambda, *_COMPREHENSIONS.values())
"""Syntax with bytecode of its own."""


def in_order(line: ast.Module, place: TracebackType) -> ast.expr | None:
    """The operator of a `line` of code that is computed at `place`; None where that cannot be told.

    A line's operators and calls are computed in the order in which its bytecode has them: `a + b * f(c)` calls, then
    multiplies, then adds.
    """
    code = place.tb_frame.f_code
    starts = [(start, end) for start, end, number in code.co_lines() if number == place.tb_lineno]
    found = [
        (each.offset, kind)
        for each in dis.get_instructions(code)
        if (kind := _comprehension(each.opname)) is not None
        and any(start <= each.offset < end for start, end in starts)
    ]
    kinds = [kind for _, kind in found]
    every = [list(_computed(each)) for each in _bodies(line, code)]
    matches = [nodes for nodes in every if [type(node) for node in nodes] == kinds]
    offsets = [offset for offset, _ in found]
    if len(matches) != 1 or place.tb_lasti not in offsets:
        return None
    return matches[0][offsets.index(place.tb_lasti)]


def _comprehension(operation: str) -> type[ast.expr] | None:
    """Return the kind of expression that a bytecode of this name computes."""
    if operation.startswith("CALL_"):
        return ast.Call
    if operation in ("COMPARE_OP", "IS_OP", "CONTAINS_OP"):
        return ast.Compare
    if operation.startswith("BINARY_") and operation != "BINARY_SUBSCR":
        return ast.BinOp
    return None


def _bodies(line: ast.Module, code: CodeType) -> list[ast.AST]:
    """The parts of a line that `code` may be of."""
    if code.co_name == "<lambda>":
        return [each.body for each in ast.walk(line) if isinstance(each, ast.Lambda)]
    if code.co_name in _COMPREHENSIONS:
        kind = _COMPREHENSIONS[code.co_name]
        return [_turn(each) for each in ast.walk(line) if isinstance(each, kind)]
    return [line]


def _turn(node: Comprehension) -> ast.Tuple:
    """Return the expressions that a turn of a comprehension computes, in order, without the outermost iterable."""
    parts: list[ast.expr] = []
    for number, each in enumerate(node.generators):
        parts += [each.iter] * (number > 0) + [each.target, *each.ifs]
    parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    return ast.Tuple(parts, ast.Load())


def _computed(node: ast.AST) -> Iterator[ast.expr]:
    """The operators and calls of code in the order in which they are computed."""
    if isinstance(node, ast.Assign):
        parts: list[ast.AST] = [node.value, *node.targets]
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        if not isinstance(part, _SCOPES):
            yield from _computed(part)
    if isinstance(node, ast.BinOp | ast.Compare | ast.Call):
        yield node


# -- operands ----------------------------------------------------------------------------------------------------------

_MIXED = (
    re.compile(r"must have the same dtype, got tf\.(?P<left>\w+) != tf\.(?P<right>\w+)"),
    re.compile(r"Input 'y' of '\w+' Op has type (?P<right>\w+) that does not match type (?P<left>\w+) of argument 'x'"),
)
"""TensorFlow's messages about operands of two dtypes."""
_LITERAL = re.compile(r"^Expected (?P<dtype>u?int\d+) passed to parameter '(?P<place>[xy])' .* got \S+ of type 'float'")
"""TensorFlow's message about an int tensor and a float of Python's."""
_CHOSEN = re.compile(r"^`(?P<operator>and|or)` gives one of its operands, got (?P<left>\w+) or (?P<right>\w+)$")
"""The message of `selection` about `and` and `or` of a number and a bool."""

UNCAST = "nothing is cast by itself"
"""The end of messages about operands of two dtypes, which they have wherever the operator stands."""

_OPERATORS: dict[str, type[ast.operator]] = {row.ops: getattr(ast, row.node) for row in ARITHMETIC}
"""The functions for operators in generated code."""
_COMPARISONS: dict[str, type[ast.cmpop]] = {row.ops: getattr(ast, row.node) for row in COMPARISONS.values()}
"""The functions for comparisons there."""
_CHOICES: dict[str, type[ast.boolop]] = {"both": ast.And, "either": ast.Or}
"""The functions for `and` and `or`."""
LONG = 40
"""Operands of more characters are not shown."""


_FLOATING = frozenset(
    {"acos", "asin", "atan", "cos", "cosh", "erf", "exp", "expm1", "lgamma", "log", "log1p", "sigmoid", "sin", "sinh"}
    | {"sqrt", "square", "tan", "tanh"}
)
"""TensorFlow's functions of one number, whose result has its dtype."""
PRODUCT = "a matrix times a vector is tf.linalg.matvec(W, v), two vectors are tf.tensordot(u, v, 1)"
"""The replacements of an `@` that is not of matrices."""


def mixed(why: str, place: TracebackType | None, span: Span | None = None) -> tuple[str, str] | None:
    """Return message and help for TensorFlow's complaint `why` about an operator at `place`; None for other complaints.

    `span` is the user's statement or expression that the operator is in.
    """
    chosen = _CHOSEN.search(why)
    if chosen is not None:
        return _of_choice(chosen, _operands(place, span))
    literal = _LITERAL.search(why)
    names = None if literal is None else _operands(place, span)
    if literal is not None and names is not None:
        number, value = names if literal["place"] == "y" else names[::-1]
        text = number.strip("`")
        told = f"{number} is {literal['dtype']} and {value} a float, and {UNCAST}"
        return told, f"write `{_cast(text, 'float32')}`; of a number `float({text})` is as good"
    found = next((match for pattern in _MIXED if (match := pattern.search(why))), None)
    if found is None:
        return None
    left, right = found["left"], found["right"]
    names = _operands(place, span)
    one, other = names if names is not None else ("the left operand", "the right one")
    if "string" in (left, right):
        return f"{one} is {left} and {other} is {right}: no operator takes a number and a text", ""
    told = f"{one} is {left} and {other} is {right}, and {UNCAST}"
    quotient = next((text for text, dtype in ((one, left), (other, right)) if dtype == "float64" and " / " in text), "")
    if quotient and {left, right} == {"float32", "float64"}:
        return told, f"`/` of two ints gives float64: write `tf.cast({quotient.strip('`')}, tf.float32)`"
    holds, cast = (right, one) if _rank(right) > _rank(left) else (left, other)  # a cast to an int would cut off
    text = cast.strip("`") if names is not None else ".."
    return told, f"write `{_cast(text, holds)}`"


def _of_choice(found: re.Match[str], names: tuple[str, str] | None) -> tuple[str, str]:
    """Return message and help for `and` or `or` of a number and a bool whose value is used."""
    kinds = found["left"], found["right"]
    one, other = names or ("the left operand", "the right one")
    number = next(name for name, kind in zip((one, other), kinds, strict=True) if kind != "bool").strip("`")
    number = number if names is not None else "k"
    told = f"`{found['operator']}` gives one of its operands, {one} ({kinds[0]}) or {other} ({kinds[1]})"
    return told, f"a lane's value has one type: write `{number} != 0` for the truth of the number"


def product(place: TracebackType | None) -> str | None:
    """Return the message for an `@` at `place` that TensorFlow has left to NumPy, which cannot compute it."""
    match None if place is None else _node(place):
        case ast.BinOp(op=ast.MatMult()):
            return "TensorFlow's `@` is of two matrices of one dtype"
    return None


def _cast(text: str, dtype: str) -> str:
    """The cast of an operand; of a function of a number inside it, as the function would round to float32 before."""
    try:
        node = parse(text, mode="eval").body
    except SyntaxError:
        node = None
    match node:
        case ast.Call(func=function, args=[argument], keywords=[]) if dtype == "float64":
            name = ast.unparse(function)
            if name.startswith("tf.") and name.rpartition(".")[2] in _FLOATING:
                return f"{name}(tf.cast({ast.unparse(argument)}, tf.{dtype}))"
    return f"tf.cast({text}, tf.{dtype})"


def _rank(dtype: str) -> tuple[int, int]:
    """Return a sort key for dtypes, largest for the one that holds the others: by kind, then by width."""
    kinds = ("bool", "uint", "int", "bfloat", "float", "complex")
    digits = re.sub(r"\D", "", dtype) or "0"
    return max(place for place, kind in enumerate(kinds) if dtype.startswith(kind)), int(digits)


def _operands(place: TracebackType | None, span: Span | None) -> tuple[str, str] | None:
    """The text of both operands of the operator computed at `place` of generated code, as the user wrote them.

    Where they hold names of the compiler's own, those of the only such operator in `span`.
    """
    node = None if place is None else _node(place)
    if node is None:
        return None
    node = _ReturnSelf().visit(node)
    found = _parts(node)
    if found is None:
        return None
    written = _tree(span)
    used = {each.id for part in found for each in ast.walk(part) if isinstance(each, ast.Name)}
    names = {each.id for each in ast.walk(written) if isinstance(each, ast.Name)} if written is not None else used
    if not used <= names:
        same = [each for each in ast.walk(written or node) if isinstance(each, ast.expr) and _kind(each) == _kind(node)]
        found = _parts(same[0]) if len(same) == 1 else None
    texts = [ast.unparse(part) for part in found or ()]
    if not texts or any(len(each) > LONG for each in texts):
        return None
    return f"`{texts[0]}`", f"`{texts[1]}`"


def _parts(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    match node:
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return left, right
        case ast.BoolOp(values=[left, right]):
            return left, right
        case ast.Call(args=[left, right, *_]):
            return left, right
    return None


def _kind(node: ast.expr) -> type[ast.AST]:
    """Return the operator's type of a node."""
    return type(node.op) if isinstance(node, ast.BinOp | ast.BoolOp) else type(node)


def _tree(span: Span | None) -> ast.AST | None:
    """Parse the user's code at `span`; None for a fragment."""
    if span is None:
        return None
    lines = [linecache.getline(span.file, line) for line in range(span.line, span.end_line + 1)]
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    try:
        return parse("".join(lines).strip())
    except SyntaxError:  # a part of a statement, or of an expression in brackets
        return None


def _node(place: TracebackType) -> ast.expr | None:
    """The operator of generated code that is computed at `place`."""
    code = place.tb_frame.f_code
    line = linecache.getline(code.co_filename, place.tb_lineno).strip()
    try:
        if not hasattr(code, "co_positions"):
            return in_order(parse(line), place)
        found = next(itertools.islice(code.co_positions(), place.tb_lasti // 2, None), None)
        if found is None or None in found or found[0] != found[1]:
            return None
        text = linecache.getline(code.co_filename, found[0] or 0).encode()[found[2] : found[3]].decode()
        return parse(text, mode="eval").body
    except SyntaxError:
        return None


class _ReturnSelf(ast.NodeTransformer):
    """Calls of `ops` that stand for operators, as the user wrote them."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="_ops"), attr=name), args=[left, right, *_]):
                if name in _OPERATORS:
                    return ast.BinOp(left, _OPERATORS[name](), right)
                if name in _COMPARISONS:
                    return ast.Compare(left, [_COMPARISONS[name]()], [right])
                if name in _CHOICES and isinstance(right, ast.Lambda):
                    return ast.BoolOp(_CHOICES[name](), [left, right.body])
        return node
