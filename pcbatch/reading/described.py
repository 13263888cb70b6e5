"""Values in the words of messages."""

from __future__ import annotations

from pcbatch.reading.in_python import CLASSES
from pcbatch.reading.state import Cell
from pcbatch.reading.values import (
    Choice,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Optional,
    Part,
    Range,
    Ref,
    Tuple,
    Value,
    View,
    is_number,
)


def described(value: Value, cell: Cell | None) -> str:
    """Return what a value is, which refers to `cell`."""
    match value:
        case Lane(_, type_):
            return f"a value of a lane ({type_})"
        case Host(host) if is_number(host) or isinstance(host, str) or host is None:
            return f"`{host!r}`"
        case Host(host) if callable(host) and hasattr(host, "__name__"):
            return f"{'the class' if isinstance(host, type) else 'the function'} {host.__name__}"
        case Host(host):
            return a(type(host).__name__)
        case Ref() if cell is not None:
            return a(CLASSES.get(cell.cls, cell.cls).__name__ if cell.cls is not None else cell.kind)
        case Tuple(items, cls):
            return f"a tuple of {len(items)}" if cls is None else a(cls.__name__)
        case Function(name):
            return f"the function {name}"
        case Range():
            return "a range"
        case Choice():
            return "a word that differs by lane"
        case Generator():
            return "a generator"
        case Lazy("ragged" | "masked" | "filtered"):
            return "a part of an array whose length differs by lane"
        case Lazy(kind):
            return f"`{kind}(..)`"
        case Part() if value.is_function:
            return "a function that an operation has made"
        case View() | Part():
            return "an array"
        case OneOf():
            return "one of several objects"
        case Optional():
            return "a value that is `None` in some lanes"
    return "a method"


def a(name: str) -> str:
    """A name with its article."""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
