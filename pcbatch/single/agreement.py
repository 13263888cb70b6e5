"""Tell whether NumPy's own numbers and arrays give what a typed program says.

Each op is evaluated once on numbers of its operands' types, as Python and NumPy have it: what comes out must have the
types that the program says. Few operators differ in anything but types: comparisons of two dtypes, shifts by a number
that may be negative, slices that may leave their array. Where NumPy differs, proxies may have what the program says:
that place is then in need of a repair (`repairs`).
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import live_after_each_op, liveness
from pcbatch.ir.expressions import (
    Apply,
    Attribute,
    Constant,
    Delayed,
    Expression,
    Input,
    Items,
    Name,
    Operator,
    Slice,
    Starred,
    inputs_read,
    walk,
)
from pcbatch.ir.operators import BINARY, COMPARISONS, UNARY
from pcbatch.ir.payload import CAST, STRUCTURAL, Copy, expression_of, pattern_of
from pcbatch.ir.types import StructType, TensorType, Type, leaves
from pcbatch.ir.values import flatten, pack
from pcbatch.single import repairs


class ApartError(Exception):
    """Raised where NumPy would, or may, do otherwise."""


_STRUCTURAL = {*STRUCTURAL, "__axis__"}
"""Pseudo-builtins of which Python's structures know nothing: there the user's code has lists and objects."""
_OTHERWISE = frozenset({"argsort", "sort", "numpy", "view"})
"""Methods and functions that are not NumPy's own for a lane."""
_LIBRARIES = ("numpy", "math", "tensorflow", "keras", "builtins")


def _types(function: ir.Function) -> dict[str, Type]:
    return {variable.name: variable.type for variable in function.variables if variable.type is not None}


def _has_axes(type_: Type) -> bool:
    return any(leaf.shape for leaf in leaves(type_))


def _is_arithmetic(op: ir.Op) -> bool:
    """Tell whether an op's result is an array of its own."""
    match ir.assigned_value(op):
        case Apply(Operator(symbol), (_,)):
            return symbol in UNARY
        case Apply(Operator(symbol)):
            return symbol in BINARY and bool(BINARY[symbol].method)
    return False


class Agreement:
    """The agreement of a program (`holds`), whether it divides ints, and whether its calls need copies of arrays.

    It holds if the places in `repaired` are computed on proxies. Calls need copies where something may change an array
    that has another name or holder.
    """

    def __init__(self, program: ir.Program, names: Mapping[str, Any]):
        self.names = names
        self.divides = self.copies = False
        self.repaired: set[Span] = set()
        try:
            with np.errstate(all="ignore"):
                changes = [self._check(function) for function in program.functions]
                self.copies |= any(changes) and not all(map(self._passes_on, program.functions))
            self.holds = True
        except Exception:  # whatever an operation raises for ones
            self.holds = False

    def _check(self, function: ir.Function) -> bool:
        """Check the types of a function; return whether it may change an array."""
        types, changes = _types(function), False
        for block in function.blocks:
            for op in block.ops:
                match op:
                    case ir.Primitive(outputs, inputs, code):
                        given = [_example(types[name]) for name in inputs]
                        if isinstance(code, Copy):
                            _require(given[0], types[outputs[0]])
                            continue
                        expression, pattern = expression_of(code, len(inputs)), pattern_of(code)
                        wanted = [types[name] for name in outputs]
                        try:
                            self.copies |= _require_all(self._value(expression, given), pattern, wanted)
                        except Exception:
                            found = self._on_proxies(expression, given, op.span)
                            self.copies |= _require_all(found, pattern, wanted)
                        changes |= any(map(_has_axes, wanted))
                    case ir.Store():
                        changes = True
                    case ir.Call():
                        pass
                    case _:
                        raise ApartError
        return changes

    def _passes_on(self, function: ir.Function) -> bool:
        """Tell whether nobody else has the arrays that a function's calls, or its caller, get of it."""
        types, live = _types(function), liveness(function)
        arrays = {name for name, type_ in types.items() if _has_axes(type_)}
        if any(isinstance(types[name], StructType) for name in arrays):
            return False
        for block in function.blocks:
            for op, after in zip(block.ops, live_after_each_op(block, live[block.label].end), strict=True):
                read = [name for name in ir.reads(op) if name in arrays]
                written = arrays.intersection(ir.writes(op))
                match op:
                    case ir.Call():
                        is_alone = len({*read}) == len(read)
                    case ir.Primitive() if written and not _is_arithmetic(op):
                        is_alone = len(written) == 1 and not any(map(self._is_captured, walk(ir.expression(op))))
                    case _:
                        continue
                if not is_alone or not after.isdisjoint({*read} - written):
                    return False
        return True

    def _is_captured(self, expression: Expression) -> bool:
        """Tell whether an expression is something from around the function that may have an array."""
        if not isinstance(expression, (Name, Attribute)) or inputs_read(expression):
            return False
        found = self._value(expression, [])
        return not (isinstance(found, (ModuleType, type)) or (callable(found) and not hasattr(found, "shape")))

    def _value(self, expression: Expression, given: list[Any]) -> Any:
        """Return the value of an expression; ApartError where it may be another value than a lane's."""
        value = functools.partial(self._value, given=given)
        match expression:
            case Input(place):
                return given[place]
            case Constant():
                return expression.value
            case Name(name):
                return self._named(name)
            case Items("tuple" | "list" as kind, items):
                return (tuple if kind == "tuple" else list)(self._spread(items, given))
            case Items("dict", items, keys) if None not in keys:
                return {value(key): value(item) for key, item in zip(keys, items, strict=True) if key is not None}
            case Slice(start, stop, step):
                if not all(each is None or isinstance(each, Constant) for each in (start, stop, step)):
                    raise ApartError
                return slice(*(None if each is None else value(each) for each in (start, stop, step)))
            case Attribute(of, name):
                return getattr(value(of), name)
            case Apply(Operator(symbol), arguments):
                return self._operator(symbol, arguments, given)
            case Apply(Name(name), arguments) if name == CAST:
                found = value(arguments[0])
                _require_cast(found, [str(each.value) for each in arguments[1:] if isinstance(each, Constant)])
                return found
            case Apply(Name("__guarded__"), (_, Delayed(inner))):
                return value(inner)
            case Apply(function, arguments, keywords):
                return self._called(function, arguments, keywords, given)
        raise ApartError

    def _on_proxies(self, expression: Expression, given: list[Any], place: Span | None) -> Any:
        """Return the value of an expression on proxies, where there is a helper for these."""
        match expression:
            case Apply(Operator("[]"), (whole, index)) if place is not None:
                found = self._value(whole, given)[self._windows(index, given)]
            case Apply(Operator(symbol), arguments) if place is not None:
                found = repairs.OPERATORS[symbol, len(arguments)](*(self._value(each, given) for each in arguments))
            case Apply(function, arguments, keywords) if place is not None and not isinstance(function, Operator):
                options = {name: self._value(each, given) for name, each in keywords if name is not None}
                found = repairs.call(self._value(function, given), *self._spread(arguments, given), **options)
            case _:
                raise ApartError
        self.repaired.add(place)
        return found

    def _windows(self, index: Expression, given: list[Any]) -> Any:
        """An index with slices of fixed length, which begin at 0."""
        match index:
            case Items("tuple", items):
                return tuple(self._windows(each, given) for each in items)
            case Slice(start, stop, step) if start is not None and stop is not None:
                length = int(self._value(stop, given) - self._value(start, given))
                return slice(0, len(range(0, length, 1 if step is None else self._value(step, given))))
            case Slice(start, stop, step):
                return slice(*(each and self._value(each, given) for each in (start, stop, step)))
        return _first(self._value(index, given))

    def _spread(self, items: tuple[Expression, ...], given: list[Any]) -> list[Any]:
        found: list[Any] = []
        for each in items:
            if isinstance(each, Starred):
                found += self._value(each.value, given)
            else:
                found.append(self._value(each, given))
        return found

    def _named(self, name: str) -> Any:
        if name in self.names:
            found = self.names[name]
            if hasattr(found, "numpy") and hasattr(found, "dtype"):
                return np.asarray(found)
            return found
        if name == "__axis__":
            return lambda array, axis: np.arange(np.shape(array)[axis], dtype=np.int32)
        if name in STRUCTURAL:
            return STRUCTURAL[name]
        return getattr(builtins, name)

    def _called(self, function: Any, arguments: Any, keywords: Any, given: list[Any]) -> Any:
        called = self._value(function, given)
        name = getattr(called, "__name__", "")
        module = getattr(called, "__module__", None) or ("numpy" if isinstance(called, np.ufunc) else "")
        owner = getattr(called, "__self__", None) if isinstance(function, Attribute) else None
        if isinstance(owner, (np.ndarray, np.generic)) or (isinstance(function, Name) and function.name in _STRUCTURAL):
            module = "numpy"
        is_random = module.startswith("pcbatch.random")
        if name in _OTHERWISE or not (module.partition(".")[0] in _LIBRARIES or is_random):
            raise ApartError
        options = {name: self._value(each, given) for name, each in keywords if name is not None}
        if len(options) != len(keywords):
            raise ApartError
        found = called(*self._spread(arguments, given), **options)
        if name == "divmod":
            self.divides = True
        return _as_numpy(found)

    def _operator(self, symbol: str, arguments: tuple[Expression, ...], given: list[Any]) -> Any:
        if symbol == "[]":
            whole, index = (self._value(each, given) for each in arguments)
            return whole[_first(index)]
        if symbol in ("<<", ">>") and not _is_natural(arguments[1]):
            raise ApartError
        found = [self._value(each, given) for each in arguments]
        if symbol == "if":
            return found[1]
        if symbol in ("and", "or"):
            return found[-1]
        if len(found) == 1:
            return UNARY[symbol].python(found[0])
        if not BINARY[symbol].method:
            raise ApartError
        left, right = found
        _require_alike(left, right, symbol in COMPARISONS)
        made = BINARY[symbol].python(left, right)
        self.divides |= symbol in ("//", "%") and getattr(made, "dtype", np.dtype(int)).kind in "iu"
        return made


def _is_natural(expression: Expression) -> bool:
    return isinstance(expression, Constant) and isinstance(expression.value, int) and expression.value >= 0


def _example(type_: Type) -> Any:
    """A value of a type."""
    if isinstance(type_, TensorType):
        return _one(type_)
    return pack(type_, [_one(leaf) for leaf in leaves(type_)])


@functools.lru_cache(maxsize=4096)
def _one(type_: TensorType) -> Any:
    if type_.weak:
        return 1 if type_.dtype == "int32" else 1.0
    if type_.shape:
        found = np.ones(type_.shape, type_.dtype)
        if len(type_.shape) > 1 and type_.shape[-1] == type_.shape[-2] and type_.dtype != "bool":
            found += np.eye(type_.shape[-1], dtype=type_.dtype)  # of which there is an inverse
        return found
    return np.dtype(type_.dtype).type(1)


def _first(index: Any) -> Any:
    """An index of which each place is there: numbers of lanes are 0."""
    if isinstance(index, tuple):
        return tuple(map(_first, index))
    if isinstance(index, (bool, np.bool_)):
        raise ApartError
    if isinstance(index, np.integer):
        return 0
    if isinstance(index, np.ndarray) and index.dtype.kind in "iu":
        return np.zeros_like(index)
    return index


def _as_numpy(found: Any) -> Any:
    if isinstance(found, (tuple, list)) and not hasattr(found, "_fields"):
        return type(found)(map(_as_numpy, found))
    return found.numpy() if hasattr(found, "numpy") and hasattr(found, "shape") else found


def _require_alike(left: Any, right: Any, is_comparison: bool) -> None:
    """ApartError for operands that are compared in another dtype than a lane's, or of which one is a structure."""
    kinds = [_kind(each) for each in (left, right)]
    if is_comparison:
        strong = [each.dtype for each in (left, right) if isinstance(each, (np.ndarray, np.generic))]
        if len(strong) == 2 and strong[0] != strong[1] and kinds != ["f", "f"]:
            raise ApartError
        if len(strong) == 1 and kinds[0] != kinds[1] and sorted(kinds) != ["f", "i"]:
            raise ApartError
        if len(strong) == 1 and sorted(kinds) == ["f", "i"] and strong[0].kind != "f":
            raise ApartError
        np.broadcast_shapes(np.shape(left), np.shape(right))


def _kind(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind
    for kind, letter in ((bool, "b"), (int, "i"), (float, "f"), (complex, "c")):
        if isinstance(value, kind):
            return letter
    raise ApartError


def _parts(found: Any, pattern: Any) -> list[Any]:
    parts: list[Any] = []
    for each, inner in zip([*found], pattern, strict=True):
        parts += [each] if inner is None else _parts(each, inner)
    return parts


def _require_all(found: Any, pattern: Any, types: list[Type]) -> bool:
    """ApartError for values that are not of these types; see `_require`."""
    parts = zip([found] if pattern is None else _parts(found, pattern), types, strict=True)
    return sum(_require(part, type_) for part, type_ in parts) > 0


def _require(found: Any, type_: Type) -> bool:
    """ApartError for a value that is not of a type; return whether a number of it is an array, which can be changed."""
    if isinstance(type_, StructType):
        return sum(_require(*each) for each in zip(flatten(type_, found), leaves(type_), strict=True)) > 0
    if isinstance(found, (np.ndarray, np.generic)):
        if type_.weak or found.dtype.name != type_.dtype or found.shape != type_.shape:
            raise ApartError
        return isinstance(found, np.ndarray) and not found.shape
    kind = _kind(found)
    wanted = "f" if "float" in type_.dtype else "b" if type_.dtype == "bool" else "i"
    if type_.shape or kind not in {"f": "fi", "b": "b", "i": "i"}[wanted]:
        raise ApartError
    return False


def _require_cast(found: Any, types: list[str]) -> None:
    """ApartError for a cast of what has a dtype into another one."""
    if isinstance(found, (np.ndarray, np.generic)):
        if types != [f"{found.dtype.name}[{', '.join(map(str, found.shape))}]"]:
            raise ApartError
    elif not isinstance(found, (bool, int, float)):
        raise ApartError
