"""Calls of libraries with values: NumPy computes with arrays, TensorFlow with tensors, `math` with numbers.

Where a tape looks on, functions of NumPy and of `math` are those that a batch has in their place, so that they have
gradients, too; what is a view in NumPy stays one.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import equivalents, numpy_equivalents, opaque, traced_float
from pcbatch.runtime.backends.tensorflow.equivalents import named
from pcbatch.runtime.backends.tensorflow.traced_float import TracedFloat
from pcbatch.single.meeting import OPERATORS, is_pythons, together
from pcbatch.single.operating import AsPython, operate
from pcbatch.single.values import TENSORS, Array, Number, Value, Variable, Watched, known, operand, seen, tensor

_EQUIVALENTS = {
    id(function): numpy_equivalents.EQUIVALENTS[name] for name, function in named(np, numpy_equivalents.NAMES)
}
"""NumPy's functions that a batch has, too."""
_OF_TENSORFLOW = {
    id(function): getattr(equivalents, name) for name, function in named(tf, equivalents.TENSORFLOW_NAMES)
}
"""TensorFlow's functions that are others in a batch, which take tensors where those want known numbers."""
_UFUNCS = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.true_divide: "truediv",
    np.floor_divide: "floordiv",
    np.remainder: "mod",
    np.power: "pow",
    np.matmul: "matmul",
    np.left_shift: "lshift",
    np.right_shift: "rshift",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
    np.bitwise_xor: "xor",
    np.less: "lt",
    np.less_equal: "le",
    np.greater: "gt",
    np.greater_equal: "ge",
    np.equal: "eq",
    np.not_equal: "ne",
}
_VIEWS = frozenset(
    {"asarray", "atleast_1d", "broadcast_to", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "moveaxis"}
    | {"ravel", "reshape", "squeeze", "swapaxes", "transpose", "T"}
)
"""Functions and methods that return a view in NumPy, of a watched array as of any other."""
_KEEP_DTYPE = frozenset({"sum", "prod", "cumsum", "cumprod", "trace"})
"""Reductions of int32 that NumPy widens and lanes do not."""
DTYPES: dict[Any, Any] = {int: np.int32, float: np.float32}
"""Dtypes of a lane for Python's types."""


def plain(value: Any, take: Callable[[Any], Any]) -> Any:
    """A structure of arguments with what `take` makes of each value of ours."""
    if isinstance(value, Value):
        return take(value)
    if isinstance(value, (tuple, list)):
        parts = [plain(each, take) for each in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: plain(each, take) for key, each in value.items()}
    if isinstance(value, slice):
        return slice(*(plain(each, take) for each in (value.start, value.stop, value.step)))
    return getattr(value, "original", value) if isinstance(value, type) else value


def shown(value: Any) -> Any:
    """A structure of results as the user's function sees it."""
    if isinstance(value, (tuple, list)):
        parts = [shown(each) for each in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {key: shown(each) for key, each in value.items()}
    return seen(value)


def is_watched(value: Any) -> bool:
    """Return whether a structure of arguments has a tensor that is seen."""
    if isinstance(value, (tuple, list)):
        return any(map(is_watched, value))
    return isinstance(value, (*TENSORS, TracedFloat))


def _arrays(value: Any) -> list[Array]:
    if isinstance(value, (tuple, list)):
        return [found for each in value for found in _arrays(each)]
    return [value] if isinstance(value, Array) else []


def sharing(found: Any, *given: Any) -> Any:
    """A result of NumPy's as the function sees it: a view of an argument is one."""
    if isinstance(found, np.ndarray) and found.dtype.kind not in "OUSMm":
        for array in _arrays(given):
            owner = array if array.owner is None else array.owner
            if found is array.value:
                return array
            if found.base is not None and (found.base is owner.value or found.base is owner.value.base):
                return Array(found, owner)
        return Array(found)
    return shown(found)


def _memory(value: Any) -> Any:
    return value.value if isinstance(value, Array) else known(value)


def _dtype(value: Any) -> Any:
    """A dtype as NumPy has it."""
    if isinstance(value, tf.DType):
        return value.as_numpy_dtype
    original = getattr(value, "original", value) if isinstance(value, type) else value
    return DTYPES.get(original, original) if isinstance(original, type) else original


# -- NumPy -------------------------------------------------------------------------------------------------------------


def _of_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    name = getattr(function, "__name__", "")
    operator = OPERATORS.get(_UFUNCS.get(function, "")) if isinstance(function, np.ufunc) else None
    equivalent = _EQUIVALENTS.get(id(function))

    @functools.wraps(function, updated=())
    def call(*given: Any, **options: Any) -> Any:
        if operator is not None and len(given) == 2 and not options:
            found = operate(operator, *given)
            if found is not NotImplemented:
                return found
        if "dtype" in options:
            options["dtype"] = _dtype(options["dtype"])
        if name in _VIEWS:
            return sharing(function(*plain(given, _memory), **plain(options, _memory)), *given)
        raw, raw_options = plain(given, operand), plain(options, operand)
        if is_watched([*raw, *raw_options.values()]):
            if function is np.take:
                return _taken(*raw, **raw_options)
            return _watched(function, equivalent, raw, raw_options)
        if isinstance(function, np.ufunc) and function.nin == len(raw) == 2:
            raw = together(*raw)
        if function is np.argsort:
            raw_options["kind"] = "stable"
        found = function(*(_dtype(each) for each in raw), **raw_options)
        if name in _KEEP_DTYPE and "dtype" not in options and getattr(raw[0], "dtype", None) == np.int32:
            found = found.astype(np.int32)
        if gives_pythons(found, raw):
            return found.item()
        made = sharing(found, *given, *options.values())
        if isinstance(made, Array) and not _has_values([*given, *options.values()]):
            made.is_constant = True
        return made

    if isinstance(function, np.ufunc):
        for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
            setattr(call, method, _of_ufunc(function, method))
    return call


def _of_ufunc(function: np.ufunc, method: str) -> Callable[..., Any]:
    """A method of a ufunc: the function that does the same, if there is one, which goes along the first axis here."""
    same = _ALONG_AN_AXIS.get((function, method))
    if same is None:
        return _of_numpy(getattr(function, method))
    return lambda array, axis=0, **options: library(same)(array, axis=axis, **options)


_ALONG_AN_AXIS: dict[tuple[np.ufunc, str], Callable[..., Any]] = {
    (np.add, "reduce"): np.sum,
    (np.multiply, "reduce"): np.prod,
    (np.maximum, "reduce"): np.max,
    (np.minimum, "reduce"): np.min,
    (np.logical_and, "reduce"): np.all,
    (np.logical_or, "reduce"): np.any,
    (np.add, "accumulate"): np.cumsum,
    (np.multiply, "accumulate"): np.cumprod,
}


def _has_values(value: Any) -> bool:
    """Return whether a number or an array of ours, that is no constant, is among arguments."""
    if isinstance(value, (tuple, list)):
        return any(map(_has_values, value))
    return isinstance(value, Number) or (isinstance(value, Array) and not value.is_constant)


def gives_pythons(found: Any, given: Sequence[Any]) -> bool:
    """Return whether a number of NumPy's is Python's: a float of 64 bits, of Python's numbers alone."""
    return type(found) is np.float64 and all(map(is_pythons, given))


def _taken(array: Any, indices: Any, axis: Any = None, **options: Any) -> Any:
    """`np.take` of an array that is watched."""
    found = tf.convert_to_tensor(array)
    where = np.take(np.arange(found.shape.num_elements()).reshape(found.shape), plain_numbers(indices), axis, **options)
    return shown(tf.gather(tf.reshape(found, [-1]), where))


def _watched(function: Callable[..., Any], equivalent: Any, given: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    if equivalent is None:
        return shown(function(*plain_numbers(given), **plain_numbers(options)))
    return shown(traced_float.marked(equivalent(*given, **options), *traced_float.leaves([*given, *options.values()])))


def plain_numbers(value: Any) -> Any:
    """A structure of raw values with their numbers."""
    if isinstance(value, (tuple, list)):
        return type(value)(plain_numbers(each) for each in value)
    if isinstance(value, Mapping):
        return {key: plain_numbers(each) for key, each in value.items()}
    if isinstance(value, TracedFloat):
        return value.number
    return value.numpy() if isinstance(value, TENSORS) else value


# -- `math` and Python -------------------------------------------------------------------------------------------------


def _of_math(function: Callable[..., Any]) -> Callable[..., Any]:
    seen_by_tapes = traced_float.FUNCTIONS.get(function)

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        if seen_by_tapes is not None and any(map(_is_followed, traced_float.leaves(given))):
            return seen_by_tapes(*plain(given, operand))
        return function(*given, **options)

    return call


def _is_followed(value: Any) -> bool:
    """Tell whether a tape may follow a value of an argument."""
    return isinstance(value, (Watched, TracedFloat)) or (isinstance(value, Array) and value.watched() is not None)


@functools.cache
def number_type(kind: Any) -> Any:
    """One of NumPy's types of numbers, as a function of values."""

    def made(cls: Any, *given: Any) -> Any:
        raw = plain(given, operand)
        if is_watched(raw):
            return shown(_EQUIVALENTS[id(kind)](*raw))
        return shown(kind(*raw))

    return AsPython(kind.__name__, (kind,), {"original": kind, "__new__": made, "dtype": np.dtype(kind)})


def sorted_numbers(xs: Any, *, key: Any = None, reverse: Any = False) -> list[Any]:
    """`sorted`; of numbers NaN is last. Python has it where it happens to come."""
    items = [*xs]
    if key is not None or not any(isinstance(item, Number) for item in items):
        return builtins.sorted(items, key=key, reverse=reverse)
    lost = [item for item in items if item != item]
    found = builtins.sorted((item for item in items if item == item), reverse=reverse)
    return [*lost, *found] if reverse else [*found, *lost]


def power(base: Any, exp: Any, mod: Any = None) -> Any:
    """`pow`; a modulus asks for Python's own ints."""
    if mod is None:
        return builtins.pow(base, exp)
    if abs(operator.index(mod)) > 2**31:
        raise OverflowError("a modulus of more than 32 bits")
    return builtins.pow(operator.index(base), operator.index(exp), operator.index(mod))


# -- TensorFlow and all others -----------------------------------------------------------------------------------------


def of_library(
    function: Callable[..., Any], take: Callable[[Any], Any] | None = None, show: Callable[[Any], Any] = shown
) -> Callable[..., Any]:
    """A function of TensorFlow, or of another library, that gets tensors: what `take` makes of arguments."""
    called, taken = _OF_TENSORFLOW.get(id(function), function), take or _given

    def call(*given: Any, **options: Any) -> Any:
        return show(called(*taken(given), **taken(options)))

    try:
        return functools.wraps(function, updated=())(call)
    except (AttributeError, TypeError):
        return call


def case(pred_fn_pairs: Any, *given: Any, **options: Any) -> Any:
    """`tf.case`, which takes no bools of Python's."""
    pairs = [(tf.constant(each) if isinstance(each, bool) else each, arm) for each, arm in pred_fn_pairs]
    return of_library(tf.case)(pairs, *given, **options)


def _given(value: Any) -> Any:
    return _with_callbacks(plain(value, _tensor_or_number))


def _tensor_or_number(value: Any) -> Any:
    """Return the argument for TensorFlow: a constant array as it is written, in the dtype that TensorFlow prefers."""
    if isinstance(value, Variable):
        return value.variable
    if isinstance(value, Array) and value.is_constant and value.watched() is None:
        return value.value.copy()
    return tensor(value)


def _with_callbacks(value: Any) -> Any:
    """Arguments in which the user's functions take values, whatever the library hands them."""
    if type(value) in (tuple, list):
        return type(value)(map(_with_callbacks, value))
    if type(value) is dict:
        return {key: _with_callbacks(each) for key, each in value.items()}
    return callback(value) if isinstance(value, FunctionType) else value


def callback(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's that a library calls with tensors."""

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        return plain(function(*map(shown, given), **{name: shown(each) for name, each in options.items()}), tensor)

    call.autograph_info__ = None  # type: ignore[attr-defined]
    return call


@functools.lru_cache(maxsize=4096)
def _known_library(function: Any) -> Callable[..., Any]:
    module = getattr(function, "__module__", None) or ""
    if isinstance(function, np.ufunc) or module.partition(".")[0] == "numpy":
        return _of_numpy(function)
    return _of_math(function) if module == "math" else of_library(function)


def library(function: Any) -> Callable[..., Any]:
    """A library's function as one of values."""
    try:
        return _known_library(function)
    except TypeError:  # which cannot be hashed
        return of_library(function)


# -- attributes and methods --------------------------------------------------------------------------------------------


def member(value: Any, name: str) -> Any:
    """An attribute, or a method, of a number or an array, as of NumPy's."""
    if isinstance(value, Variable):
        found = getattr(value.variable, name, None) if name not in opaque.MEMBERS_OF_LANES else None
        if found is None:
            return member(value.read(), name)
        return library(found) if callable(found) else shown(found)
    if name in ("astype", "view") and isinstance(value, Value):
        return functools.partial(_astype, value)
    if name in ("numpy", "get_shape"):
        return (lambda: known(value)) if name == "numpy" else (lambda: value.shape)
    if isinstance(value, Array) and name in _VIEWS:
        attribute = getattr(value.value, name)
        if name == "T":
            return sharing(attribute, value)
        return lambda *given, **options: sharing(attribute(*plain(given, known), **plain(options, known)), value)
    raw = operand(value)
    if isinstance(raw, tf.Tensor):
        return _of_watched(raw, name)
    attribute = getattr(raw, name)
    if not callable(attribute):
        return sharing(attribute, value)
    return functools.partial(_method, value, name, attribute)


def _method(value: Any, name: str, method: Callable[..., Any], *given: Any, **options: Any) -> Any:
    if "dtype" in options:
        options["dtype"] = _dtype(options["dtype"])
    if name in ("item", "tolist"):
        return method(*plain(given, known))
    if name == "argsort":
        options["kind"] = "stable"
    if name == "copy":
        return value.__copy__()
    found = method(*plain(given, known), **plain(options, known))
    if name in _KEEP_DTYPE and "dtype" not in options and value.dtype == tf.int32:
        found = found.astype(np.int32)
    return sharing(found, value)


def _of_watched(raw: tf.Tensor, name: str) -> Any:
    found = opaque.member(raw, name)
    if not callable(found) or isinstance(found, tf.Tensor):
        return shown(found)
    return lambda *given, **options: shown(
        traced_float.marked(found(*plain(given, operand), **plain(options, operand)), raw)
    )


def _astype(value: Any, dtype: Any, copy: bool = True) -> Any:
    raw, wanted = operand(value), np.dtype(_dtype(dtype))
    return shown(tf.cast(raw, wanted) if isinstance(raw, tf.Tensor) else raw.astype(wanted))


Value.applied = staticmethod(library)
Value.member = staticmethod(member)
