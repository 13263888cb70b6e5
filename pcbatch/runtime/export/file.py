"""The file of an exported program: its texts, its inputs and outputs, and its messages.

The container is that of saved runs: NumPy's npz with a checksum of all bytes, an array for each text.
"""

from __future__ import annotations

import collections
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pcbatch.errors import Span, UsageError
from pcbatch.ir.expression_parser import parse_type
from pcbatch.ir.machine import Block, FaultSite, Jump, LaneStatus, Program
from pcbatch.ir.types import StructType, Type, records
from pcbatch.ir.values import is_record_class
from pcbatch.runtime.resume import savefile
from pcbatch.version import __version__

WHAT = "exported program"
FORMAT = 1
"""The version of the file's contents. It goes up with every change of the header or of the arrays' names."""

FORM = {
    "format": int,
    "pcbatch": str,
    "name": str,
    "parameters": {str: str},
    "for_all": [str],
    "by_name": [str],
    "defaults": [str],
    "statics": {str: str},
    "inputs": [{"leaf": (savefile.count, type(None)), "dtype": str, "shape": [savefile.count], "lanes": bool}],
    "operands": savefile.count,
    "platforms": {str: savefile.count},
    "lanes": [savefile.count],
    "depths": [savefile.count],
    "results": {str: str},
    "shown": {str: str},
    "structure": (str, type(None)),
    "records": {str: str},
    "faults": [{"status": int, "message": str, "arguments": [str], "span": (list, type(None))}],
    "blocks": [{"label": str, "span": (list, type(None))}],
}
"""The fields of a header."""


@dataclass(frozen=True)
class Input:
    """An array that the program takes: a leaf of the arguments, by number, or the next of the file's own arrays.

    `lanes` says whether it has one value for each lane.
    """

    leaf: int | None
    dtype: str
    shape: tuple[int, ...]
    lanes: bool


@dataclass(frozen=True)
class Contents:
    """All that a file says.

    `parameters` are the types of arguments, those in `for_all` without a lane axis, those in `by_name` passed by name
    only, those in `defaults` with values;
    `statics` what static parameters were, as text. `texts` and `captured` go by platform; `lanes` are the least and the
    largest number of lanes that a text serves, `depths` the sizes that stacks grow through, in live calls. Of `program`
    there is what a report names.
    """

    parameters: Mapping[str, Type]
    for_all: Sequence[str]
    by_name: Sequence[str]
    inputs: Sequence[Input]
    operands: Sequence[np.ndarray]
    texts: Mapping[str, str]
    captured: Mapping[str, Sequence[np.ndarray]]
    lanes: tuple[int, int]
    depths: Sequence[int]
    program: Program
    defaults: Mapping[str, Sequence[np.ndarray]] = field(default_factory=dict)
    statics: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__


def write(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write a file, whole or not at all; OSError where it cannot be written, UsageError PCB595 for no path."""
    program = contents.program
    shown = dict.fromkeys(name for site in program.faults for name in site.arguments)
    header = {
        "format": FORMAT,
        "pcbatch": contents.version,
        "name": program.name,
        "parameters": {name: str(type_) for name, type_ in contents.parameters.items()},
        "for_all": [*contents.for_all],
        "by_name": [*contents.by_name],
        "defaults": [*contents.defaults],
        "statics": dict(contents.statics),
        "inputs": [
            {"leaf": each.leaf, "dtype": each.dtype, "shape": [*each.shape], "lanes": each.lanes}
            for each in contents.inputs
        ],
        "operands": len(contents.operands),
        "platforms": {platform: len(contents.captured[platform]) for platform in contents.texts},
        "lanes": [*contents.lanes],
        "depths": [*contents.depths],
        "results": {name: str(program.types[name]) for name in program.results},
        "shown": {name: str(program.types[name]) for name in shown},
        "structure": None if program.structure is None else str(program.structure),
        "records": _records(program),
        "faults": [
            {
                "status": int(site.status),
                "message": site.message,
                "arguments": [*site.arguments],
                "span": _listed(site.span),
            }
            for site in program.faults
        ],
        "blocks": [{"label": block.label, "span": _listed(block.span)} for block in program.blocks],
    }
    arrays = {f"operand_{number}": each for number, each in enumerate(contents.operands)}
    for name, leaves in contents.defaults.items():
        arrays |= {f"default_{name}_{number}": each for number, each in enumerate(leaves)}
    for platform, text in contents.texts.items():
        arrays[f"text_{platform}"] = np.frombuffer(text.encode(), np.uint8)
        captured = enumerate(contents.captured[platform])
        arrays |= {f"captured_{platform}_{number}": each for number, each in captured}
    savefile.write(path, header, arrays, WHAT)


def read(path: str | os.PathLike[str]) -> Contents:
    """Read the contents of a file.

    Raises OSError where it cannot be read, UsageError PCB590 for a damaged file or another one, PCB591 for one that
    another version of pcbatch has written in another form, PCB595 for what is no path.
    """
    header, arrays = savefile.read(path, WHAT)
    name = os.fspath(path)
    if header.get("format") != FORMAT:
        raise UsageError(
            "PCB591",
            f"{name} is of format {header.get('format')}, written by pcbatch {header.get('pcbatch')}; this version "
            f"reads format {FORMAT}: export the function again",
        )
    with savefile.interpreting(str(name), WHAT):
        savefile.check(header, FORM)
        return _contents(header, arrays)


def _contents(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Contents:
    known = header["records"]

    def typed(texts: Mapping[str, str]) -> dict[str, Type]:
        return {name: _with_classes(parse_type(text), known) for name, text in texts.items()}

    def numbered(prefix: str) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        while f"{prefix}_{len(found)}" in arrays:
            found.append(arrays[f"{prefix}_{len(found)}"])
        return found

    structure = None if header["structure"] is None else typed({"": header["structure"]})[""]
    assert structure is None or isinstance(structure, StructType)
    program = Program(
        header["name"],
        (),
        tuple(header["results"]),
        typed({**header["shown"], **header["results"]}),
        {},
        tuple(Block(each["label"], (), Jump(0), span=_span(each["span"])) for each in header["blocks"]),
        tuple(
            FaultSite(LaneStatus(each["status"]), each["message"], tuple(each["arguments"]), _span(each["span"]))
            for each in header["faults"]
        ),
        structure=structure,
    )
    inputs = [Input(each["leaf"], each["dtype"], tuple(each["shape"]), each["lanes"]) for each in header["inputs"]]
    least, most = header["lanes"]
    return Contents(
        typed(header["parameters"]),
        header["for_all"],
        header["by_name"],
        inputs,
        numbered("operand"),
        {each: arrays[f"text_{each}"].tobytes().decode() for each in header["platforms"]},
        {each: numbered(f"captured_{each}") for each in header["platforms"]},
        (least, most),
        header["depths"],
        program,
        {name: numbered(f"default_{name}") for name in header["defaults"]},
        header["statics"],
        header["pcbatch"],
    )


def _records(program: Program) -> dict[str, str]:
    """Return the import paths of the results' classes, by the name that types print."""
    structure = () if program.structure is None else (program.structure,)
    types = (*(program.types[name] for name in program.results), *structure)
    return {each.__name__: f"{each.__module__}:{each.__qualname__}" for type_ in types for each in records(type_)}


def _with_classes(type_: Type, known: Mapping[str, str]) -> Type:
    """`type_` with the class of each record: the user's own where that is loaded, else a named tuple of its fields."""
    if not isinstance(type_, StructType):
        return type_
    items = tuple(_with_classes(item, known) for item in type_.items)
    if type_.kind in ("tuple", "list", "dict", "None"):
        return replace(type_, items=items)
    module, _, name = known.get(type_.kind, ":").partition(":")
    class_: Any = sys.modules.get(module)  # nothing is imported for a name in a file
    for part in name.split("."):
        class_ = getattr(class_, part, None)
    if not is_record_class(class_):
        class_ = _tuples(type_.kind, type_.keys)
    return replace(type_, items=items, constructor=class_)


_tuples: Callable[[str, Sequence[str]], type] = collections.namedtuple


def _listed(span: Span | None) -> list[Any] | None:
    if span is None:
        return None
    return [span.file, span.line, span.column, span.end_line, span.end_column]


def _span(listed: list[Any] | None) -> Span | None:
    return None if listed is None else Span(*listed)
