"""`a[i]` and `a[i:i+k]` where `i` may differ from lane to lane: gathers that cannot raise, range checks recorded."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import SHARED_ARGUMENT, PieceRefusalError
from pcbatch.ir import values
from pcbatch.ir.slices import Window
from pcbatch.ir.types import ConflictError, Type, join
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, leaf_tensors, spelling, type_of, wrap
from pcbatch.runtime.backends.tensorflow.weak import Weak, is_lane_value

# -- list indexing -----------------------------------------------------------------------------------------------------
# Lists and tuples at positions that differ by lane: elements, which must be alike, are read and replaced there.


def joined(items: Sequence[Any], what: str) -> Type:
    """Return the type that holds each of `items`; TypeError on behalf of `what` where there is none."""
    type_: Type | None = None
    try:
        for item in items:
            type_ = join(type_, type_of(item))
    except ConflictError as error:
        raise TypeError(f"{what} must be alike ({error.told(spelling)}); write them out one by one") from None
    except NotATensorError as error:
        raise TypeError(f"{what} must be numbers or arrays, not {error}") from None
    assert type_ is not None  # only the join of unknown types is unknown
    return type_


def taken_at(items: Sequence[Any], place: tf.Tensor) -> Any:
    """The element of `items` at `place`, an int32 scalar that is in range."""
    type_ = joined(items, "the elements of what is indexed by a lane's number")
    leaves = zip(*(leaf_tensors(item, type_) for item in items), strict=True)
    return wrap(values.pack(type_, [tf.gather(tf.stack(each), place) for each in leaves]), type_)


def replaced_at(items: Sequence[Any], value: Any, place: tf.Tensor) -> list[Any]:
    """`items` with `value` at `place`, an int32 scalar that is in range for every lane that is really there."""
    type_ = joined([*items, value], "the elements of a list that is changed at a lane's number, and the new one,")
    here = tf.equal(tf.constant(np.arange(len(items), dtype=np.int32)), place)
    olds = zip(*(leaf_tensors(item, type_) for item in items), strict=True)

    def chosen(new: tf.Tensor, old: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        found: list[tf.Tensor] = tf.unstack(tf.where(tf.reshape(here, [-1, *[1] * new.shape.rank]), new, tf.stack(old)))
        return found

    columns = [chosen(new, old) for new, old in zip(leaf_tensors(value, type_), olds, strict=True)]
    return [wrap(values.pack(type_, [column[at] for column in columns]), type_) for at in range(len(items))]


# -- array indexing ----------------------------------------------------------------------------------------------------
# `a[order]`: arrays of positions as indices, as NumPy has them: each takes an element, together they go pairwise.

_ARRAYS = (tf.Tensor, tf.Variable, np.ndarray)


def is_positions(part: Any) -> bool:
    """Return whether a part of an index is an array: of positions, or a mask."""
    return isinstance(part, list) or (isinstance(part, _ARRAYS) and len(part.shape) > 0)


def of_arrays(a: tf.Tensor, parts: list[Any], site: int) -> tf.Tensor:
    """`a` at an index for each axis of which some are arrays; a position that is not there is a fault at `site`."""
    parts = [_as_array(part) if isinstance(part, list) else part for part in parts]
    if not any(is_lane_value(part) for part in parts) and not any(isinstance(part, Window) for part in parts):
        return _of_known(a, tuple(parts))
    taken = [place for place, part in enumerate(parts) if not isinstance(part, slice) and part is not None]
    if any(isinstance(part, Window) for part in parts) or taken != [*range(taken[0], taken[-1] + 1)]:
        raise TypeError("arrays among several indices stand side by side, without a slice of a lane's bounds between")
    fixed = [slice(None) if place in taken else part for place, part in enumerate(parts)]
    first = sum(not isinstance(part, Window) for part in parts[: taken[0]])
    a = a[tuple(fixed)]
    sizes = a.shape[first : first + len(taken)].as_list()
    positions = [_in_range(parts[place], size, site) for place, size in zip(taken, sizes, strict=True)]
    pairs = zip(positions[1:], sizes[1:], strict=True)
    flat = functools.reduce(lambda so_far, pair: so_far * pair[1] + pair[0], pairs, positions[0])
    if len(taken) > 1:
        a = tf.reshape(a, [*a.shape[:first], math.prod(sizes), *a.shape[first + len(taken) :]])
    if 0 in sizes:  # every lane that comes here has failed
        return tf.zeros([*a.shape[:first], *flat.shape, *a.shape[first + 1 :]], a.dtype)
    return tf.gather(a, flat, axis=first)


def _as_array(part: list[Any]) -> Any:
    """A list of positions as an array, `[i, j]` of a lane's numbers as a tensor."""
    if not any(map(is_lane_value, part)):
        return np.asarray(part)
    numbers = [tf.convert_to_tensor(each.value if isinstance(each, Weak) else each) for each in part]
    is_wide = any(each.dtype == tf.int64 for each in numbers)
    return tf.stack([tf.cast(each, tf.int64) if is_wide and each.dtype.is_integer else each for each in numbers])


def _of_known(a: tf.Tensor, parts: tuple[Any, ...]) -> tf.Tensor:
    """`a[parts]` where all of these are known."""
    places = np.arange(a.shape.num_elements()).reshape(a.shape)[parts]
    return tf.gather(tf.reshape(a, [-1]), places)


def _in_range(part: Any, size: int, site: int) -> tf.Tensor:
    """Positions, int32, counted from the front and clamped."""
    positions = tf.convert_to_tensor(part.value if isinstance(part, Weak) else part)
    if positions.dtype == tf.bool:
        raise masked()
    if not positions.dtype.is_integer:
        raise TypeError(f"an index is an int, not {positions.dtype.name}; write int(i), or tf.cast(i, tf.int32)")
    positions = tf.cast(positions, tf.int32 if positions.dtype.size < 4 or positions.dtype == tf.int32 else tf.int64)
    fault(tf.reduce_any((positions < -size) | (positions >= size)), site)
    positions = tf.where(positions < 0, positions + size, positions)
    return tf.cast(tf.clip_by_value(positions, 0, max(size - 1, 0)), tf.int32)


def masked() -> PieceRefusalError:
    """Return the refusal of an array indexed by a mask."""
    return PieceRefusalError(
        "PCB407",
        "an array indexed by a mask has a length that differs from lane to lane",
        "keep the whole array and choose within it: `np.sum(np.where(mask, a, 0.0))` for `a[mask].sum()`, "
        "`np.max(np.where(mask, a, -np.inf))`; count with np.sum(mask)",
    )


# -- indexing ----------------------------------------------------------------------------------------------------------

_PLACES = "_pcb_places"
"""The attribute of a graph that has the safe indices in it, by the index and how many elements there are."""


def getitem(a: Any, index: Any, site: int) -> Any:
    """`a[index]` as Python and NumPy mean it: negative indices count from the end.

    A lane's index out of range is a fault at `site`, and so is a `Window` that leaves the array; what it reads then is
    junk. Structures (tuples, dicts, ..) take constant indices only. Slices that are no `Window` need constant bounds.
    """
    if isinstance(a, Weak):
        raise TypeError("a number has no elements")
    lane_index = any(is_lane_value(part) for part in _parts(index))
    if isinstance(a, np.ndarray) and (lane_index or any(isinstance(part, Window) for part in _entries(index))):
        a = tf.convert_to_tensor(a)
    if isinstance(a, tf.Variable) or hasattr(type(a), "__tf_tensor__"):  # Keras's variables, too
        return _element(tf.convert_to_tensor(a), index, site)
    if is_lane_value(index) and type(a) in (list, tuple) and a:
        return taken_at(a, in_range(index, len(a), site))
    if lane_index:
        told = f"a {type(a).__name__} takes constant indices only"
        of_numbers = "make it an array where it begins, `xs = tf.stack(xs)`: that takes any index, read or stored"
        raise TypeError(told if isinstance(a, dict) else f"{told}; {of_numbers}")
    return a[_resolved(index, len(a)) if isinstance(index, Window) else index]


def _resolved(window: Window, size: int) -> slice:
    """A window of constant bounds into a tuple or list, whose length cannot differ by lane."""
    return window.resolve(size)


def window(start: Any, stop: Any, step: Any, length: Any) -> Window:
    """`start:stop:step`, whose bounds are `length` apart by the way they are written; refused where that differs."""
    if is_lane_value(length) or is_lane_value(step):
        raise PieceRefusalError("PCB406", "the length of a slice differs from lane to lane", _FIXED_LENGTH)
    return Window(start, stop, 1 if step is None else step, length)


def axis(a: Any, number: int) -> tf.Tensor:
    """int32 `[0, 1, .., n - 1]`: the positions along axis `number` of `a`, a slice of which is where a store goes."""
    if isinstance(a, (list, dict)):
        raise PieceRefusalError(
            "PCB422",
            f"a slice of a {type(a).__name__} cannot be assigned",
            "assign its elements one by one, or make a new list: `xs = [v, w, *xs[2:]]`",
        )
    shape = tf.TensorShape(a.shape)
    if shape.rank <= number:
        raise TypeError(f"too many indices for an array of rank {shape.rank}")
    return tf.range(shape[number])


_FIXED_LENGTH = (
    "an array of a lane has one static length: read a fixed number of elements, a[i:i + k] with k a literal or a "
    "captured int, or keep the whole array and mask it: tf.where((p >= i) & (p < j), a, 0.), p = tf.range(len(a))"
)


def _entries(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _parts(index: Any) -> list[Any]:
    """Everything inside an index that may be a lane's value."""
    match index:
        case tuple():
            return [part for item in index for part in _parts(item)]
        case slice():
            return [index.start, index.stop, index.step]
        case Window():
            return [index.start, index.stop]
    return [index]


def _element(a: tf.Tensor, index: Any, site: int) -> tf.Tensor:
    parts = _expand(index if isinstance(index, tuple) else (index,), a.shape)
    if any(map(is_positions, parts)):
        return of_arrays(a, parts, site)
    fixed: list[Any] = []  # the index with a full slice for each lane index
    lane_indices: list[tuple[int, tf.Tensor]] = []  # axis of a[fixed] and the position or positions in it, in order
    sizes = iter(a.shape)
    axis = 0
    for part in parts:
        if part is None:
            fixed.append(None)
            axis += 1
            continue
        size = next(sizes)
        if isinstance(part, slice):
            _refuse_lane_bounds(part)
            fixed.append(part)
            axis += 1
        elif isinstance(part, Window):
            fixed.append(slice(None))
            lane_indices.append((axis, _positions(part, size, site)))
            axis += 1
        elif is_lane_value(part):
            fixed.append(slice(None))
            lane_indices.append((axis, in_range(part, size, site)))
            axis += 1
        elif -size <= _constant(part) < size:
            fixed.append(int(part))
        else:  # every lane that comes here fails
            fixed.append(slice(None))
            lane_indices.append((axis, in_range(tf.constant(int(part)), size, site)))
            axis += 1
    if any(part != slice(None) for part in fixed):
        a = a[tuple(fixed)]
    return _gather(a, lane_indices) if lane_indices else a


def _expand(parts: tuple[Any, ...], shape: tf.TensorShape) -> list[Any]:
    """`parts` with the ellipsis and missing trailing axes spelled out as full slices."""
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    if taken and shape.rank == 0:
        raise PieceRefusalError("PCB401", "a number has no elements", SHARED_ARGUMENT)
    if taken > shape.rank:
        raise IndexError(f"too many indices: {taken} for an array of rank {shape.rank}")
    missing = [slice(None)] * (shape.rank - taken)
    where = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    rest = parts[where + 1 :]
    if any(part is Ellipsis for part in rest):
        raise IndexError("an index can have only one ellipsis ('...')")
    return [*parts[:where], *missing, *rest]


def _refuse_lane_bounds(part: slice) -> None:
    if any(is_lane_value(bound) for bound in (part.start, part.stop, part.step)):
        raise PieceRefusalError("PCB406", "the length of this slice may differ from lane to lane", _FIXED_LENGTH)


def _positions(window: Window, size: int, site: int) -> tf.Tensor:
    """The positions of a window, int32 `[count]`, made safe; one that Python would cut short is a fault.

    The bounds are brought into the array as `slice.indices` does it, and what is left must have the full length.
    """
    count, step = window.count, window.step
    lower, upper = (0, size) if step > 0 else (-1, size - 1)

    def inside(bound: Any) -> tf.Tensor:
        position = _integer(bound)
        position = tf.where(position < 0, tf.maximum(position, -size - 1) + size, position)
        return tf.cast(tf.clip_by_value(position, lower, upper), tf.int32)

    start, stop = inside(window.start), inside(window.stop)
    found = tf.math.floordiv(stop - start + (step - 1 if step > 0 else step + 1), step)
    fault(tf.maximum(found, 0) != count, site)
    return tf.clip_by_value(start + step * tf.range(count), 0, max(size - 1, 0))


def _constant(part: Any) -> int:
    if isinstance(part, (bool, np.bool_)) or not isinstance(part, (int, np.integer)):
        kind = type(part).__name__
        raise TypeError(f"an index is an int, a slice, None or ..., not {kind}; write tf.gather or tf.where")
    return int(part)


def _integer(part: Any) -> tf.Tensor:
    """An index as an int32 or int64 scalar."""
    position = tf.convert_to_tensor(part)
    if position.shape.rank != 0:
        raise TypeError("an index is one int here, not an array")
    if not position.dtype.is_integer:
        raise TypeError(f"an index is an int, not {position.dtype.name}; write int(i)")
    return tf.cast(position, tf.int32 if position.dtype.size < 4 or position.dtype == tf.int32 else tf.int64)


def in_range(part: Any, size: int, site: int) -> tf.Tensor:
    """A lane's index, made safe: counted from the front and clamped; out of range is a fault."""
    position = _integer(part)
    if not size:
        fault(True, site)
        return tf.constant(0)
    place, is_out = (_place_in if tf.executing_eagerly() else _known_place_in)(position, size)
    fault(is_out, site)
    return place


def positions_in(parts: tf.Tensor, size: int, site: int) -> tf.Tensor:
    """Several indices, counted from the front; one that is out of range is a fault."""
    fault(tf.reduce_any((parts < -size) | (parts >= size)), site)
    positions = tf.cast(parts, tf.int32)
    return tf.where(positions < 0, positions + size, positions)


def _known_place_in(position: tf.Tensor, size: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The same, once for each index in a graph: elements that are read are mostly stored into, too."""
    graph = tf.compat.v1.get_default_graph()
    known = getattr(graph, _PLACES, None)
    if known is None:
        known = {}
        setattr(graph, _PLACES, known)
    key = id(position), size
    if key not in known:
        known[key] = position, *_place_in(position, size)
    _, place, is_out = known[key]
    return place, is_out


def _place_in(position: tf.Tensor, size: int) -> tuple[tf.Tensor, tf.Tensor]:
    """A position counted from the front and clamped, and whether there is none such."""
    counted = tf.where(position < 0, position + size, position)
    place = tf.clip_by_value(counted, 0, size - 1)
    return tf.cast(place, tf.int32), tf.not_equal(counted, place)


def _gather(a: tf.Tensor, lane_indices: list[tuple[int, tf.Tensor]]) -> tf.Tensor:
    """`a` at one position, or at a vector of positions, of each of some axes.

    Adjacent axes are merged first, so that an element costs an element.
    """
    axes = [axis for axis, _ in lane_indices]
    if 0 in (a.shape[axis] for axis in axes):  # every index is out of range: the lanes have failed, the result is junk
        shapes = {axis: positions.shape.as_list() for axis, positions in lane_indices}
        return tf.zeros([n for axis, size in enumerate(a.shape) for n in shapes.get(axis, [size])], a.dtype)
    first, count = axes[0], len(axes)
    if axes == list(range(first, first + count)):
        merged = a.shape[first : first + count].as_list()
        pairs = zip(merged, (positions for _, positions in lane_indices), strict=True)
        flat = functools.reduce(_flat, pairs, tf.constant(0)) if count > 1 else lane_indices[0][1]
        if count > 1:
            a = tf.reshape(a, [*a.shape[:first], math.prod(merged), *a.shape[first + count :]])
        return tf.gather(a, flat, axis=first)
    for axis, positions in reversed(lane_indices):
        a = tf.gather(a, positions, axis=axis)
    return a


def _flat(so_far: tf.Tensor, axis: tuple[int, tf.Tensor]) -> tf.Tensor:
    """Positions in the axes so far and in one more, of `size`, as positions in all of them merged."""
    size, positions = axis
    if positions.shape.rank:
        so_far = so_far[..., None]
    return so_far * size + positions
