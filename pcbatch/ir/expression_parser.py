"""Expressions from Python's trees: every name is a free one, until it is said which are variables (`resolved`)."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from typing import Any

from pcbatch.ir.expressions import (
    Apply,
    Attribute,
    Constant,
    Delayed,
    Expression,
    Inner,
    Items,
    Name,
    Slice,
    Starred,
    Written,
    constant_of,
    operation,
)
from pcbatch.ir.operators import BY_NODE
from pcbatch.ir.types import NONE, StructType, TensorType, Type
from pcbatch.threads import parse

# -- type parser -------------------------------------------------------------------------------------------------------
# Reads types back from text: `weak int32[]`, `float32[3, 4]`, `(int32[], bool[])`, `{a: int32[]}`, `P(x=int32[])`.

_WORD = re.compile(r"[^\s()\[\]{}=,:'\"]+")
_SHAPE = re.compile(r"\[(\d+(?:, \d+)*)?\]")
_LITERAL = re.compile(r"-?\.?\d[\w.+-]*|\((?:[^()]|\([^()]*\))*\)|(?:True|False|None)\b")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def parse_type(text: str) -> Type:
    """The type that `text` denotes; ValueError if it is none."""
    type_, end = parse_type_at(text, 0)
    if end != len(text):
        raise ValueError(f"unexpected {text[end:]!r} after a type")
    return type_


def parse_type_at(text: str, start: int) -> tuple[Type, int]:
    """The type that starts at `text[start]` and the place behind it; ValueError if there is none."""
    reader = _Reader(text, start)
    return reader.type(), reader.place


class _Reader:
    """A cursor over one line of text."""

    def __init__(self, text: str, place: int):
        self.text = text
        self.place = place

    def skip(self, token: str) -> bool:
        """Step over `token` if it comes next."""
        found = self.text.startswith(token, self.place)
        self.place += len(token) if found else 0
        return found

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Step over a match of `pattern`, which must come next."""
        found = pattern.match(self.text, self.place)
        if found is None:
            raise ValueError(f"expected {what} at {self.text[self.place :]!r}")
        self.place = found.end()
        return found

    def type(self) -> Type:
        if self.skip("("):
            return self.struct("tuple", ")")
        if self.skip("["):
            return self.struct("list", "]")
        if self.skip("{"):
            return self.struct("dict", "}", ": ")
        weak = self.skip("weak ")
        word = self.match(_WORD, "a type")[0]
        if word == "None" and not weak:
            return NONE
        if not weak and self.skip("("):
            return self.struct(word, ")", "=")
        shape = self.match(_SHAPE, f"a shape after {word!r}")[1]
        return TensorType(word, tuple(map(int, shape.split(", "))) if shape else (), weak)

    def struct(self, kind: str, close: str, separator: str = "") -> StructType:
        """The items of a structure whose opening bracket has been read; `separator` stands behind each key, if any."""
        keys: list[Any] = []
        items: list[Type] = []
        while not self.skip(close):
            if items and not self.skip(", "):
                raise ValueError(f"expected ', ' or {close!r} at {self.text[self.place :]!r}")
            if separator:
                keys.append(self.key(separator))
            items.append(self.type())
            if kind == "tuple" and len(items) == 1 and self.text.startswith(",)", self.place):
                self.place += 1
        return StructType(kind, tuple(items), tuple(keys))

    def key(self, separator: str) -> Any:
        """A key: a word, or a literal of Python's."""
        literal = _STRING.match(self.text, self.place) or _LITERAL.match(self.text, self.place)
        key: Any
        if literal is not None:
            self.place = literal.end()
            key = ast.literal_eval(literal[0])
        else:
            key = self.match(_WORD, "a key")[0]
        if not self.skip(separator):
            raise ValueError(f"expected {separator!r} after the key {key!r}")
        return key


# -- expression parser -------------------------------------------------------------------------------------------------

_SEQUENCES: dict[type[ast.expr], str] = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MARK = re.compile(r"__pcb(\d+)__")


def parse_expression(text: str) -> Expression:
    """The expression that a text says; SyntaxError where it says none."""
    return expression_of(parse(text, mode="eval").body)


def expression_of(node: ast.expr) -> Expression:
    """The expression that a tree stands for."""
    match node:
        case ast.Name(id=name):
            return Name(name)
        case ast.Constant(value=value):
            return constant_of(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() | complex() as number)) if type(
            number
        ) is not bool and repr(-number).startswith("-"):
            return Constant(-number)
        case ast.UnaryOp(op=op, operand=operand):
            return operation(BY_NODE[type(op).__name__].symbol, expression_of(operand))
        case ast.BinOp(right=ast.Constant(value=complex())) if (known := _complex(node)) is not None:
            return Constant(known)
        case ast.BinOp(left=left, op=binary, right=right):
            return operation(BY_NODE[type(binary).__name__].symbol, expression_of(left), expression_of(right))
        case ast.BoolOp(op=junction, values=values):
            return operation("and" if isinstance(junction, ast.And) else "or", *map(expression_of, values))
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            return operation(BY_NODE[type(comparison).__name__].symbol, expression_of(left), expression_of(right))
        case ast.Compare(comparators=others) if all(isinstance(e, ast.Name | ast.Constant) for e in others[:-1]):
            operands = [expression_of(each) for each in (node.left, *others)]
            links = zip(node.ops, operands, operands[1:], strict=False)
            return operation("and", *(operation(BY_NODE[type(op).__name__].symbol, *two) for op, *two in links))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return operation("if", *map(expression_of, (test, body, orelse)))
        case ast.Subscript(value=value, slice=index):
            return operation("[]", expression_of(value), expression_of(index))
        case ast.Attribute(value=value, attr=name):
            return Attribute(expression_of(value), name)
        case ast.Slice(lower, upper, step):
            return Slice(*(None if each is None else expression_of(each) for each in (lower, upper, step)))
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return Items(_SEQUENCES[type(node)], tuple(map(expression_of, items)))
        case ast.Dict(keys=keys, values=values):
            found = tuple(None if key is None else expression_of(key) for key in keys)
            return Items("dict", tuple(map(expression_of, values)), found)
        case ast.Starred(value=value):
            return Starred(expression_of(value))
        case ast.Call(func=function, args=arguments, keywords=keywords):
            named = tuple((each.arg, expression_of(each.value)) for each in keywords)
            return Apply(expression_of(function), tuple(map(expression_of, arguments)), named)
        case ast.Lambda(args=parameters, body=body) if not [*_parameters(parameters)]:
            return Delayed(expression_of(body))
    return _written(node)


def _complex(node: ast.BinOp) -> complex | None:
    """The number that `1 + 2j` is, if Python writes that so."""
    try:
        number = ast.literal_eval(node)
    except ValueError:
        return None
    return number if repr(number) == f"({ast.unparse(node)})".replace(" ", "") else None


def _parameters(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (each for each in (arguments.vararg, arguments.kwarg) if each is not None)


# -- texts -------------------------------------------------------------------------------------------------------------


def _written(node: ast.expr) -> Written:
    """The text of a tree that has variables of its own, or that no other expression says."""
    marked = copy.deepcopy(node)
    finder = _Finder()
    finder.bound.append(frozenset(e.target.id for e in ast.walk(marked) if isinstance(e, ast.NamedExpr)))
    finder.visit(marked)
    parts = _MARK.split(ast.unparse(marked))  # texts, and between them the numbers of names
    found = (finder.names[int(each)] if at % 2 else each for at, each in enumerate(parts))
    is_closed = not isinstance(node, ast.Lambda | ast.Compare | ast.Yield | ast.YieldFrom | ast.Await)
    return Written(tuple(each for each in found if each != ""), is_closed)


class _Finder(ast.NodeVisitor):
    """Puts a mark in the place of each name: of one that is read from outside, or a variable of the text's own."""

    def __init__(self) -> None:
        self.names: list[Name | Inner] = []
        self.inner: dict[str, int] = {}
        self.bound: list[frozenset[str]] = []

    def _mark(self, name: str, is_own: bool) -> str:
        self.names.append(Inner(self.inner.setdefault(name, len(self.inner)), name) if is_own else Name(name))
        return f"__pcb{len(self.names) - 1}__"

    def visit_Name(self, node: ast.Name) -> None:
        is_own = any(node.id in scope for scope in self.bound) or not isinstance(node.ctx, ast.Load)
        node.id = self._mark(node.id, is_own)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        parameters = [*_parameters(node.args)]
        self.bound.append(frozenset(each.arg for each in parameters))
        for each in parameters:
            each.arg = self._mark(each.arg, True)
        self.visit(node.body)
        self.bound.pop()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first = node.generators[0]
        self.visit(first.iter)  # it belongs to what is around
        targets = (each for generator in node.generators for each in ast.walk(generator.target))
        self.bound.append(frozenset(each.id for each in targets if isinstance(each, ast.Name)))
        for generator in node.generators:
            if generator is not first:
                self.visit(generator.iter)
            self.visit(generator.target)
            for test in generator.ifs:
                self.visit(test)
        for part in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
            self.visit(part)
        self.bound.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension
