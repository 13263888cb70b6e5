"""The numbers and arrays that a function of one example computes with.

`Number` holds a NumPy scalar and `Array` a NumPy array, and NumPy computes: nothing else runs while nobody watches.
Where a tape may look on, a float is a tensor, and so is any number inside a traced function: `Watched`, and an `Array`
whose owner has a tensor. Comparisons of numbers are Python's bools, which count and match as Python's do.

An `Array` is a cell, as NumPy's are: a view shares its memory, and the tensor of the array that owns it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.traced_float import TracedFloat
from pcbatch.single.indexing import Shape, is_basic, places, refuse_cut, resolved
from pcbatch.single.meeting import PYTHONS, as_tensor, rounded, stored, within

TENSORS = (tf.Tensor, tf.Variable)


class Value:
    """The common base of numbers and arrays."""

    __slots__ = ()
    __array_priority__ = 2000.0
    applied: Callable[[Any], Callable[..., Any]]
    """From a function of a library to the one that takes values; `calls` says which."""
    member: Callable[[Any, str], Any]
    """An attribute or a method that a NumPy array has; `calls` says which."""

    def __array_ufunc__(self, ufunc: Any, how: str, *given: Any, **options: Any) -> Any:
        return Value.applied(ufunc if how == "__call__" else getattr(ufunc, how))(*given, **options)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        return Value.applied(function)(*given, **options)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> tf.Tensor:
        found = tensor(self)
        return found if dtype is None else tf.cast(found, dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Value.member(self, name)

    def __float__(self) -> float:
        return float(known(self))

    def __int__(self) -> int:
        return within(int(known(self)))

    def __index__(self) -> int:
        return operator.index(known(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(known(self), dtype, copy=copy)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pos__(self) -> Any:
        return self


class Number(Value):
    """A number with a dtype: an argument, an element of an array, or what is computed of such."""

    __slots__ = ("tensor", "value")
    ndim, size, shape = 0, 1, Shape()

    def __init__(self, value: Any):
        self.value = value

    def __neg__(self) -> Any:
        return Number(-self.value)

    def __abs__(self) -> Any:
        return Number(abs(self.value))

    def __invert__(self) -> Any:
        return seen(~self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return within(int(self.value))

    def __index__(self) -> int:
        return operator.index(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            return self if self.value.dtype.kind in "iu" else within(round(float(self.value)))
        return Number(rounded(self.value, digits))

    def __trunc__(self) -> int:
        return within(math.trunc(self.value.item()))

    def __floor__(self) -> int:
        return within(math.floor(self.value.item()))

    def __ceil__(self) -> int:
        return within(math.ceil(self.value.item()))

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, form: str) -> str:
        return format(self.value, form)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Number, (self.value,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.value, dtype)

    def __getitem__(self, index: Any) -> Any:
        if index is ... or index == ():
            return self
        return self._spread(np.empty(())[index].shape)

    def _spread(self, shape: tuple[int, ...]) -> Any:
        """The number as an array of axes of length one."""
        return Array(np.reshape(self.value, shape))

    @property
    def dtype(self) -> tf.DType:
        """As a tensor has it."""
        return tf.as_dtype(self.value.dtype)


class Watched(Number):
    """A number that is a tensor: what a tape sees come about, or what is not known yet inside a traced function."""

    __slots__ = ()

    def __init__(self, tensor: tf.Tensor):
        self.tensor = tensor

    def _spread(self, shape: tuple[int, ...]) -> Any:
        return seen(tf.reshape(self.tensor, shape))

    @property
    def value(self) -> Any:
        """The NumPy scalar; TensorFlow's error where there is none yet."""
        return bool(self.tensor) if tf.is_symbolic_tensor(self.tensor) else self.tensor.numpy()

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __neg__(self) -> Any:
        return Watched(-self.tensor)

    def __abs__(self) -> Any:
        return Watched(tf.abs(self.tensor))

    def __invert__(self) -> Any:
        return seen(~self.tensor)

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            return super().__round__()
        return Value.applied(np.round)(self, operator.index(digits))

    def __float__(self) -> float:
        return float(self.value)

    @property
    def dtype(self) -> tf.DType:
        """The tensor's."""
        return self.tensor.dtype


class Array(Value):
    """An array that can be changed: `value` is its memory, `owner` the array whose memory a view shares."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("__weakref__", "is_constant", "owner", "tensor", "value")

    def __init__(
        self,
        value: np.ndarray,
        owner: Array | None = None,
        tensor: tf.Tensor | None = None,
        is_constant: bool = False,
    ):
        """`is_constant`: made of nothing that differs by lane, so that it takes the dtype of what it meets."""
        if owner is None and not value.flags.c_contiguous:
            value = value.copy()
        self.value, self.owner, self.tensor, self.is_constant = value, owner, tensor, is_constant

    @property
    def shape(self) -> Shape:
        """Its sizes."""
        return Shape(self.value.shape)

    @property
    def dtype(self) -> tf.DType:
        """As a tensor has it."""
        return tf.as_dtype(self.value.dtype)

    def watched(self) -> tf.Tensor | None:
        """The tensor that it is now, if somebody watches."""
        owner = self.owner
        if owner is None:
            return self.tensor
        if owner.tensor is None:
            return None
        return tf.gather(tf.reshape(owner.tensor, [-1]), places(self.value, owner.value))

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self.value)))

    def __bool__(self) -> bool:
        found = self.watched()
        return bool(self.value) if found is None else bool(found)

    def __repr__(self) -> str:
        return repr(self.value)

    def __copy__(self) -> Any:
        return Array(self.value.copy(), None, self.watched(), self.is_constant)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Array, (np.array(self.value),)

    def __neg__(self) -> Any:
        found = self.watched()
        return Array(-self.value) if found is None else seen(-found)

    def __abs__(self) -> Any:
        found = self.watched()
        return Array(abs(self.value)) if found is None else seen(tf.abs(found))

    def __invert__(self) -> Any:
        return seen(~self.value)

    def __getitem__(self, index: Any) -> Any:
        kind = type(index)
        at = index if kind is int else index.value if kind is Number else self._at(index)
        owner = self if self.owner is None else self.owner
        if owner.tensor is not None or _is_symbolic(at):
            return self._watched_at(at, owner)
        found = self.value[at]
        if isinstance(found, np.ndarray):
            return Array(found, owner) if found.base is not None and is_basic(at) else Array(found)
        return bool(found) if type(found) is np.bool_ else Number(found)

    def _at(self, index: Any) -> Any:
        """An index as NumPy takes it; IndexError for a slice of fixed length that leaves the array."""
        at = resolved(index, _position)
        refuse_cut(at, self.value.shape)
        return at

    def _watched_at(self, at: Any, owner: Array) -> Any:
        if _is_symbolic(at) or owner.tensor is None:
            return seen(tensor(self)[at])
        part = self.value[at]
        if isinstance(part, np.ndarray) and is_basic(at):
            return Array(part, owner)
        if owner is self and is_basic(at):
            return seen(owner.tensor[at])
        return seen(tf.gather(tf.reshape(owner.tensor, [-1]), places(self.value, owner.value)[at]))

    def __setitem__(self, index: Any, value: Any) -> None:
        kind = type(index)
        at = index if kind is int else index.value if kind is Number else self._at(index)
        owner, what = self if self.owner is None else self.owner, operand(value)
        if what is NotImplemented:
            what = operand(self.applied(np.array)(value))  # of a list, in which a tape may follow values
        if owner.tensor is not None or isinstance(what, (*TENSORS, TracedFloat)):
            self._store_watched(at, what, owner)
        else:
            self.value[at] = stored(what, self.value.dtype)

    def _store_watched(self, at: Any, what: Any, owner: Array) -> None:
        """Let the owner be what TensorFlow makes of it; of several values for one place the last counts."""
        where = places(self.value, owner.value)[at]
        stored = as_tensor(what, self.value.dtype)
        extra = max(stored.shape.rank - where.ndim, 0)  # leading axes of length 1, as NumPy takes them
        stored = tf.broadcast_to(tf.reshape(stored, stored.shape[extra:]), where.shape)
        flat, stored = where.reshape(-1), tf.reshape(stored, [-1])
        _, last = np.unique(flat[::-1], return_index=True)
        if len(last) < flat.size:
            kept = flat.size - 1 - last
            flat, stored = flat[kept], tf.gather(stored, kept)
        whole = constant(owner.value) if owner.tensor is None else owner.tensor
        changed = tf.tensor_scatter_nd_update(tf.reshape(whole, [-1]), flat[:, None], stored)
        owner.tensor = tf.reshape(changed, whole.shape)
        if not tf.is_symbolic_tensor(owner.tensor):
            owner.value[...] = owner.tensor.numpy()


class Variable(Value):
    """A variable that the function reads from around it."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("variable",)

    def __init__(self, variable: Any):
        self.variable = variable

    def read(self) -> Any:
        """Its value now, as a number or an array."""
        return seen(tf.convert_to_tensor(self.variable))

    def __len__(self) -> int:
        return len(self.read())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read())

    def __getitem__(self, index: Any) -> Any:
        return self.read()[index]

    def __bool__(self) -> bool:
        return bool(self.read())

    def __neg__(self) -> Any:
        return -self.read()

    def __abs__(self) -> Any:
        return abs(self.read())

    def __repr__(self) -> str:
        return repr(self.variable)


def _is_symbolic(at: Any) -> bool:
    return any(map(tf.is_symbolic_tensor, at if isinstance(at, tuple) else (at,)))


def _position(part: Any) -> Any:
    """A part of an index, or a bound of a slice, as NumPy takes it."""
    if isinstance(part, Value):
        part = operand(part)
    return part.numpy() if isinstance(part, TENSORS) and not tf.is_symbolic_tensor(part) else part


# -- from values to what they hold, and back ---------------------------------------------------------------------------


def operand(value: Any) -> Any:
    """Return the raw form of a value: a NumPy or Python number, a NumPy array, or a tensor that is seen."""
    kind = type(value)
    if kind is Number:
        return value.value
    if kind is Watched:
        return value.tensor
    if kind is Array:
        found = value.watched()
        return value.value if found is None else found
    if kind is Variable:
        return operand(value.read())
    if isinstance(value, (PYTHONS, np.generic, np.ndarray)):
        return value
    if isinstance(value, TENSORS):
        return value if may_be_seen(value) else value.numpy()
    return NotImplemented


def may_be_seen(tensor: Any) -> bool:
    """Return whether a tensor is not known yet, or a tape may look at it."""
    if tf.is_symbolic_tensor(tensor) or not tf.executing_eagerly():
        return True
    return (tensor.dtype.is_floating or tensor.dtype.is_complex) and private.may_record()


def seen(found: Any) -> Any:
    """A result as the user's function sees it."""
    if isinstance(found, np.generic):
        return bool(found) if type(found) is np.bool_ else Number(found)
    if isinstance(found, np.ndarray):
        if found.dtype.kind in "OUSMm":
            return found
        return Array(found) if found.ndim else seen(found[()])
    if isinstance(found, tf.Tensor):
        return _of_tensor(found)
    return found


def _of_tensor(found: tf.Tensor) -> Any:
    if found.dtype in (tf.string, tf.variant, tf.resource) or not found.shape.is_fully_defined():
        return found
    if not may_be_seen(found):
        return seen(found.numpy())
    if found.shape.rank == 0:
        return Watched(found)
    if tf.is_symbolic_tensor(found):
        return Array(np.zeros(found.shape, found.dtype.as_numpy_dtype), None, found)
    return Array(found.numpy(), None, found)


def tensor(value: Any) -> tf.Tensor:
    """A value as a tensor."""
    found = operand(value)
    return found if isinstance(found, tf.Tensor) else constant(found)


def constant(value: Any) -> tf.Tensor:
    """A raw value as a tensor; a zero keeps its sign, though TensorFlow knows eager scalars by their value."""
    return tf.convert_to_tensor(value) if isinstance(value, tf.Variable) else tf.constant(np.asarray(value))


def known(value: Any) -> Any:
    """The numbers of a value, as NumPy has them; TensorFlow's error where they are not known yet."""
    found = operand(value)
    if isinstance(found, TENSORS):
        return bool(found) if tf.is_symbolic_tensor(found) else found.numpy()
    return found
