"""Structures that change, as values: what an assignment to a part, or a method that changes its object, gives instead.

`p.x = v` is `p = with_field(p, v, "x")`: a new object, nothing in place. Methods run as they were written, on a copy of
their object. What is copied are lists, dicts and records; arrays are shared, since nobody changes them.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.ir import records
from pcbatch.ir.dtypes import casts_into
from pcbatch.ir.joins import ConflictError, join
from pcbatch.ir.types import TensorType
from pcbatch.ir.values import copied
from pcbatch.runtime.backends.tensorflow import scattering
from pcbatch.runtime.backends.tensorflow.bounded import Bounded
from pcbatch.runtime.backends.tensorflow.indexing import in_range, place_in, positions_in
from pcbatch.runtime.backends.tensorflow.positions import replaced_at
from pcbatch.runtime.backends.tensorflow.promotion import is_bool
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.searching import in_order
from pcbatch.runtime.backends.tensorflow.structures import describe, spelling, type_of
from pcbatch.runtime.backends.tensorflow.weak import commit, is_lane_value, is_number

OF_LISTS = frozenset({"append", "clear", "extend", "insert", "pop", "reverse", "sort"})
OF_LISTS |= {"__delitem__", "__iadd__", "__imul__"}
OF_DICTS = frozenset({"clear", "pop", "popitem", "setdefault", "update", "__delitem__", "__ior__"})
OF_BOUNDED = frozenset({"append", "clear", "pop"})
"""The methods that change their object, of those kinds that are not the user's."""


_OPERATORS = {"__iadd__": operator.add, "__imul__": operator.mul, "__ior__": operator.or_}


# -- parts -------------------------------------------------------------------------------------------------------------


def with_field(record: Any, value: Any, name: str) -> Any:
    """`record` with `record.name = value`; PieceRefusalError PCB422 for what has no such attribute to be assigned."""
    cls = type(record)
    fields = records.fields_of(record)
    if fields is None and not records.is_simple_class(cls):
        raise _fixed(record, f"`.{name}` cannot be assigned", _no_attribute(record, name))
    if records.is_frozen(record):
        what = "a named tuple" if isinstance(record, tuple) else "a frozen dataclass"
        make = f"p._replace({name}=..)" if isinstance(record, tuple) else f"dataclasses.replace(p, {name}=..)"
        help_ = f"make a new one, `p = {make}`, or make the class a dataclass that is not frozen"
        raise PieceRefusalError("PCB422", f"`{cls.__name__}` is {what}, which cannot be changed", help_)
    known = records.field_names(cls)
    if known is not None and name not in known:
        raise PieceRefusalError(
            "PCB422",
            f"the dataclass `{cls.__name__}` has no field `{name}`",
            f"declare it in the class, `{name}: float = 0.0`; its fields are {', '.join(known) or 'none'}",
        )
    if _has_setter(cls, name):
        changed_record = copied(record)
        setattr(changed_record, name, value)
        return changed_record
    return records.made(cls, {**(fields or {}), name: value})


def with_item(whole: Any, value: Any, key: Any) -> Any:
    """The list or dict `whole` with `whole[key] = value`; PieceRefusalError PCB422 for what cannot be changed."""
    if isinstance(whole, list):
        if is_lane_value(key) and whole:
            last = len(whole) - 1
            return replaced_at(whole, value, tf.clip_by_value(_from_the_front(key, len(whole)), 0, last))
        changed_list = [*whole]
        changed_list[key] = value
        return changed_list
    if isinstance(whole, dict):
        if not isinstance(key, str):
            help_ = "use an array for numbered entries, `a[i] = v`, or a list with constant positions"
            raise PieceRefusalError("PCB422", f"a key of a dict is a constant text, not {_described(key)}", help_)
        return {**whole, key: value}
    help_ = "make a list of it from the start, `t = [a, b]`, or a new tuple: `t = (v, *t[1:])`"
    raise _fixed(whole, "no part of it can be assigned", help_ if isinstance(whole, tuple) else "assign an attribute")


def _from_the_front(place: Any, size: Any) -> tf.Tensor:
    place = tf.cast(tf.convert_to_tensor(place), tf.int32)
    return tf.where(place < 0, place + size, place)


def row(value: Any, whole: Any) -> Any:
    """The tuple or list `value` as an element of the array `whole`; itself where that is a structure."""
    array = whole.items if isinstance(whole, Bounded) else whole
    if not isinstance(array, (tf.Tensor, tf.Variable, np.ndarray)):
        return value
    array = tf.convert_to_tensor(array)
    parts = [row(each, array) if isinstance(each, (tuple, list)) else _element_of(array, each) for each in value]
    return tf.stack(parts) if parts else tf.zeros([0], array.dtype)


def stored(whole: Any, value: Any, *indices: Any, site: int) -> Any:
    """`whole` with `whole[i, ..] = value`: an array, a bounded list, or a list or dict by a constant.

    There is an index for each leading axis that matters: an integer, or a vector of valid positions; none stores to the
    whole array. An integer out of range is a fault at `site`.
    """
    if isinstance(whole, Bounded):
        if len(indices) != 1:
            raise TypeError("a bounded list takes one index; write `row = b[i]`, change it and store it: `b[i] = row`")
        return Bounded(_array_stored(whole.items, value, [place_in(whole, indices[0], site)], site), whole.length)
    if isinstance(whole, (tf.Tensor, tf.Variable, np.ndarray)):
        return _array_stored(tf.convert_to_tensor(whole), value, indices, site)
    if len(indices) == 1:
        if isinstance(whole, list) and whole and is_lane_value(indices[0]):
            return replaced_at(whole, value, in_range(indices[0], len(whole), site))
        if isinstance(whole, list) and is_lane_value(indices[0]):
            in_range(indices[0], 0, site)
        return with_item(whole, value, indices[0])
    raise TypeError(f"{describe(whole)} takes one index")


def _array_stored(array: tf.Tensor, value: Any, indices: Sequence[Any], site: int) -> tf.Tensor:
    """`array` with one or several elements replaced: made of comparisons and choices, which run for all lanes.

    That costs the array. A store into an array that is a variable of its own costs the element (the Store op).
    """
    rank = array.shape.rank
    if len(indices) == 1 and is_bool(indices[0]):
        return scattering.masked(array, tf.convert_to_tensor(indices[0]), _element_of(array, value))
    if len(indices) > rank:
        raise IndexError(f"too many indices for an array of rank {rank}")
    places = [tf.convert_to_tensor(index) for index in indices]
    vectors = [place.shape[0] for place in places if place.shape.rank == 1]
    value = scattering.spread(_element_of(array, value), [*vectors, *array.shape[len(places) :]])
    if not places:
        return tf.identity(value)
    hit = tf.ones([1] * rank, tf.bool)
    for axis, place in enumerate(places):
        size = array.shape[axis]
        if place.shape.rank == 0:
            here = tf.range(size) == in_range(place, size, site)
            value = tf.expand_dims(value, axis)
        else:
            table = positions_in(place, size, site)[::-1, None] == tf.range(size)
            here = tf.reduce_any(table, 0)  # the last value that a place gets is the one that it keeps
            last = place.shape[0] - 1 - tf.argmax(tf.cast(table, tf.int32), 0, tf.int32)
            value = tf.gather(value, tf.maximum(last, 0), axis=axis)
        hit &= tf.reshape(here, [1] * axis + [size] + [1] * (rank - axis - 1))
    return tf.where(hit, value, array)


def _element_of(array: tf.Tensor, value: Any) -> tf.Tensor:
    """`value` as one or several elements of `array`; TypeError where its dtype does not fit."""
    if is_number(value):
        return commit(value, array.dtype)
    tensor = tf.convert_to_tensor(value)
    if casts_into(tensor.dtype.name, array.dtype.name):
        return tf.cast(tensor, array.dtype)
    if tensor.dtype != array.dtype:
        try:
            join(TensorType(array.dtype.name), TensorType(tensor.dtype.name))
        except ConflictError as error:
            raise TypeError(f"the stored value does not fit: {error.told(spelling)}") from None
    return tensor


# -- methods -----------------------------------------------------------------------------------------------------------


def changed(whole: Any, method: str, *args: Any, site: int = 0, **options: Any) -> Any:
    """What `whole.method(*args)` makes of `whole`, the value of the call being dropped."""
    return taken(whole, method, *args, site=site, **options)[1]


def taken(whole: Any, method: str, *args: Any, site: int = 0, **options: Any) -> tuple[Any, Any]:
    """What `whole.method(*args)` gives, and what it makes of `whole`.

    A bounded list that is full, or empty, is a fault at `site`.
    """
    if isinstance(whole, Bounded) and method in OF_BOUNDED:
        return _bounded_taken(whole, method, *args, site=site, **options)
    is_object = isinstance(whole, (list, dict)) or _is_users(whole)
    if method in _OPERATORS and not (is_object and hasattr(type(whole), method)):
        return None, _OPERATORS[method](whole, args[0])
    if isinstance(whole, list) and method in OF_LISTS:
        if method in ("insert", "pop", "__delitem__") and args and is_lane_value(args[0]):
            raise PieceRefusalError("PCB422", "a list takes constant positions only", _BY_LANE)
        if method in ("extend", "__iadd__") and isinstance(args[0], (tf.Tensor, tf.Variable)):
            args = (tf.unstack(args[0]),)
        if method == "sort" and not args:
            return None, in_order(whole, **options)
    elif isinstance(whole, dict) and method in OF_DICTS:
        pass
    elif not _is_users(whole) or isinstance(whole, tuple):
        raise _no_change(whole, method)
    result = copied(whole)
    value = _call(result, method, args, options)
    return (None, value) if method in _OPERATORS else (value, result)


def _bounded_taken(whole: Bounded, method: str, *args: Any, site: int) -> tuple[Any, Bounded]:
    capacity = whole.items.shape[0]
    last = tf.clip_by_value(whole.length - (method == "pop"), 0, capacity - 1)
    match method, args:
        case "append", (value,):
            fault(whole.length >= capacity, site)
            items = _array_stored(whole.items, value, [last], site)
            return None, Bounded(items, tf.minimum(whole.length + 1, capacity))
        case "pop", ():
            fault(whole.length <= 0, site)
            return tf.gather(whole.items, last), Bounded(whole.items, tf.maximum(whole.length - 1, 0))
        case "clear", ():
            return None, Bounded(whole.items, tf.zeros_like(whole.length))
    if method == "pop":
        queue = "for a queue count what is taken, `x = q[head]` and `head += 1`"
        raise TypeError(f"`pop` of a bounded list takes no argument; {queue}")
    raise TypeError(f"`{method}` of a bounded list takes {'one value' if method == 'append' else 'no argument'}")


def _call(whole: Any, method: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    try:
        return getattr(whole, method)(*args, **options)
    except PieceRefusalError as error:
        if error.code != "PCB405":
            raise
        name = type(whole).__name__
        raise PieceRefusalError(
            "PCB423",
            f"`{method}` of `{name}` is a batched function, and a method of a value",
            f"call it by its class, and take what it gives: `p = {name}.{method}(p, ..)`; or leave out its `autobatch`",
        ) from None


# -- what is refused ---------------------------------------------------------------------------------------------------

_BY_LANE = (
    "for positions that differ by lane take an array, `a = tf.stack(xs)` and `a[i] = v`, or `pcbatch.bounded(..)`"
)


def _is_users(value: Any) -> bool:
    """Whether `value` is a record of a class of the user's."""
    return not isinstance(value, Bounded) and (
        records.fields_of(value) is not None or records.is_simple_class(type(value))
    )


def _has_setter(cls: type, name: str) -> bool:
    """Whether assigning `name` runs something of the class."""
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return hasattr(type(found), "__set__") and not isinstance(found, types.MemberDescriptorType)


def _described(value: Any) -> str:
    """What a value of a lane is, in words."""
    if is_lane_value(value) or is_number(value) or isinstance(value, (bool, np.ndarray, np.generic)):
        known = type_of(value)
        return "an array" if isinstance(known, TensorType) and known.shape else "a number"
    return describe(value)


def _fixed(value: Any, why: str, help: str) -> PieceRefusalError:
    return PieceRefusalError("PCB422", f"this is {_described(value)}: {why}", help)


def _no_attribute(value: Any, name: str) -> str:
    if isinstance(value, dict):
        return f'an entry of a dict is assigned by its key, `d["{name}"] = v`'
    return "what changes by attribute is a dataclass that is not frozen, or an object of a simple class"


def _no_change(value: Any, method: str) -> PieceRefusalError:
    if isinstance(value, list) and hasattr(value, method):
        help_ = (
            "what depends on values differs by lane, a list does not: keep a flag beside each element, or take "
            "`pcbatch.bounded(..)`"
        )
        return PieceRefusalError("PCB423", f"`{method}` of a list depends on the values in it", help_)
    if isinstance(value, dict) and hasattr(value, method):
        return PieceRefusalError("PCB423", f"`{method}` changes nothing in a dict", "assign what it gives, `v = ..`")
    if isinstance(value, Bounded):
        known = ", ".join(f"`{name}`" for name in sorted(OF_BOUNDED))
        return PieceRefusalError("PCB423", f"a bounded list has no `{method}`", f"it has {known}, len and elements")
    return PieceRefusalError(
        "PCB423",
        f"`{method}` is called on {_described(value)}, which cannot be changed, and what it gives is not used",
        "assign the value, `y = ..`; for a list whose length differs by lane take `pcbatch.bounded(shape, dtype, "
        "capacity)`",
    )
