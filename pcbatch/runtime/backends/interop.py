"""Memory that other libraries hand over: arrays by the protocols that these share, and XLA's call frames.

Arrays are those of JAX, PyTorch and others, none of which is imported here.
`__dlpack__` tells them (https://data-apis.org/array-api, "Data interchange"), and `__array__` gives their elements to
NumPy, without a copy where these lie in the memory of the host.

The call frame of XLA's foreign function interface, version 0, is what a handler is called by.
Offsets in bytes into the structures of `xla/ffi/api/c_api.h`; pointers and lengths are words of 64 bits. A handler gets
the address of a frame, and returns that of an error, or 0.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np

# -- arrays ------------------------------------------------------------------------------------------------------------


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


# -- call frames -------------------------------------------------------------------------------------------------------


MAJOR = 0
"""The version that these offsets are of."""
EXTENSION, API, STAGE, ARGUMENTS, RESULTS = 8, 16, 32, 72, 112
"""Offsets in a frame: pointers to the first extension and to the table of functions; the stage, int32; lists of
pointers to buffers."""
EXECUTE = 3
"""The stage at which there are buffers."""
DATA, SIZES = 24, 40
"""Offsets in a buffer: pointers to its elements, and to its lengths, int64."""
KIND, METADATA = 8, 24
"""Offsets in an extension: its kind, int32; in one that asks for `ABOUT`, the place of the answer."""
ABOUT = 1
"""The kind of extension by which XLA asks a handler about itself, instead of calling it."""
ABOUT_MAJOR, ABOUT_MINOR, ABOUT_TRAITS = 24, 28, 32
"""Offsets in the answer: int32."""
API_MAJOR, API_MINOR, API_ERROR, API_REGISTER = 32, 36, 48, 72
"""Offsets in the table of functions: its version, int32, and pointers to the functions that make an error and that
register a handler."""
ERROR_BYTES, ERROR_MESSAGE, ERROR_KIND, INTERNAL = 32, 16, 24, 13
"""Layout of the struct that creates an error: its size in the first word, then the message and the kind, int32."""
