"""Functions of `ops` in place of those that do not handle lanes' tensors: of `math`, NumPy, Python, TensorFlow.

They are found by value, never by spelling: `import numpy as n`, `from math import sqrt as root` and a user's own
function called `sqrt` all mean what they mean in Python.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow import math_equivalents, numpy_equivalents, tensorflow_equivalents
from pcbatch.runtime.backends.tensorflow.weak import is_lane_value

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
        ("tensorflow", tf, tensorflow_equivalents.NAMES),
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


def _varies(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_varies(item) for item in value)
    return is_lane_value(value)
