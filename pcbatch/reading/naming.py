"""Names of a program: each is given out once, and taken back where what it was made for is dropped."""

from __future__ import annotations

import builtins
import keyword
from typing import Any

from pcbatch.lowering.codegen.builtins import BUILTINS
from pcbatch.reading.values import same_host

RESERVED = frozenset({"_ops", "_pcb", "_at", "PROGRAM", "complex", "slice", *BUILTINS})
"""Names with a fixed meaning in code: no variable and no value of the user's has one."""


class Names:
    """The names of variables of one function, and those by which the program's code knows values of Python's.

    `bound` has the values of Python's, by the name that code reads them by: all functions of a program have the same.
    """

    def __init__(self, bound: dict[str, Any]) -> None:
        self._hints: dict[str, str] = {}
        """The names that have been given out, each with what it was made of: nothing for a temporary."""
        self._numbers: dict[str, int] = {}
        self._given: list[tuple[str, int]] = []
        self.made: set[str] = set()
        """The names that are no user's."""
        self.bound = bound

    def fresh(self, hint: str = "", *, is_made: bool = False) -> str:
        """A name that nothing has: `hint` if it may be; without one, or where it `is_made`, it is no user's.

        Nor is it for the path to a part of an object, `todo.length`.
        """
        is_made, hint = is_made or "." in hint, hint.replace(".", "_")
        hint = hint if hint.isidentifier() else ""
        before = number = self._numbers.get(hint, 0)
        while not self._is_free(name := _numbered(hint, number)):
            number += 1
        self._numbers[hint] = number + 1
        self._hints[name] = hint
        self._given.append((name, before))
        if is_made or not hint:
            self.made.add(name)
        return name

    def hint(self, name: str) -> str:
        """Return what a name was made of: nothing for a temporary."""
        return self._hints.get(name, name)

    def _is_free(self, name: str) -> bool:
        return not (name in self._hints or name in self.bound or name in RESERVED or keyword.iskeyword(name))

    def bind(self, hint: str, value: Any) -> str:
        """The name by which code knows `value`."""
        name, number = hint, 0
        while (
            (name in self.bound and not same_host(self.bound[name], value))
            or name in self._hints
            or (name in RESERVED and getattr(builtins, name, None) is not value)
        ):
            number += 1
            name = f"{hint}_{number}"
        self.bound[name] = value
        return name

    def mark(self) -> int:
        """Return the number of names given out."""
        return len(self._given)

    def back_to(self, mark: int) -> None:
        """Take back the names that were given out since `mark`."""
        for name, before in reversed(self._given[mark:]):
            self._numbers[self._hints.pop(name)] = before
            self.made.discard(name)
        del self._given[mark:]


def hint_of(name: str) -> str:
    """The name that a user knows a variable by: those that the reader has for itself have a blank in theirs."""
    return name.partition(" ")[0]


def hint_of_text(text: str) -> str:
    """A name for what a user writes as this text."""
    hint = "_".join("".join(c if c.isalnum() or c == "_" else " " for c in text).split()) or "operand"
    return hint if hint.isidentifier() else f"_{hint}"


def _numbered(hint: str, number: int) -> str:
    """The name number `number` of those that are made of a hint."""
    if not hint:
        return f"t{number}"
    return f"{hint}_{number}" if number else hint
