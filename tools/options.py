"""`python -m tools.options`: write docs/options.md, the table of all options, from the code that defines them."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import pcbatch
from pcbatch.options import Options, OptionValues

PAGE = Path(__file__).parent.parent / "docs" / "options.md"
HEAD = """# Options

`@pcbatch.autobatch(form="native")` gives options to a function, and `f.options(form="native")` makes the same function
with other options. Both check them: an unknown option is refused with PCB501, a wrong value with PCB504.
[`autobatch`](reference/autobatch.md) describes each in full.

This table is drawn from the code.

| option | default | values | meaning |
|---|---|---|---|
"""
SENTENCE = re.compile(r".+?\.(?= [A-Z0-9\"]|$)")


def meanings() -> dict[str, str]:
    """The first sentence on each option in the docstring of `autobatch`."""
    text = inspect.getdoc(pcbatch.autobatch) or ""
    body = text.split("Arguments:\n")[1].split("\nReturns:")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", body, re.MULTILINE)
    return {name: match[0] for name, said in found if (match := SENTENCE.match(" ".join(said.split())))}


def values(annotation: object) -> str:
    """The values of an option, from its type."""
    options = get_args(annotation)
    if not options:
        return {bool: "True, False", int: "an int", str: "a text"}.get(annotation, "a tree of 0 and None")  # type: ignore[call-overload]
    shown: list[str] = []
    for each in options:
        if each is type(None):
            shown.append("None")
        elif each is bool:
            shown.append("True, False")
        elif isinstance(each, str):
            shown.append(f'"{each}"')
        elif get_args(each) and isinstance(get_args(each)[0], str):
            shown += [f'"{one}"' for one in get_args(each)]
        elif each is int:
            shown.append("an int")
        else:
            shown.append(
                "a text" if each is str else "texts" if str in get_args(each) and "tuple" in repr(each) else "a path"
            )
    return ", ".join(dict.fromkeys(shown))


def page() -> str:
    """The page."""
    types, meaning = get_type_hints(OptionValues), meanings()
    default = {field.name: field.default for field in fields(Options)}
    rows = []
    for name in (name for name in meaning if name in default):
        shown = f'"{default[name]}"' if isinstance(default[name], str) else repr(default[name])
        rows.append(f"| `{name}` | `{shown}` | {values(types[name])} | {meaning[name]} |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
