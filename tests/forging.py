"""Saved files that say anything at all, each with the checksum that fits; each is refused by a code, or a run."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Iterator
from typing import Any

from pcbatch import UsageError
from pcbatch.runtime.resume import savefile

NESTED: Any = []
for _ in range(300):
    NESTED = [NESTED]

NONSENSE: list[Any] = [
    *[None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 0.5, -1e308, float("nan"), float("inf")],
    *["", "x", "\0", "\ud800", "ä" * 1000, "__main__:", ":", "os:system", "builtins:int", "subprocess:Popen"],
    *["no.such.module:name", ".:x", "collections:OrderedDict", "tensorflow:keras", "sys:modules", "numpy:ndarray"],
    *["int32[]", "float99[2]", "object[]", "int32[-1]", "int32[999999999999]", "float32[2, 1000000000000]"],
    *["(" * 900, "[" * 5000, "Foo(x=int32[])", "earliest", "float64"],
    *[[], [[]], [None], [-1], [2**62], ["x"], [1, 2, 3], {}, {"": None}],
    *[{"shape": [-1]}, {"shape": [2**40, 2**40]}, {"shape": None}, {"kind": "dict", "names": ["a"], "parts": []}],
    {"kind": "subprocess:Popen", "names": ["a"], "parts": [{"shape": []}]},
    {"kind": "list", "names": ["0"], "parts": [{"kind": 7}]},
    *[["Interval", 1.0, 0.0], ["Positive", 1], ["Ordered"], ["Popen"], NESTED],
]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a header."""
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*place, key))


def some(forged: Iterator[Any], count: int | None) -> list[Any]:
    """So many of them, drawn at random, or all."""
    found = list(forged)
    return found if count is None else random.Random(7).sample(found, count)


def forged_headers(header: dict[str, Any]) -> Iterator[Any]:
    """Headers that are wrong in one place: something else there, nothing there, or something more."""
    for place in places(header):
        for value in [*NONSENSE, "less", "more"]:
            found: Any = {"": copy.deepcopy(header)}
            *way, last = ("", *place)
            at = found
            for key in way:
                at = at[key]
            if value == "less":
                del at[last]
            elif value == "more" and isinstance(at[last], dict):
                at[last]["more"] = 1
            elif value == "more" and isinstance(at[last], list):
                at[last].append(copy.deepcopy(at[last][-1]) if at[last] else 1)
            else:
                at[last] = value
            yield found.get("", None)


def forged_bytes(whole: bytes, count: int, seed: int) -> Iterator[bytes]:
    """A saved file with some of its bytes changed, cut out or doubled, and a checksum that fits."""
    rng = random.Random(seed)
    body, end = whole[: -savefile.DIGEST - len(savefile.MAGIC)], savefile.MAGIC
    for _ in range(count):
        found = bytearray(body)
        for _ in range(rng.choice([1, 1, 2, 8])):
            first = rng.randrange(len(found))
            part = found[first : first + rng.choice([1, 2, 4, 8])]
            new = [bytes(len(part)), b"\xff" * len(part), rng.randbytes(len(part)), b"", 2 * part]
            found[first : first + len(part)] = rng.choice(new)
        yield sealed(bytes(found) + end)


def sealed(content: bytes) -> bytes:
    """With its checksum behind it."""
    return content + hashlib.sha256(content).hexdigest().encode()


def code_of(attempt: Any) -> str | None:
    """The code that a call is refused by; None if it is not. Everything else is a failure."""
    try:
        attempt()
    except UsageError as error:
        return str(error)[:6]
    return None


def written(path: Any, header: Any, arrays: Any) -> None:
    """A file with this header, whatever it is."""
    text = json.dumps(header)
    savefile.write(path, json.loads(text), arrays)
