"""Places where NumPy's own operators differ from a lane's: these are computed on proxies, and the rest runs bare.

A function with such places runs by the code of its own tree in which each of them is a call of a helper. A line
`total += n * 0.5` with an int `n` becomes `total += _pcb_Mult(n, 0.5)`, which has float32, and `a[i:i + 3]` becomes
`_pcb_exactly(a[i:i + 3], 3)`, which raises where Python has cut the slice short. A helper takes whatever comes, so it
is as right for several types as for one.
"""

from __future__ import annotations
import __future__ as future

import ast
import copy
import operator
import warnings
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, GeneratorType
from typing import Any

import numpy as np

from pcbatch.errors import PcbatchError, Span
from pcbatch.frontend.source import found as definition_of
from pcbatch.ir.operators import BINARY, BY_NODE, COMPARISONS, UNARY
from pcbatch.ir.slices import Window, length_of
from pcbatch.single.boundaries import codes
from pcbatch.single.calls import library, plain
from pcbatch.single.values import Value, operand, seen
from pcbatch.threads import parse

_FLAGS = {getattr(future, name).compiler_flag for name in future.all_feature_names}
_INTS = tuple(np.dtype(code).type for code in "bhilqBHILQ")
_FLOATS: dict[Any, Any] = {float: np.float32, np.float16: np.float16, np.float32: np.float32}
"""The dtype of an int beside a float, where it is not NumPy's."""
_BESIDE_FLOATS = {(whole, part): dtype for whole in _INTS for part, dtype in _FLOATS.items()}
_FAST = frozenset({"+", "-", "*", "<", "<=", ">", ">=", "==", "!="})
_PURE = frozenset(
    {"sum", "prod", "cumsum", "cumprod", "trace", "mean", "var", "std", "argsort", "dot", "max", "min", "round"}
    | {"abs", "index", "count", "clip"}
)
"""Methods and functions of NumPy, and of lists, that change nothing and give new values."""
_SINGLE = (bool, int, float, complex, str, type, np.ndarray, np.generic, np.dtype)
_ITERATORS = (GeneratorType, range, map, zip, enumerate, reversed, filter)
_BUILTINS = {each.__name__: each for each in (abs, all, any, divmod, len, max, min, round, sum)}


class UnfitError(Exception):
    """Raised for user code that has no form for bare numbers."""


def _proxied(value: Any) -> Any:
    """A value, or a structure of such, on proxies; UnfitError for what may have others inside."""
    if isinstance(value, (tuple, list)):
        parts = [_proxied(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return map(_proxied, value) if isinstance(value, _ITERATORS) else _single(value)


def _single(value: Any) -> Any:
    if value is None or isinstance(value, _SINGLE):
        return seen(value)
    raise UnfitError(type(value).__name__)


def _operand(value: Any) -> Any:
    """An operand of arithmetic: lists and tuples have the same parts afterwards."""
    return value if isinstance(value, (tuple, list)) else _single(value)


def _whole(value: Any) -> Any:
    return value if isinstance(value, (set, frozenset, dict)) else _proxied(value)


def _binary(symbol: str) -> Callable[[Any, Any], Any]:
    row = BINARY[symbol]
    python, is_fast = row.python, symbol in _FAST
    take = _operand if row.method and symbol not in COMPARISONS else _proxied
    take_right = take if row.method else _whole

    def call(left: Any, right: Any) -> Any:
        if is_fast:
            dtype = _BESIDE_FLOATS.get((type(left), type(right)))
            if dtype is not None:
                return python(dtype(left), right)
        return plain(python(take(left), take_right(right)), operand)

    return call


def _in_place(symbol: str) -> Callable[[Any, Any], Any]:
    apart, python = _binary(symbol), getattr(operator, f"__i{BINARY[symbol].method}__")

    def call(left: Any, right: Any) -> Any:
        if not isinstance(left, np.ndarray):
            return apart(left, right) if isinstance(left, (np.generic, bool, int, float)) else python(left, right)
        found = np.asarray(apart(left, right))
        if not np.can_cast(found.dtype, left.dtype, "same_kind"):
            raise UnfitError(symbol)
        left[...] = found
        return left

    return call


def _unary(symbol: str) -> Callable[[Any], Any]:
    return lambda value: plain(UNARY[symbol].python(_single(value)), operand)


def call(function: Any, *given: Any, **options: Any) -> Any:
    """A pure function or method of NumPy's, of Python's or of a list, of proxies."""
    owner, function = getattr(function, "__self__", None), getattr(function, "of_numpy", function)
    name = getattr(function, "__name__", "")
    if isinstance(owner, (np.ndarray, np.generic, list, tuple)) and name in _PURE:
        called = getattr(_proxied(owner), name)
    elif _BUILTINS.get(name) is function:
        called = function
    elif isinstance(function, np.ufunc) or (name in _PURE and getattr(np, name, None) is function):
        called = library(function)
    else:
        raise UnfitError(name)
    if "out" in options or any(isinstance(each, np.ndarray) for each in given[2:]):  # which may be changed
        raise UnfitError(name)
    found = called(*_proxied(given), **{each: _proxied(value) for each, value in options.items()})
    for each in found if isinstance(found, tuple) else (found,):
        if not isinstance(each, (Value, bool, int, float, complex)):  # which may be one of the arguments
            raise UnfitError(name)
    return plain(found, operand)


def _exactly(found: Any, length: int) -> Any:
    """A slice of fixed length; UnfitError where it was cut short."""
    if len(found) != length:
        raise UnfitError("a slice leaves its array")
    return found


def _index(whole: Any, *parts: Any) -> Any:
    """An index with slices of fixed length, which are windows; IndexError where one leaves its axis."""
    shape, axis = np.shape(whole), 0
    found: list[Any] = []
    for part in parts:
        if part is None or isinstance(part, (bool, np.bool_)) or getattr(part, "dtype", None) == np.bool_:
            raise UnfitError("an index of another number of axes")
        if part is ...:
            axis = len(shape) - (len(parts) - 1 - len(found))
        found.append(part.resolve(shape[axis]) if isinstance(part, Window) else part)
        axis += part is not ...
    return tuple(found) if len(found) > 1 else found[0]


def _fixed(start: Any, stop: Any, step: Any = 1) -> Window:
    return Window(start, stop, step, stop - start)


def _operators() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for node, row in BY_NODE.items():
        is_unary = UNARY.get(row.symbol) is row
        found[node] = _unary(row.symbol) if is_unary else _binary(row.symbol)
        if row.method and not is_unary and row.symbol not in COMPARISONS:
            found[f"i{node}"] = _in_place(row.symbol)
    return found


_HELPERS: dict[str, Callable[..., Any]] = {
    **_operators(),
    "call": call,
    "exactly": _exactly,
    "index": _index,
    "fixed": _fixed,
    "slice": slice,
}
HELPERS: Mapping[str, Callable[..., Any]] = {f"_pcb_{name}": helper for name, helper in _HELPERS.items()}
"""Names that rewritten code has, beside built-ins."""
OPERATORS = {(row.symbol, 1 if UNARY.get(row.symbol) is row else 2): _HELPERS[node] for node, row in BY_NODE.items()}
"""Operators on proxies, by symbol and number of operands."""


# -- code ------------------------------------------------------------------------------------------------------------


def rewritten(function: FunctionType, places: frozenset[Span]) -> tuple[CodeType, frozenset[Span]]:
    """The code of a function in which helpers compute those of `places` that are inside of it, and these.

    UnfitError where one of them has no helper, or where the function's source cannot be had.
    """
    code = function.__code__
    lines = [line for each in codes(code) for *_, line in each.co_lines() if line]
    first, last = min(lines, default=0), max(lines, default=0)
    inside = frozenset(p for p in places if p.file == code.co_filename and first <= p.line <= last)
    if not inside:
        return code, inside
    try:
        known, text = definition_of(function)
        inside = frozenset(p for p in inside if known.lineno <= p.line <= (known.end_lineno or 0))
        tree = parse("".join(text))
        is_changed = _contents(_compiled(tree, code)) != _contents(code)
    except (PcbatchError, SyntaxError, ValueError, LookupError, RecursionError):
        is_changed = True
    if is_changed:
        raise UnfitError(f"the source of {function.__name__} cannot be had")
    place = known.lineno, known.col_offset
    definition = next(n for n in ast.walk(tree) if isinstance(n, type(known)) and (n.lineno, n.col_offset) == place)
    rewriter = _Rewriter(code.co_filename, text, inside)
    definition.decorator_list, decorators = [], definition.decorator_list
    rewriter.generic_visit(definition)
    definition.decorator_list = decorators
    if rewriter.left:
        raise UnfitError(str(min(rewriter.left)))
    return _compiled(tree, code), inside


def _compiled(tree: ast.Module, code: CodeType) -> CodeType:
    """The code that a tree of a file now has for a code object; LookupError if it has none."""
    flags = sum(flag for flag in _FLAGS if code.co_flags & flag)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the file have been shown
        whole = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
    found = {(each.co_name, each.co_firstlineno): each for each in codes(whole)}
    return found[code.co_name, code.co_firstlineno]


def _contents(code: CodeType) -> Any:
    """All that a code object does."""
    parts = [_contents(each) if isinstance(each, CodeType) else (type(each), each) for each in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, names, code.co_flags, parts


class _Rewriter(ast.NodeTransformer):
    """Puts helpers into a tree; the places that are `left` have none."""

    def __init__(self, file: str, lines: Any, places: frozenset[Span]):
        self.file, self.lines = file, lines
        self.places, self.left = places, {*places}

    def _is_here(self, node: Any) -> bool:
        spans = (self._column(node.lineno, node.col_offset), self._column(node.end_lineno, node.end_col_offset))
        place = Span(self.file, node.lineno, spans[0], node.end_lineno, spans[1])
        if place not in self.places:
            return False
        self.left.discard(place)
        return True

    def _column(self, line: int, column: int) -> int:
        """A column in characters, of one in bytes."""
        text = self.lines[line - 1]
        return column if text.isascii() else len(text.encode()[:column].decode())

    def visit_BinOp(self, node: Any) -> Any:
        self.generic_visit(node)
        return _helper(type(node.op).__name__, node, node.left, node.right) if self._is_here(node) else node

    def visit_UnaryOp(self, node: Any) -> Any:
        self.generic_visit(node)
        return _helper(type(node.op).__name__, node, node.operand) if self._is_here(node) else node

    def visit_Compare(self, node: Any) -> Any:
        self.generic_visit(node)
        if len(node.ops) > 1 or not self._is_here(node):
            return node
        return _helper(type(node.ops[0]).__name__, node, node.left, node.comparators[0])

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        if not self._is_here(node):
            return node
        found = _helper("call", node, node.func, *node.args)
        found.keywords = node.keywords
        return found

    def visit_AugAssign(self, node: Any) -> Any:
        self.generic_visit(node)
        if not self._is_here(node):
            return node
        before, target = self._apart(node.target)
        read = copy.copy(target)
        read.ctx = ast.Load()
        value = _helper(f"i{type(node.op).__name__}", node, read, node.value)
        return [*before, _placed(ast.Assign([target], value), node)]

    def visit_Assign(self, node: Any) -> Any:
        self.generic_visit(node)
        (target, *others) = node.targets
        if others or not isinstance(target, ast.Subscript) or not self._is_here(node):
            return node
        value = _placed(ast.Assign([ast.Name("_pcb_value", ast.Store())], node.value), node)
        before, target = self._apart(target)
        return [value, *before, _placed(ast.Assign([target], ast.Name("_pcb_value", ast.Load())), node)]

    def _apart(self, target: Any) -> tuple[list[Any], Any]:
        """Statements before a store, and a target that can be evaluated twice then."""
        if isinstance(target, ast.Name):
            return [], target
        whole = ast.Name("_pcb_whole", ast.Load())
        before = [_placed(ast.Assign([ast.Name("_pcb_whole", ast.Store())], target.value), target)]
        if isinstance(target, ast.Attribute):
            return before, _placed(ast.Attribute(whole, target.attr, ast.Store()), target)
        at = _placed(ast.Assign([ast.Name("_pcb_at", ast.Store())], _index_of(target, whole)), target)
        return [*before, at], _placed(ast.Subscript(whole, ast.Name("_pcb_at", ast.Load()), ast.Store()), target)

    def visit_Subscript(self, node: Any) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not self._is_here(node):
            return node
        at = node.slice
        length = length_of(at.lower, at.upper) if isinstance(at, ast.Slice) and at.step is None else None
        if isinstance(length, ast.Constant):
            return _helper("exactly", node, node, length)
        if not isinstance(node.value, ast.Name):
            raise UnfitError("an index of an expression")
        node.slice = _index_of(node, ast.Name(node.value.id, ast.Load()))
        return node


def _index_of(node: Any, whole: Any) -> Any:
    """The index of a subscript of `whole`, whose slices of fixed length are inside of it."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return _helper("index", node, whole, *map(_part, parts))


def _part(at: Any) -> Any:
    """A part of an index, as an expression."""
    if not isinstance(at, ast.Slice):
        return at
    kind = "slice" if length_of(at.lower, at.upper) is None else "fixed"
    bounds = [at.lower, at.upper, at.step]
    if kind == "fixed" and at.step is None:
        bounds.pop()
    return _helper(kind, at, *(ast.Constant(None) if each is None else each for each in bounds))


def _helper(name: str, node: Any, *given: Any) -> Any:
    return _placed(ast.Call(ast.Name(f"_pcb_{name}", ast.Load()), [*given], []), node)


def _placed(made: Any, node: Any) -> Any:
    return ast.fix_missing_locations(ast.copy_location(made, node))
