"""Arguments of the command line: JSON, of which records are made where a parameter is annotated with their class."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pcbatch.errors import PcbatchError, UsageError
from pcbatch.ir.values import field_names, is_record_class

# -- command arguments -------------------------------------------------------------------------------------------------


def as_json(text: str, what: str) -> Any:
    """Parse a JSON text; UsageError PCB521 if it is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError("PCB521", f"{what} is not JSON: {error.msg} at column {error.colno}: {text!r}") from None


def listed(text: str) -> list[Any]:
    """Parse the arguments of `--args`; UsageError PCB521 unless they are a list."""
    batch = as_json(text, "--args")
    if not isinstance(batch, list):
        raise UsageError("PCB521", "--args must be a JSON list with one entry for each argument")
    return batch


def as_arguments(function: Any, batch: Sequence[Any]) -> list[Any]:
    """The arguments that the batched function `function` takes: a dataclass's object for a JSON object, and so on.

    Which class, the annotations of parameters and fields say: `Point`, `Point | None`, `list[Point]`, .. UsageError
    PCB521 where an object does not have its fields.
    """
    names, hints = list(function.__signature__.parameters), _hints(function.function)
    given = [*zip(names, batch, strict=False)]
    made = [_made(value, hints.get(name), f"argument {place}") for place, (name, value) in enumerate(given, 1)]
    return [*made, *batch[len(made) :]]


def _hints(owner: Any) -> Mapping[str, Any]:
    """The annotations of a function or class, names in texts looked up; without those that are not found."""
    try:
        return typing.get_type_hints(owner)
    except Exception:  # annotations are not evaluated otherwise, and may be anything
        found, around = {}, vars(sys.modules[owner.__module__])
        for name, hint in inspect.get_annotations(owner).items():
            with contextlib.suppress(Exception):
                found[name] = eval(hint, around) if isinstance(hint, str) else hint
        return found


def _made(value: Any, hint: Any, what: str) -> Any:
    """The value that the annotation `hint` makes of a JSON value."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if is_record_class(origin):
        return _made(value, origin, what)
    if origin in (typing.Union, types.UnionType):
        return _of_union(value, inner, what)
    if origin in (list, Sequence) and isinstance(value, list):
        return [_made(each, inner[0], f"{what}[{place}]") for place, each in enumerate(value)]
    if origin is tuple and isinstance(value, list) and any(map(_has_record, inner)):
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return tuple(
            _made(each, kind, f"{what}[{n}]") for n, (each, kind) in enumerate(zip(value, kinds, strict=False))
        )
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: _made(each, inner[1], f"{what}[{key!r}]") for key, each in value.items()}
    if is_record_class(hint) and field_names(hint) is not None and isinstance(value, dict):
        return _record(value, hint, what)
    return value


def _of_union(value: Any, kinds: Sequence[Any], what: str) -> Any:
    """The value as the first of several annotations that it fits has it."""
    faults = []
    for kind in (kind for kind in kinds if _has_record(kind)):
        try:
            found = _made(value, kind, what)
        except UsageError as error:
            faults.append(error)
            continue
        if found is not value:
            return found
    if faults:
        raise faults[0]
    return value


def _has_record(hint: Any) -> bool:
    """Return whether a class of records stands in an annotation."""
    return (
        is_record_class(hint)
        or is_record_class(typing.get_origin(hint))
        or any(map(_has_record, typing.get_args(hint)))
    )


def _record(value: Mapping[str, Any], cls: Any, what: str) -> Any:
    """An object of a dataclass or a named tuple, made as its author would: by a call with its fields."""
    known = (
        [each.name for each in dataclasses.fields(cls) if each.init] if dataclasses.is_dataclass(cls) else cls._fields
    )
    unknown = [name for name in value if name not in known]
    if unknown:
        raise UsageError("PCB521", f"{what}: {cls.__name__} has no field {unknown[0]!r}; it has {', '.join(known)}")
    hints = _hints(cls)
    fields = {name: _made(each, hints.get(name), f"{what}.{name}") for name, each in value.items()}
    try:
        return cls(**fields)
    except PcbatchError:
        raise
    except Exception as error:
        raise UsageError(
            "PCB521", f"{what}: no {cls.__name__} can be made of {json.dumps(value)}: {type(error).__name__}: {error}"
        ) from None


# -- lessons -----------------------------------------------------------------------------------------------------------
# Sections of docs/errors.md, as `pcbatch help PCB101` prints them.

CODE = re.compile(r"(?:PCB)?(\d{3})", re.IGNORECASE)


def page() -> Path:
    """The page: in the package, where that is installed, else beside it."""
    package = Path(__file__).parents[1]
    places = package / "errors.md", package.parent / "docs" / "errors.md"
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UsageError("PCB578", "this installation has no page of errors")
    return found


def lesson(code: str) -> str:
    """The page's section on a code, `PCB101`: why, a program that fails, one that works; UsageError PCB578."""
    match = CODE.fullmatch(code)
    sections = dict(_sections(page().read_text(encoding="utf-8")))
    wanted = f"PCB{match[1]}" if match is not None else code
    if wanted not in sections:
        near = difflib.get_close_matches(wanted, sections, n=3, cutoff=0.8)
        meant = f"; near it are {', '.join(sorted(near))}" if near else ""
        raise UsageError("PCB578", f"there is no code {wanted!r}{meant}; codes are three digits, as in PCB101")
    return sections[wanted]


def _sections(text: str) -> list[tuple[str, str]]:
    """The code of each section and its text, blocks of code indented in place of their fences."""
    found = []
    for each in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        body = re.sub(r"^```\w+\n(.*?)^```$", _indented, each, flags=re.MULTILINE | re.DOTALL)
        found.append((each.partition(":")[0], body.rstrip() + "\n"))
    return found


def _indented(block: re.Match[str]) -> str:
    return re.sub(r"^(?=.)", "    ", block[1], flags=re.MULTILINE).rstrip("\n")
