"""Calls of objects, `o(x)`: which of a statement are meant, as type inference tells it to the frontend.

An object of the user's is called by its method: `o(x)` is `o.__call__(x)`, once it is known that it is one. Which call
is meant, and whose method it is, is said by the path that is called and the class: `t.a[]()module.Opt` for
`t.a[i](x)`, `()module.Opt` for what is no path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CALL = "__call__"
_END = "()"


def text_of_call(called: Any) -> str:
    """The text for a call of `called`, a node of Python's tree or of gast's, without the class."""
    steps: list[str] = []
    while type(called).__name__ in ("Attribute", "Subscript"):
        steps.insert(0, f".{called.attr}" if type(called).__name__ == "Attribute" else "[]")
        called = called.value
    root = called.id if type(called).__name__ == "Name" else ""
    return f"{root}{''.join(steps)}{_END}"


def name_of_class(cls: type) -> str:
    """How such a text says a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def is_of_call(text: str) -> bool:
    """Whether a text says a call: not effects, nor the name of a method or of an attribute."""
    return _END in text and not text.startswith((".", "!"))


def parts_of_call(text: str) -> tuple[str, str, str]:
    """The name that the called path begins with, "" where it is none, what is behind that, and the class."""
    path, _, owner = text.partition(_END)
    end = next((at for at, letter in enumerate(path) if letter in ".["), len(path))
    return path[:end], path[end:], owner


def in_users_words(text: str, users: Mapping[str, str]) -> str:
    """The text with the user's name of the variable."""
    root, steps, owner = parts_of_call(text)
    return f"{users.get(root, root)}{steps}{_END}{owner}"
