"""Expressions of a module that has not run: what they give, where that is known."""

from __future__ import annotations

import ast
import builtins
import collections
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from pcbatch.ir.expression_printer import BINARY
from pcbatch.reading.static.opaque import Name, Opaque, opaque

MAKERS = (collections.namedtuple, dataclasses.field, functools.partial, range, float, int)
"""Functions that are called if their arguments are known: they make another value, and do nothing else."""
OPERATORS = {getattr(ast, BINARY[symbol].node): BINARY[symbol].python for symbol in ("+", "-", "*", "/", "//")}
"""Operators on numbers that are known."""


class Expressions:
    """Values of expressions."""

    names: dict[str, Any]
    codes: dict[tuple[str, int], CodeType]
    methods: dict[str, Mapping[str, Any]]

    def value(self, node: ast.expr, name: str) -> Any:
        """Return what an expression gives; opaque, and called `name`, where that is not known."""
        try:
            return self._value(node, name)
        except (ArithmeticError, TypeError, ValueError):  # for Python to say when it runs
            return opaque(name)

    def _value(self, node: ast.expr, name: str) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=known):
                return self.names[known] if known in self.names else getattr(builtins, known, opaque(known))
            case ast.Attribute(value=whole, attr=attribute):
                return getattr(self._value(whole, name), attribute, opaque(name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                found = self._value(operand, name)
                return -found if isinstance(found, int | float | complex) else opaque(name)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._value(left, name), self._value(right, name)
                are_numbers = type(a) in (int, float) and type(b) in (int, float)
                return OPERATORS[type(op)](a, b) if are_numbers and type(op) in OPERATORS else opaque(name)
            case ast.Tuple(elts=elts):
                return tuple(self._items(elts, name))
            case ast.List(elts=elts):
                return self._items(elts, name)
            case ast.Set(elts=elts):
                return set(self._items(elts, name))
            case ast.Dict(keys=keys, values=values):
                own = [self._value(key, name) for key in keys if key is not None]
                return dict(zip(own, self._items(values, name), strict=True))
            case ast.Lambda(args=arguments):
                defaults = tuple(self.value(each, name) for each in arguments.defaults)
                return FunctionType(self.codes["<lambda>", node.lineno], self.names, "<lambda>", defaults)
            case ast.Call(func=function, args=given, keywords=keywords):
                return self._called(self._value(function, name), given, keywords, name)
        return opaque(name)

    def _items(self, nodes: Sequence[ast.expr], name: str) -> list[Any]:
        if any(isinstance(each, ast.Starred) for each in nodes):
            raise ValueError("how many items there are is not known")
        return [self._value(each, f"{name}[{place}]") for place, each in enumerate(nodes)]

    def _called(self, function: Any, given: Sequence[ast.expr], keywords: Sequence[ast.keyword], name: str) -> Any:
        cls = function.opaque_name.text if isinstance(function, Opaque) else getattr(function, "__qualname__", "")
        if cls in self.methods and self.names.get(cls) is function:
            return Opaque(Name(name, methods=self.methods[cls], is_object=True, cls=function))
        arguments = self._items(given, name)
        named = {each.arg: self._value(each.value, name) for each in keywords if each.arg is not None}
        are_all = len(named) == len(keywords)
        is_known = are_all and not any(isinstance(each, Opaque) for each in (*arguments, *named.values()))
        if function not in MAKERS or not is_known:
            return opaque(name)
        return function(*arguments, **named)
