"""Arrays of other libraries, such as JAX's and PyTorch's, by the protocols that arrays share; none is imported.

`__dlpack__` tells them (https://data-apis.org/array-api, "Data interchange"), and `__array__` gives their elements to
NumPy, without a copy where these lie in the memory of the host.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np


def is_foreign(value: Any) -> TypeGuard[Any]:
    """Return whether `value`, no array of the library in use, is an array of another library than NumPy."""
    kind = type(value)
    return hasattr(kind, "__dlpack__") and hasattr(value, "shape") and not isinstance(value, (np.ndarray, np.generic))


def is_tracer(value: Any) -> bool:
    """Return whether `value` stands for an array of JAX that is not there yet: inside of `jax.jit`, `jax.grad`, .."""
    return any(each.__name__ == "Tracer" and each.__module__.split(".")[0] == "jax" for each in type(value).__mro__)


def as_numpy(value: Any) -> np.ndarray:
    """A foreign array as NumPy sees it; raises whatever its library says where that cannot be."""
    return np.asarray(value)


def with_numpy(value: Any) -> Any:
    """Nested lists with foreign arrays as NumPy has them."""
    if isinstance(value, (list, tuple)):
        return [with_numpy(item) for item in value]
    return as_numpy(value) if is_foreign(value) else value


_HOMES = {"jax": "jax", "jaxlib": "jax", "torch": "torch"}
"""The libraries that get results as their own arrays, by the modules of their arrays' classes."""
NO_ARRAY = ""
"""The home of numbers, which are of no library."""
_homes: dict[type, str | None] = dict.fromkeys((bool, int, float, complex, str, bytes, type(None)), NO_ARRAY)
"""The library of arrays by class; None for arrays of others and for what is none."""


def home_of(args: Iterable[Any]) -> str | None:
    """The library that all arrays among arguments are of: "jax" or "torch"; None where it is neither, or there are two.

    Numbers count for none; `NO_ARRAY` where there is nothing else.
    """
    found = NO_ARRAY
    for value in args:
        kind = type(value)
        home = _homes[kind] if kind in _homes else _home(value)
        if home is None or NO_ARRAY != home != found != NO_ARRAY:
            return None
        found = home or found
    return found


def _home(value: Any) -> str | None:
    kind = type(value)
    if isinstance(value, (list, tuple, dict)):
        return home_of(value.values() if isinstance(value, dict) else value)
    _homes[kind] = _HOMES.get(kind.__module__.split(".")[0]) if is_foreign(value) else None
    return _homes[kind]


def sent_home(array: Any, home: str) -> Any:
    """An array that others share by DLPack as one of the library `home`, in memory of its own where that may write.

    What DLPack does not know, such as bools of some libraries, goes through NumPy.
    """
    library = sys.modules[home]
    try:
        if home == "torch":
            return library.from_dlpack(array).clone()
        return library.numpy.from_dlpack(array)
    except (TypeError, ValueError, RuntimeError, BufferError):
        plain = np.array(array)
        return library.from_numpy(plain) if home == "torch" else library.numpy.asarray(plain)
