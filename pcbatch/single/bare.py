"""Surroundings in which one example runs on NumPy's own numbers and arrays, with nothing in their place.

That is as fast as the undecorated function. It is right where NumPy's operators give what a lane has, which
`agreement` tells from the typed program. What NumPy tells only as it happens ends such a run: a division by zero, an
int that a dtype does not hold, a function that has no form for bare numbers. The example then runs on proxies. Places
where NumPy's operators differ are computed on proxies (`repairs`).
"""

from __future__ import annotations

import builtins
import dis
import functools
import math
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import Span
from pcbatch.ir import values
from pcbatch.runtime.backends.tensorflow import bounded as lanes
from pcbatch.runtime.backends.tensorflow import mapping as maps
from pcbatch.single.boundaries import codes
from pcbatch.single.calls import gives_pythons, of_library, power
from pcbatch.single.meeting import rounded, within
from pcbatch.single.repairs import HELPERS, UnfitError, rewritten
from pcbatch.single.surroundings import Surroundings, super_
from pcbatch.single.values import constant

_ASKING = frozenset({"isinstance", "issubclass", "type", "hasattr", "getattr", "vars", "callable", "match"})
"""Names by which code asks what a value is: NumPy's numbers are Python's floats, ours are not."""


def bare(found: Any) -> Any:
    """A result of TensorFlow's as NumPy has it, in structures too."""
    if isinstance(found, tf.Tensor):
        if found.dtype in (tf.string, tf.variant, tf.resource):
            raise UnfitError(found.dtype.name)
        return _plain(found.numpy())
    if isinstance(found, (tuple, list)):
        parts = [bare(each) for each in found]
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    if type(found) is dict:
        return {key: bare(each) for key, each in found.items()}
    if found is None or isinstance(found, (bool, int, float, complex, str, np.ndarray, np.generic, tf.DType)):
        return found
    if isinstance(found, tf.TensorShape):
        return found
    raise UnfitError(type(found).__name__)


def _plain(value: Any) -> Any:
    return bool(value) if isinstance(value, np.bool_) else value


def int_(*given: Any) -> int:
    """`int` of a number, as a lane has it."""
    return within(int(given[0])) if len(given) == 1 and isinstance(given[0], np.generic) else int(*given)


def round_(number: Any, digits: Any = None) -> Any:
    """`round`, as a lane has it."""
    if not isinstance(number, np.generic):
        return round(number, digits)
    if digits is not None:
        return rounded(number, digits)
    return number if number.dtype.kind in "iu" else within(round(float(number)))


def _of_math(function: Callable[[Any], int]) -> Callable[[Any], int]:
    @functools.wraps(function)
    def call(number: Any) -> int:
        found = function(number)
        return within(found) if isinstance(number, np.generic) else found

    return call


def sorted_(xs: Any, *, key: Any = None, reverse: Any = False) -> list[Any]:
    """`sorted` of what has an order; where NaN goes is for proxies to say."""
    items = [*xs]
    if key is None and any(item != item for item in items if isinstance(item, np.generic)):
        raise UnfitError("NaN")
    return builtins.sorted(items, key=key, reverse=reverse)


_MATH = {function: _of_math(function) for function in (math.floor, math.ceil, math.trunc)}
_BUILTINS: Mapping[str, Any] = {
    **vars(builtins),
    **HELPERS,
    "pow": power,
    "super": super_,
    "int": int_,
    "round": round_,
    "sorted": sorted_,
}


class Bare(Surroundings):
    """Those of one function whose types agree, once `places` are repaired."""

    builtins = _BUILTINS
    places: frozenset[Span] = frozenset()
    repaired: frozenset[Span] = frozenset()

    @classmethod
    def repairing(cls, places: frozenset[Span]) -> type[Bare]:
        """Those in which places are repaired."""
        return type(cls.__name__, (cls,), {"places": places}) if places else cls

    def code(self, function: FunctionType) -> CodeType:
        """The code of a function, with its places repaired."""
        code, found = rewritten(function, self.places) if self.places else (function.__code__, self.places)
        self.repaired |= found
        return code

    def keep(self) -> None:
        """Hand on what the code has assigned to its globals, if all places were found in it."""
        if self.repaired != self.places:
            raise UnfitError(str(min(self.places - self.repaired)))
        super().keep()

    def special(self, empty: Callable[..., Any]) -> dict[Any, Any]:
        """Return replacements of functions without a form for bare numbers, which raise when they are reached."""
        unfit = (lanes.bounded, maps.map, tf.GradientTape, tf.autodiff.ForwardAccumulator, tf.case)
        return {**dict.fromkeys(unfit, _unfit), **_MATH}

    def shadow(self, value: Any) -> Any:
        """An object of the user's; members of an IntEnum are no ints of Python's to NumPy."""
        if isinstance(value, (int, float)) and type(value) not in (bool, int, float):
            raise UnfitError(type(value).__name__)
        return super().shadow(value)

    def argument(self, value: Any) -> Any:
        """An array or a number among the arguments."""
        return bare(value) if isinstance(value, tf.Tensor) else bare(tf.convert_to_tensor(value))

    def substitute(self, value: Any) -> Any:
        """Return the user's code's replacement for a value that a name leads to."""
        match value:
            case np.ndarray() | np.generic():
                return value
            case tf.Tensor() | tf.Variable():
                return self.argument(value)
            case BuiltinFunctionType() if value not in _MATH and (value.__module__ or "").partition(".")[0] != "numpy":
                return value
            case type() if value is float or issubclass(value, np.generic):
                return value
            case type() if issubclass(value, (int, float)) and value.__module__ != "builtins":
                raise UnfitError(value.__name__)
        inner: Any = getattr(value, "value", None)
        if isinstance(inner, tf.Variable):  # Keras's own
            return self.argument(inner)
        return super().substitute(value)

    def library(self, function: Any) -> Callable[..., Any]:
        """TensorFlow's functions, and those of pcbatch's own, give what NumPy has."""
        return _library(function)

    def copy(self, function: FunctionType) -> FunctionType:
        """A function of the same code in these surroundings, if it does not look at what values are."""
        if asks(function.__code__):
            raise UnfitError(function.__name__)
        return super().copy(function)


class Frozen(Bare):
    """Those of one in which no change of an array can be seen by another: calls copy nothing."""

    def _now_changes(self) -> None:
        pass


def _unfit(*given: Any, **options: Any) -> Any:
    raise UnfitError


def _arrays(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return constant(value)
    if isinstance(value, (tuple, list)):
        parts = [_arrays(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {key: _arrays(each) for key, each in value.items()}
    if isinstance(value, FunctionType):
        raise UnfitError(value.__name__)
    return value


@functools.lru_cache(maxsize=4096)
def _library(function: Any) -> Callable[..., Any]:
    if isinstance(function, np.ufunc) or (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy":
        return _of_numpy(function)
    return of_library(function, _arrays, bare)


def _of_numpy(function: Any) -> Callable[..., Any]:
    """A function of NumPy's, which gives a number of Python's for such."""

    def call(*given: Any, **options: Any) -> Any:
        found = function(*given, **options)
        return found.item() if gives_pythons(found, given) else found

    call.of_numpy = function  # type: ignore[attr-defined]
    return call


@functools.cache
def asks(code: CodeType) -> bool:
    """Tell whether code asks what a value is: by name, or by comparing it with True or False by identity."""
    for each in codes(code):
        if not _ASKING.isdisjoint(each.co_names):
            return True
        before = None
        for instruction in dis.get_instructions(each):
            if instruction.opname == "IS_OP" and before is not None and isinstance(before.argval, bool):
                return True
            before = instruction
    return False


def kind_of(value: Any) -> Any:
    """A key of the types in a value, and of whatever is no array."""
    if isinstance(value, tf.Tensor):
        return value.dtype.as_datatype_enum, tuple(value.shape)
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(kind_of, value))
    if isinstance(value, dict):
        return tuple((key, kind_of(each)) for key, each in value.items())
    fields = values.fields_of(value)
    if fields is not None:
        return type(value), kind_of(fields)
    hash(value)
    return type(value), value
