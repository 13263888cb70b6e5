"""Text of several lines that prompts and notebooks show as it is."""

from __future__ import annotations

from typing import Any


class Text(str):
    r"""A string that displays as text, not quoted; whatever is made of it, and a pickle, is a plain string.

    >>> Text("function f(x)\nb0:\n")
    function f(x)
    b0:
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self).rstrip("\n")

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)

    def __copy__(self) -> str:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> str:
        return self
