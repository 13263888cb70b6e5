"""Results of operations, from trying them: structures of types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pcbatch.ir.payload import Pattern
from pcbatch.ir.types import StructType, Type
from pcbatch.reading.values import Value


@dataclass(frozen=True, eq=False)
class Template:
    """The result of an operation: the types of its arrays inside of tuples, lists and dicts, and known values."""

    kind: str
    type: Type | None = None
    items: tuple[Template, ...] = ()
    keys: tuple[Any, ...] = ()
    cls: Any = None
    value: Any = None
    same: Value | None = None
    """The value that was handed in and is given back."""

    def has_parts(self) -> bool:
        """Tell whether there is anything in it that no variable can hold."""
        return self.kind == "part" or any(item.has_parts() for item in self.items)

    def leaves(self) -> Iterator[Type]:
        """The types of the arrays in it, in order."""
        if self.type is not None:
            yield self.type
        for item in self.items:
            yield from item.leaves()


def is_taken_apart(template: Template) -> bool:
    """Tell whether an assignment may take apart what is given: an array, or tuples and lists of nothing but arrays."""
    if template.type is not None:
        return True
    return template.kind in ("tuple", "list") and bool(template.items) and all(map(is_taken_apart, template.items))


def pattern_of(template: Template) -> Pattern | None:
    """The targets of such an assignment."""
    return None if template.type is not None else tuple(map(pattern_of, template.items))


def struct_of(template: Template) -> Type | None:
    """The type of a structure; None where it holds anything but arrays."""
    if template.type is not None:
        return template.type
    if template.kind == "host":
        return None
    items = [struct_of(each) for each in template.items]
    if None in items:
        return None
    kind = template.kind if template.cls is None else template.cls.__name__
    is_named = template.kind == "tuple" and template.cls is not None
    keys = template.cls._fields if is_named else template.keys
    return StructType(kind, tuple(items), tuple(keys), template.cls)  # type: ignore[arg-type]


def why_not_kept(value: Any) -> tuple[str, str, str]:
    """The code, the message and the help for an object of a library's that holds a lane's values."""
    if isinstance(value, BaseException):
        message = "an exception is made here of a lane's values, and is not raised here"
        return "PCB116", message, 'make it where it is raised: `raise ValueError(f"bad {x}")`'
    return (
        "PCB404",
        f"this gives an object of class {type(value).__name__} that holds a lane's values",
        "lanes keep numbers, arrays, and structures of them: let one function make the object and use it, decorated "
        "with `tf.function`",
    )
