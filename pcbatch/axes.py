"""`in_axes` of structured arguments: which leaves of an argument have a lane axis, by a tree that is a prefix of it.

As in JAX: 0 or None stands for everything below it; a tuple, list, dict, named tuple or dataclass goes on inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pcbatch.errors import UsageError
from pcbatch.ir import values
from pcbatch.ir.types import StructType, Type


def check_axes(axes: Any, path: str) -> None:
    """UsageError PCB502 for a tree in which something is neither 0 nor None."""
    parts = _parts(axes)
    if parts is not None:
        for key, part in parts.items():
            check_axes(part, path + _step(key, record=_is_record(axes)))
    elif axes is not None and (isinstance(axes, bool) or axes != 0):
        raise UsageError("PCB502", f"in_axes of {path!r} must be 0 or None, not {axes!r}")


def leaf_axes(axes: Any, type_: Type, path: str) -> Iterator[tuple[str, int | None]]:
    """`(path, 0 or None)` for each leaf of an argument of `type_`, left to right.

    UsageError PCB516 where `axes` goes on inside something that has no such parts.
    """
    parts = _parts(axes)
    if not isinstance(type_, StructType):
        if parts is not None:
            raise UsageError("PCB516", f"in_axes of {path!r} is {axes!r}, but the argument is one array there")
        yield path, axes
        return
    record = bool(type_.keys) and type_.kind != "dict"
    keys: tuple[Any, ...] = type_.keys or tuple(range(len(type_.items)))
    if parts is not None and (set(parts) != set(keys) or _is_foreign(axes, type_)):
        raise UsageError("PCB516", f"in_axes of {path!r} is {axes!r}, which does not fit the argument: {type_}")
    for key, item in zip(keys, type_.items, strict=True):
        yield from leaf_axes(axes if parts is None else parts[key], item, path + _step(key, record))


def _parts(axes: Any) -> dict[Any, Any] | None:
    """The parts of a tree by key, field or position; None for a leaf of it."""
    match axes:
        case Mapping():
            return dict(axes)
        case list():
            return dict(enumerate(axes))
        case tuple() if not hasattr(axes, "_fields"):
            return dict(enumerate(axes))
    return values.fields_of(axes)


def _is_record(axes: Any) -> bool:
    return values.fields_of(axes) is not None


def _is_foreign(axes: Any, type_: StructType) -> bool:
    """Return whether `axes` is of another class than the argument; a dict by field serves for every record."""
    return _is_record(axes) and type(axes).__name__ != type_.kind


def _step(key: Any, record: bool) -> str:
    return f".{key}" if record else f"[{key!r}]"
