"""Arrays: whole batches of numbers, `[lanes, ...]`, of which the machine's state consists.

Arrays support Python's arithmetic, comparison and bit operators. Nothing changes an array: every function gives a new
one, or one of those that it was given.

The values of the user's Python become such arrays on the way in, and are seen as Python's on the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from pcbatch.ir.types import TensorType, Type

Array = Any
State = dict[str, Array]
"""The arrays of a machine's state, by key; see `runtime.machine.state`."""


class Arrays(Protocol):
    """The array operations of the machine itself, per block and per lane, as opposed to those of users' pieces."""

    # -- making arrays -------------------------------------------------------------------------------------------------

    def zeros(self, lanes: Array | int | None, type_: TensorType, entries: Array | int | None = None) -> Array:
        """Zeros of shape `[lanes, *type_.shape]`, or, given `entries`, of `[lanes, entries, *type_.shape]`.

        Without `lanes` (None) they are those of one lane alone.
        """

    def made_apart(self, zeros: Sequence[Array], count: Array) -> list[Array]:
        """The same `zeros`, of which a compiler does not know that they are equal, so that it makes each by itself.

        `count` is an int32 scalar, at least 0, which is not known before a program runs.
        """

    def constant(self, value: int | bool) -> Array:
        """An int32 scalar, or a bool one."""

    def array(self, value: Any, dtype: str) -> Array:
        """`value` (an array, a NumPy array, a number) as an array of `dtype`; a variable is read."""

    def adopted(self, array: np.ndarray) -> Array:
        """The array whose elements lie in `array`, from an address that 64 divides, where nobody writes any more."""

    def numpy_of(self, array: Array) -> np.ndarray:
        """The elements of an array outside of graphs, in memory that is nobody else's."""

    def lane_numbers(self, lanes: Array | int) -> Array:
        """int32 `[0, 1, .., lanes - 1]`."""

    def lanes_of(self, array: Array, axis: int = 0) -> Array | int:
        """The length of the first axis, or of another one, an int where it is known."""

    def lengthen(self, stack: Array, entries: Array | int) -> Array:
        """`stack` with zeros after its end, so that its second axis has length `entries`."""

    def extended(self, array: Array, length: int) -> Array:
        """`array` with its last element again and again, so that its first axis has this length."""

    # -- element by element --------------------------------------------------------------------------------------------

    def cast(self, array: Array, dtype: str) -> Array:
        """`array` with its elements converted to `dtype`."""

    # What the machine asks for each block has a name beside its operator: so it is several times as fast to trace.

    def equal(self, array: Array, number: int) -> Array:
        """`array == number`."""

    def add(self, a: Array, b: Array) -> Array:
        """`a + b`, of one dtype."""

    def both(self, a: Array, b: Array) -> Array:
        """`a & b`, of bools."""

    def where(self, mask: Array, new: Array, old: Array) -> Array:
        """`new` where the `[lanes]` bool `mask` holds, else `old`; the mask is broadcast over trailing axes.

        `new` and `old` are `[lanes, ...]` arrays or scalars. A scalar mask chooses one of them as a whole. Given lists,
        it is a list: the same for each, maybe one after the other.
        """

    def once_there(self, mask: Array, arrays: Sequence[Array]) -> Array:
        """`mask`, bool `[rows]`, not before all of `arrays`, `[rows, ..]`, are there.

        Then what they were read from may be written in place.
        """

    # -- rows and elements ---------------------------------------------------------------------------------------------

    def listed(self, mask: Array) -> tuple[Array, Array]:
        """The lanes at which `mask` (bool `[lanes]`) holds, in order, and how many they are.

        int32 `[lanes]` and an int32 scalar. Behind these lanes there are any.
        """

    def load(self, array: Array, indices: Sequence[Array], lanes: Array | None = None) -> Array:
        """`array[lane, i, j, ..]` for every row: `[rows, rest..]`. Indices are int32 `[rows]`, of junk rows any.

        Indices of shape `[rows, n]` give any combination, as `masked_store` writes them. `lanes` is int32 `[rows]`, the
        lane of each row, in range; where it is None, row i is lane i.
        """

    def masked_store(
        self,
        array: Array,
        indices: Sequence[Array],
        mask: Array,
        value: Array,
        lanes: Array | None = None,
        *,
        adds: bool = False,
    ) -> Array:
        """`array` with `array[lane, i, j, ..] = value[row]` for the rows of `mask`; see `load`.

        It costs the elements written, not all. No two rows of `mask` are of the same lane. Indices are `[rows]`, or
        `[rows, n]`: distinct positions, of which every combination is written. Values are broadcast to what is written
        of a lane. Where it `adds`, values are added to what is there, and rows may be of the same lane.
        """

    def with_rows(self, array: Array, start: Array, rows: Array) -> Array:
        """`array` with `array[start:start + n] = rows`, within it, for an int32 scalar; in place where it can be."""

    def rows_at(self, array: Array, start: Array | int, count: Array | int) -> Array:
        """`array[start:start + count]`, within the array; from the beginning (0) also of NumPy's arrays."""

    def unspread(self, array: Array, shape: tuple[int, ...]) -> Array:
        """`[rows, *shape]`: the sum over the axes along which an array of this shape was broadcast to `array`."""

    def live(self, array: Array, mask: Array, shape: tuple[int, ...]) -> Array:
        """The rows at which `mask` holds, alone, as arrays of this shape: how many there are is known when it runs."""

    def summed_by_number(self, rows: Array, numbers: Array) -> tuple[Array, Array]:
        """The sums of those of `rows` that have the same of `numbers`, `[n]`, and these, each once."""

    def rows_of_table(self, rows: Array, numbers: Array, table: TensorType) -> Array:
        """Zeros but for `rows` in the place of those of such a table that have these `numbers`, `[n]`, each once.

        As the library knows such a thing; where it does not, as a table.
        """

    def sum_of_gradients(self, one: Array, other: Array) -> Array:
        """The sum of two gradients by one value, arrays, or both as `rows_of_table` gives them."""

    def sum_rows(
        self, array: Array, mask: Array, lanes: Array | None = None, count: Array | int | None = None
    ) -> Array:
        """The sum of the rows at which `mask` holds; others may hold anything.

        Given `lanes`, which say which lane each row is of, the same for each of `count` lanes: `[count, ...]`.
        """

    # -- over all lanes ------------------------------------------------------------------------------------------------

    def counted(self, mask: Array) -> Array:
        """Return for each element of a bool vector the number of true ones up to and including it: int32, as long."""

    def ranks(self, numbers: Array) -> Array:
        """Return for each of a few numbers how many before it are equal to it: int32, as long."""

    def marked(self, size: Array | int, numbers: Array, mask: Array) -> Array:
        """Bool `[size]`: true at each number that occurs in `numbers`, int32 `[n]`, where `mask` holds."""

    def any(self, mask: Array, *, by_lane: bool = False) -> Array:
        """Bool scalar: true if any element of `mask` holds; or, `by_lane`, the same of each lane's: bool `[lanes]`."""

    def sum(self, array: Array, weights: Sequence[float] | None = None) -> Array:
        """int32 scalar sum of a bool or integer array; or the float32 sum of a vector, each number times its weight."""

    def min(self, array: Array) -> Array:
        """Scalar minimum of an integer array."""

    def max(self, array: Array) -> Array:
        """Scalar maximum of an array that is not empty."""

    def tally(self, numbers: Array, labels: Sequence[int]) -> Array:
        """Count the `[lanes]` int32 `numbers` that equal each label: int32 `[len(labels)]`."""

    # -- vectors of scalars --------------------------------------------------------------------------------------------

    def stack(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        """A vector of scalars; of arrays of one shape an array with a new first axis, or last one (-1)."""

    def joined(self, *vectors: Array) -> Array:
        """Vectors one behind the other, as one."""

    def unstack(self, vector: Array, count: int) -> list[Array]:
        """The `count` scalars of a vector."""


# -- the user's values -------------------------------------------------------------------------------------------------


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
