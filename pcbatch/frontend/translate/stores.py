"""Where an element store goes: indices as the `Store` op has them, and the element that `a[i] += v` reads.

A slice becomes a vector of positions, `__axis__(a, 0)[i:i + 3]`: a slice of the numbers along that axis, so that it is
checked as any other slice. What is stored then costs the slice, not the array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gast

from pcbatch.frontend.source.nodes import call, constant, load
from pcbatch.frontend.translate.expressions import Expressions

AXIS = "__axis__"
"""The pseudo-builtin `__axis__(a, n)`: the positions `[0, 1, ..]` along axis `n` of the array `a`."""
ELEMENTS = "__elements__"
"""The pseudo-builtin `__elements__(a, i, ..)`: `a` at every combination of positions."""


def store_indices(target: Any) -> list[Any]:
    """The expressions of the indices of `target`, `a[i, j:k]`, one for each leading axis that matters.

    What is before the brackets may be read again. The whole array, `a[()]` and `a[...]`, has no index.
    """
    if _is_ellipsis(target.slice):
        return []
    indices = list(target.slice.elts) if isinstance(target.slice, gast.Tuple) else [target.slice]
    while len(indices) > 1 and _takes_all(indices[-1]):  # `a[i, :] = row` is `a[i] = row`
        indices.pop()
    return [_positions(target, axis, index) for axis, index in enumerate(indices)]


def stored_element(target: Any, loads: Sequence[Any]) -> Any:
    """What `target` reads before a store, `loads` being its indices, read again."""
    array = _loaded(target.value)
    indices = target.slice.elts if isinstance(target.slice, gast.Tuple) else [target.slice]
    if any(map(_is_span, indices[: len(loads)])):
        return call(ELEMENTS, array, *loads)
    index = loads[0] if len(loads) == 1 else gast.copy_location(gast.Tuple(loads, gast.Load()), target.slice)
    return gast.copy_location(gast.Subscript(array, index, gast.Load()), target)


def are_rows(target: Any, value: Any) -> bool:
    """Whether `target` is `a[[i, j]]`, and `value` has visibly as many elements: `a[[j, i]]`, or `x, y`."""
    match target, value:
        case gast.Subscript(value=gast.Name(), slice=gast.List(elts=indices)), gast.Subscript(
            slice=gast.List(elts=parts)
        ):
            pass
        case gast.Subscript(value=gast.Name(), slice=gast.List(elts=indices)), gast.Tuple(elts=parts) | gast.List(
            elts=parts
        ):
            pass
        case _:
            return False
    return len(indices) == len(parts) and not any(isinstance(each, gast.Starred) for each in (*indices, *parts))


def row_by_row(code: Expressions, target: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """Emit the value and the indices of such an assignment; gives those of its parts, targets and values."""
    names = [code.temporary() for _ in (value, *target.slice.elts)]
    for name, each in zip(names, (value, *target.slice.elts), strict=True):
        code.into(each, name, code.span(each))
    for place, name in enumerate(names[1:]):
        row = gast.Subscript(_loaded(target.value), load(name, target), gast.Store())
        part = gast.Subscript(load(names[0], value), gast.copy_location(constant(place), value), gast.Load())
        yield gast.copy_location(row, target), gast.copy_location(part, value)


def _positions(target: Any, axis: int, index: Any) -> Any:
    if not _is_span(index):
        return index
    positions = call(AXIS, _loaded(target.value), constant(axis))
    return gast.copy_location(gast.Subscript(positions, index, gast.Load()), target)


def _loaded(part: Any) -> Any:
    return load(part.id, part) if isinstance(part, gast.Name) else part


def _is_span(index: Any) -> bool:
    return isinstance(index, gast.Slice)


def _is_ellipsis(index: Any) -> bool:
    return isinstance(index, gast.Constant) and index.value is Ellipsis


def _takes_all(index: Any) -> bool:
    return isinstance(index, gast.Slice) and index.lower is index.upper is index.step is None
