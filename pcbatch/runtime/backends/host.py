"""Host: the values of the user's Python as this array library sees them, on the way in and on the way out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from pcbatch.ir.types import TensorType, Type

OPERATIONS = ("all", "any", "array", "cast", "fill", "function", "spec", "vectorized_map", "zeros_like")
"""Keys of the operations that messages name. They are reductions of bools, making an array, changing its dtype, an
array of one number, a traced function, the dtype and shape of an array, an array of zeros."""


class Host(Protocol):
    """A user's arrays, numbers and structures of them, and the names that users know the library's operations by."""

    name: str

    def spelling(self, operation: str) -> str:
        """Return a user's spelling of one of `OPERATIONS` or of a dtype, for messages: "tf.cast"."""

    # -- what a value is -----------------------------------------------------------------------------------------------

    def is_array(self, value: Any) -> bool:
        """Return whether a captured value is an array (a tensor, a NumPy array, a variable) and so a shared operand."""

    def is_variable(self, value: Any) -> bool:
        """Return whether a captured array is mutable, so that pieces depend on its identity."""

    def held_by(self, value: Any) -> Any:
        """Return the array inside a captured object, its `value`, as in objects of Keras'."""

    def takes_gradients(self, value: Any) -> bool:
        """Return whether a captured object is a gradient tape's class, or a function whose code names one."""

    def type_of(self, value: Any, *, batch: bool = False) -> Type:
        """The type of a value of one example (a structure of arrays and Python numbers); TypeError for any other.

        Of a `batch`, a structure of `[lanes, ...]` arrays, it is that of one example; each leaf must have a batch axis.
        """

    def structure_of(self, value: Any) -> Type:
        """The structure of what `as_arrays` gave, its arrays standing for leaves of whatever shape."""

    # -- changing its form ---------------------------------------------------------------------------------------------

    def as_arrays(self, value: Any, example: bool = False) -> Any:
        """An argument (arrays, numbers, lists of numbers, structures of these) with arrays of the library as leaves.

        It is a batch, or one `example`, in which a list of scalar arrays is a structure too.
        """

    def padded(self, value: Any, axes: Any) -> Any:
        """An argument with these axes of lanes, all rows of unequal length in it padded; TypeError where that fails."""

    def spec_of(self, value: Any) -> Hashable | None:
        """The dtype and shape of an array that `as_arrays` gives as it is, and that never changes; else None."""

    def specs_of(self, values: Sequence[Any]) -> tuple[Hashable, ...] | None:
        """Return a quickly made key of the arrays' dtypes and shapes; None unless all are the library's or NumPy's."""

    def spread(self, array: Any, type_: TensorType, lanes: Any) -> Any:
        """An array or number of `type_` repeated for every lane: a `[lanes, ...]` array."""

    def as_type(self, value: Any, type_: Type) -> Any:
        """One example's `value` with arrays of exactly `type_` as leaves."""

    def wrap(self, value: Any, type_: Type) -> Any:
        """One example's `value`, arrays of exactly `type_`, with its weak numbers marked so that they act as weak."""

    def mapped(self, function: Callable[[Any], Any], value: Any) -> Any:
        """One example's `value` with `function` of each of the library's arrays in it."""

    def as_argument(self, value: Any) -> Any:
        """Return the argument by which the library's traced functions identify an object: by this very object."""

    def as_python(self, error: Exception) -> Exception:
        """Return the Python error for an error of the array library on one example: ZeroDivisionError, IndexError."""
