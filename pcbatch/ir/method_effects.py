"""What a method of the user's does with the parts of its object, as type inference tells it to the frontend.

A part is named by a path: `(".rows", 0)` leads from `d` to `d.rows[0]`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any, Literal

Path = tuple[int | str, ...]
ANY = "*"
"""The path step of an index that is not known."""
_BEGIN = "!"
"""Begins the text of effects; no method and no attribute has such a name."""
VIEWS = frozenset({"diagonal", "ravel", "reshape", "squeeze", "swapaxes", "transpose"})
"""The methods of NumPy's arrays whose results share elements with their array, or may."""
_VIEW = "?"
"""Begins the text that says that one of these is an array's."""


Kind = Literal["changes", "gives", "gave", "moves", "leaves", "stays"]


@dataclass(frozen=True)
class Effect:
    """That a method `changes` the part at `path` of its object in place, or where that is then, at `place`.

    Its value has there what is at `path` after the call (`gives`) or was there before it (`gave`). What was at `place`
    of the object is at `path` after it (`moves`). What was at `path` is not there any more (`leaves`), unless another
    call at the same place of the program leaves it there (`stays`).
    """

    kind: Kind
    path: Path
    place: Path = ()


def text_of_effects(effects: Iterable[Effect]) -> str:
    """Several effects as a text; see `effects_in`."""
    return _BEGIN + repr(sorted((astuple(each) for each in effects), key=repr))


def is_of_effects(text: str) -> bool:
    """Whether a text says effects, be it none, and not the name of a method."""
    return text.startswith(_BEGIN)


def effects_in(text: str) -> list[Effect]:
    """The effects that a text says."""
    return [Effect(*each) for each in ast.literal_eval(text.removeprefix(_BEGIN))]


def steps_to(key: Any) -> Path:
    """The steps to the entry at `key` of a list or a dict: what the frontend makes of such an index that it reads."""
    match key:
        case str():
            return (f"[{key!r}]",)
        case tuple():
            return tuple(step for each in key for step in steps_to(each))
        case int() if key >= 0 and not isinstance(key, bool):
            return (key,)
    return (ANY,)


def text_of_view(method: str) -> str:
    """That the `method`, one of `VIEWS`, is one of an array, not of an object of the user's, as a text."""
    return _VIEW + method


def view_in(text: str) -> str:
    """The method that a text says this of; "" where it says something else."""
    return text.removeprefix(_VIEW) if text.startswith(_VIEW) else ""
