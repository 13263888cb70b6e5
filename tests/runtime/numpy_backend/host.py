"""A user's values; see `backends.host`. Only what the machines need of them: users have no way here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from pcbatch.ir import values
from pcbatch.ir.types import TensorType, Type
from tests.runtime.numpy_backend import structures

_SPELLINGS = {
    "array": "np.asarray",
    "cast": "np.astype",
    "fill": "np.full",
    "spec": "np.empty",
    "vectorized_map": "np.vectorize",
}
"""The spellings that differ from NumPy's names. It traces no functions, so messages name none."""


class NumPyHost:
    """See `host.Host`."""

    name = "numpy"

    def spelling(self, operation: str) -> str:
        return _SPELLINGS.get(operation, f"np.{operation}")

    # -- what a value is -----------------------------------------------------------------------------------------------

    def is_array(self, value: Any) -> bool:
        return isinstance(value, np.ndarray | np.generic)

    def is_variable(self, value: Any) -> bool:
        return False

    def held_by(self, value: Any) -> Any:
        return value

    def takes_gradients(self, value: Any) -> bool:
        return False

    def type_of(self, value: Any, *, batch: bool = False) -> Type:
        if batch:
            _refuse()
        return structures.type_of(value)

    def structure_of(self, value: Any) -> Type:
        _refuse()

    # -- changing its form ---------------------------------------------------------------------------------------------

    def as_arrays(self, value: Any, example: bool = False) -> Any:
        _refuse()

    def padded(self, value: Any, axes: Any) -> Any:
        _refuse()

    def spec_of(self, value: Any) -> Hashable | None:
        return None

    def specs_of(self, values: Sequence[Any]) -> tuple[Hashable, ...] | None:
        return None

    def spread(self, array: Any, type_: TensorType, lanes: Any) -> Any:
        _refuse()

    def as_type(self, value: Any, type_: Type) -> Any:
        return values.pack(type_, structures.leaves(value, type_))

    def wrap(self, value: Any, type_: Type) -> Any:
        return structures.wrap(value, type_)

    def mapped(self, function: Callable[[Any], Any], value: Any) -> Any:
        return value

    def as_argument(self, value: Any) -> Any:
        _refuse()

    def as_python(self, error: Exception) -> Exception:
        return error


def _refuse() -> NoReturn:
    raise NotImplementedError("NumPy runs tables of blocks; users' arguments are for a library that they can choose")
