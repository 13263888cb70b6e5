"""Functions of `ops` in place of those that do not handle lanes' tensors: of `math`, NumPy, Python, TensorFlow.

They are found by value, never by spelling: `import numpy as n`, `from math import sqrt as root` and a user's own
function called `sqrt` all mean what they mean in Python.

TensorFlow's are those that ask Python or NumPy about an argument, which is a tensor in a batch; and those that take
less in a graph than in eager code: some take no bool there, and none the tensor of a constant.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow import math_equivalents, numpy_equivalents
from pcbatch.runtime.backends.tensorflow.arithmetic import loses
from pcbatch.runtime.backends.tensorflow.weak import Weak, WeakTypeError, commit, is_lane_value

# -- TensorFlow's functions --------------------------------------------------------------------------------------------


def _varies(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_varies(item) for item in value)
    return is_lane_value(value)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> tf.Tensor:
    """`tf.constant`; of a tensor, or a list of tensors, its value: of another dtype where it is the same number there.

    A scalar fills the `shape`, as there.
    """
    if not _varies(value):
        return tf.constant(value, dtype, shape, name)
    wanted = None if dtype is None else tf.as_dtype(dtype)
    found = tf.convert_to_tensor(value, wanted) if isinstance(value, Weak) else tf.convert_to_tensor(value)
    if wanted is not None and wanted != found.dtype:
        if loses(found.dtype, wanted):
            raise WeakTypeError(
                f"tf.constant of {found.dtype.name} is none of {wanted.name}, and nothing is cast by itself; "
                f"write tf.cast(.., tf.{wanted.name})"
            )
        found = tf.cast(found, wanted)
    if shape is None:
        return tf.identity(found)
    return tf.broadcast_to(found, shape) if found.shape.rank == 0 else tf.reshape(found, shape)


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None) -> Any:
    """`tf.cond`; of a Python bool one of the functions, as in eager code: in a graph it is refused."""
    if isinstance(pred, (bool, np.bool_)):
        return true_fn() if pred else false_fn()
    return tf.cond(pred, true_fn, false_fn, name)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> tf.Tensor:
    """`tf.pad`, which asks NumPy whether a number is 0."""
    if isinstance(constant_values, Weak):
        tensor = tf.convert_to_tensor(tensor)
        constant_values = commit(constant_values, tensor.dtype)
    return tf.pad(tensor, paddings, mode, constant_values, name)


Sampler = Callable[[Any, tf.DType], tf.Tensor]
"""A function of shape and dtype that draws uniform numbers."""

_sampler: ContextVar[Sampler | None] = ContextVar("sampler", default=None)


@contextlib.contextmanager
def drawing(sampler: Sampler) -> Iterator[None]:
    """Let `dropout` draw by this function inside."""
    token = _sampler.set(sampler)
    try:
        yield
    finally:
        _sampler.reset(token)


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> tf.Tensor:
    """`tf.nn.dropout`, which draws from hidden state; `drawing` says from where else, whatever the `seed`."""
    sampler = _sampler.get()
    if sampler is None:
        return tf.nn.dropout(x, rate, noise_shape, seed, name)
    x = tf.convert_to_tensor(x)
    rate = commit(rate, x.dtype) if isinstance(rate, Weak) else rate
    return tf.nn.experimental.general_dropout(x, rate, sampler, noise_shape, name)


TENSORFLOWS: dict[str, Callable[..., Any]] = {"cond": cond, "constant": constant, "nn.dropout": dropout, "pad": pad}
TENSORFLOW_NAMES = {path: function.__name__ for path, function in TENSORFLOWS.items()}
"""Path in `tensorflow` to attribute of this module."""


# -- all ---------------------------------------------------------------------------------------------------------------


REPLACEMENTS: dict[str, str] = {
    "math.fsum": "write sum(xs) or tf.reduce_sum(xs)",
    "math.gamma": "write math.exp(math.lgamma(x))",
    "numpy.floor_divide": "write a // b, which fails the lane where b is zero",
    "numpy.remainder": "write a % b, which fails the lane where b is zero",
    "numpy.mod": "write a % b, which fails the lane where b is zero",
    "numpy.divmod": "write divmod(a, b)",
    "numpy.nonzero": "keep the whole array and choose within it: tf.where(mask, a, 0.)",
    "numpy.unique": "its length differs from lane to lane: sort with np.sort and compare neighbours",
    "builtins.enumerate": "loop over positions: `for i in range(len(xs))` with xs[i]",
    "builtins.filter": "keep the whole array and choose within it: tf.where(mask, a, 0.)",
    "builtins.list": "write tf.unstack(xs)",
    "builtins.map": "write the operation on the whole array",
    "builtins.reversed": "write xs[::-1]",
    "builtins.tuple": "write tf.unstack(xs)",
    "builtins.zip": "loop over positions: `for i in range(len(xs))` with xs[i] and ys[i]",
    **dict.fromkeys(
        ("builtins.bin", "builtins.hex", "builtins.oct", "builtins.chr"), "keep the number; no lane holds text"
    ),
    "builtins.complex": "write tf.complex(real, imaginary)",
}
"""Replacements of functions without an equivalent; those of Python itself are all listed here."""

TAKE_STRUCTURES = frozenset(
    f"builtins.{name}" for name in ("enumerate", "filter", "list", "map", "reversed", "tuple", "zip")
)
"""Functions that a tuple or list of lane values is no obstacle to: only an array has no items while it is traced."""

_HELP = "write it with TensorFlow's operations, or compute it outside and pass the result as an argument"


@functools.cache
def _table() -> dict[int, str]:
    """The path in `ops` of each equivalent, by the identity of the function that it stands for."""
    libraries = (
        ("math", math, math_equivalents.NAMES),
        ("numpy", np, numpy_equivalents.NAMES),
        ("tensorflow", tf, TENSORFLOW_NAMES),
    )
    return {
        id(function): f"{path}.{name}" for path, library, names in libraries for name, function in named(library, names)
    }


def named(module: Any, names: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Each equivalent's name with the functions of `module` that it stands for: not every version has all of them."""
    for path, name in names.items():
        value = module
        for step in path.split("."):
            value = getattr(value, step, None)
        if value is not None:
            yield name, value


def equivalent(function: Any) -> str | None:
    """Return the path in `ops` for `function`; "without_equivalent" if it takes no tensors and has none.

    None for every other function.
    """
    try:
        known = _table().get(id(function))
    except TypeError:
        return None
    if known is not None:
        return known
    return "without_equivalent" if _path(function) in REPLACEMENTS or _is_foreign(function) else None


def _is_foreign(function: Any) -> bool:
    """Return whether `function` is one of `math` or NumPy, which compute with Python's or NumPy's numbers only."""
    if isinstance(function, np.ufunc):
        return True
    if not callable(function) or isinstance(function, (tf.Module, functools.partial)):
        return False
    module = getattr(function, "__module__", None) or ""
    return module.partition(".")[0] == "numpy" or (module == "math" and isinstance(function, BuiltinFunctionType))


def _path(function: Any) -> str:
    if isinstance(function, np.ufunc):
        return f"numpy.{function.__name__}"
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}"


def without_equivalent(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` for static values; values of a lane are refused by the function's name."""
    path = _path(function)
    varies = is_lane_value if path in TAKE_STRUCTURES else _varies

    def call(*arguments: Any, **options: Any) -> Any:
        if any(varies(argument) for argument in (*arguments, *options.values())):
            name = path.removeprefix("builtins.")
            raise PieceRefusalError(
                "PCB408", f"`{name}` does not work on values of a lane", REPLACEMENTS.get(path, _HELP)
            )
        return function(*arguments, **options)

    return call
