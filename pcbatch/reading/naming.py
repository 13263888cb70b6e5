"""Names of a program: each is given out once, and taken back where what it was made for is dropped."""

from __future__ import annotations

import keyword
from typing import Any

from pcbatch.reading.values import same_host

RESERVED = frozenset({"_ops", "_pcb", "_at", "PROGRAM"})


class Names:
    """The names of variables of one function, and those by which the program's code knows values of Python's.

    `bound` has the values of Python's, by the name that code reads them by: all functions of a program have the same.
    """

    def __init__(self, bound: dict[str, Any]) -> None:
        self._taken: dict[str, int] = {}
        self._given: list[str] = []
        self.bound = bound

    def fresh(self, hint: str) -> str:
        """A name that nothing has, `hint` if it may be."""
        name, number = hint, self._taken.get(hint, 0)
        while name in self._taken or name in self.bound or name in RESERVED or keyword.iskeyword(name):
            number += 1
            name = f"{hint}_{number}"
        self._taken[name] = 0
        self._taken[hint] = number
        self._given.append(name)
        return name

    def bind(self, hint: str, value: Any) -> str:
        """The name by which code knows `value`."""
        name, number = hint, 0
        while (name in self.bound and not same_host(self.bound[name], value)) or name in self._taken or name in RESERVED:
            number += 1
            name = f"{hint}_{number}"
        self.bound[name] = value
        return name

    def mark(self) -> int:
        """How many names have been given out."""
        return len(self._given)

    def back_to(self, mark: int) -> None:
        """Take back the names that were given out since `mark`."""
        for name in reversed(self._given[mark:]):
            del self._taken[name]
        del self._given[mark:]
