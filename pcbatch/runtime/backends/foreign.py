"""Arrays of other libraries, such as JAX's and PyTorch's, by the protocols that arrays share; none is imported.

`__dlpack__` tells them (https://data-apis.org/array-api, "Data interchange"), and `__array__` gives their elements to
NumPy, without a copy where these lie in the memory of the host.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np


def is_foreign(value: Any) -> TypeGuard[Any]:
    """Whether `value`, which is no array of the library that is in use, is one of another library than NumPy."""
    kind = type(value)
    return hasattr(kind, "__dlpack__") and hasattr(value, "shape") and not isinstance(value, (np.ndarray, np.generic))


def as_numpy(value: Any) -> np.ndarray:
    """A foreign array as NumPy sees it; raises whatever its library says where that cannot be."""
    return np.asarray(value)


def with_numpy(value: Any) -> Any:
    """Nested lists with foreign arrays as NumPy has them."""
    if isinstance(value, (list, tuple)):
        return [with_numpy(item) for item in value]
    return as_numpy(value) if is_foreign(value) else value
