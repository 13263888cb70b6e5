"""The form of a header in JSON, checked before anything of it is believed.

```
form ::= type | function | [form] | {str: form} | {"name": form, ..} | (form, ..)
```

A type stands for its values (an int is no bool), a function for what it gives True for, a list for lists of any length,
`{str: form}` for objects with any names, one with names of its own for objects with exactly these, a tuple for any one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LARGEST = 2**62
"""Numbers are counted in int64, and added up."""


def count(value: Any) -> bool:
    """Return whether a value is a number of things."""
    return type(value) is int and 0 <= value < LARGEST


def check(value: Any, form: Any, place: str = "the header") -> None:
    """ValueError, with the place, where the value has not this form."""
    if not _fits(value, form, place):
        raise ValueError(f"{place} is {value!r:.60}")


def _fits(value: Any, form: Any, place: str) -> bool:
    match form:
        case type():
            return form is object or type(value) is form
        case tuple():
            return any(_fits(value, each, place) for each in form)
        case [inner]:
            if type(value) is list:
                for number, each in enumerate(value):
                    check(each, inner, f"{place}[{number}]")
            return type(value) is list
        case dict() if type(value) is not dict:
            return False
        case dict() if str in form:
            for name, each in value.items():
                check(each, form[str], f"{place}[{name!r}]")
            return True
        case dict():
            if value.keys() != form.keys():
                names = ", ".join(sorted(map(repr, value.keys() ^ form.keys())))
                raise ValueError(f"{place} lacks or should not have {names:.100}")
            for name, each in value.items():
                check(each, form[name], f"{place}[{name!r}]")
            return True
    is_right: Callable[[Any], bool] = form
    return is_right(value)
