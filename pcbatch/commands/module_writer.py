"""The module that `pcbatch compile -o` writes: the user's module with its batched functions replaced by generated code.

The compiled function stands where the entry stood; the other batched functions of the file live on inside its program
only.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pcbatch.errors import UsageError
from pcbatch.frontend.module import read_module
from pcbatch.function.batched import Batched
from pcbatch.function.pipeline import Pipeline
from pcbatch.ir.types import Type, leaves, records
from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.lowering.codegen.emit import is_reserved
from pcbatch.threads import parse
from pcbatch.version import __version__

LITERALS = (bool, int, float, str, bytes, type(None))


def compiled_module(path: Path, batched: Batched[..., Any], batch: Sequence[Any]) -> str:
    """The text of the module at `path` with `batched` compiled for arguments like `batch`."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    module = read_module(str(path))
    name = next(each for each, source in module.functions.items() if source.name == batched.function_source.name)
    if batched.static_argnames:
        raise UsageError(
            "PCB517",
            f"`{name}` has static parameters, {', '.join(batched.static_argnames)}, which a module compiled for one "
            f"value of each cannot take; compile a function that calls it with literals",
        )
    pipeline = batched.pipeline(*batch)
    operands = {name: places[0] for name, places in pipeline.read.places.items() if places}
    _refuse_defaults(operands)
    clashing = sorted(filter(is_reserved, batched.function.__globals__))
    if clashing:
        raise UsageError(
            "PCB529", f"the module binds `{clashing[0]}`, which generated code needs; give it another name"
        )
    classes = {record.__name__: record for record in _classes(pipeline)}
    imports = _imports({**pipeline.emitted.bindings, **classes}, batched.function.__globals__)
    replacement = [
        *imports,
        *pipeline.emitted.source.splitlines(),
        "",
        *_constructor(name, batched, pipeline),
    ]
    for statement in reversed(parse(text).body):
        bound = _bound_name(statement)
        if bound in module.functions or bound in {source.name for source in module.functions.values()}:
            first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
            lines[first - 1 : statement.end_lineno] = replacement if bound == name else []
    head = f"# Written by pcbatch {__version__} from {path.name}, compiled for {name}{described(pipeline)}."
    return "\n".join([head, *lines]) + "\n"


def _bound_name(statement: ast.stmt) -> str | None:
    """The name that a top-level function or a simple assignment binds."""
    match statement:
        case ast.FunctionDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call()):
            return name
    return None


def described(pipeline: Pipeline) -> str:
    """The types that a program is compiled for, by parameter: `(x: float32[3], n: int32)`."""
    return "(" + ", ".join(f"{name}: {type_}" for name, type_ in _types(pipeline).items()) + ")"


def _types(pipeline: Pipeline) -> dict[str, Type]:
    """The types of the parameters that the written function has: not those whose values are sizes."""
    names = pipeline.read.reading.parameters
    return {user: type_ for user, type_ in pipeline.read.types.items() if names[user] or not [*leaves(type_)]}


def _constructor(name: str, batched: Batched[..., Any], pipeline: Pipeline) -> list[str]:
    """The statement that makes the compiled function of the table, under the options of the batched one."""
    operands = {name: places[0] for name, places in pipeline.read.places.items() if places}
    readers = ", ".join(f"{name!r}: lambda: {place.text}" for name, place in operands.items())
    types_ = _types(pipeline)
    names = tuple(pipeline.optimized.entry.parameters)
    known = ", ".join(
        [
            *(record.__name__ for record in _classes(pipeline)),
            *(f"{user}={str(type_)!r}" for user, type_ in types_.items()),
        ]
    )
    options = "".join(f", {key}={value!r}" for key, value in batched.changed_options().items())
    return [
        "from pcbatch.function.precompiled import Precompiled as _Precompiled",
        "",
        f"{name} = _Precompiled(PROGRAM, _pcb.types({known}), {names!r}, {{{readers}}}{options})",
    ]


def _classes(pipeline: Pipeline) -> list[type]:
    """The classes of the named tuples and objects among the arguments."""
    return [*dict.fromkeys(record for type_ in _types(pipeline).values() for record in records(type_))]


def _imports(bindings: Any, globals_: dict[str, Any]) -> list[str]:
    """Return statements that bind the names of generated code unless the user's module binds them alike."""
    statements = []
    for name, value in bindings.items():
        if name in globals_ and globals_[name] is value:
            continue
        home, attribute = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if isinstance(value, types.ModuleType):
            statements.append(f"import {value.__name__} as {name}")
        elif _is_literal(value):
            statements.append(f"{name} = {value!r}")
        elif home and attribute.isidentifier():
            if home != "builtins":
                statements.append(f"from {home} import {attribute} as {name}")
        else:
            raise UsageError(
                "PCB528",
                f"`{name}`, captured from another file or a closure, is {type(value).__name__}, which no module text "
                f"can hold; make it a global of the module, or pass it as an argument",
            )
    return statements


def _refuse_defaults(operands: Mapping[str, Place]) -> None:
    """Arrays that are defaults live in function objects, of which the written module has none."""
    if any(place.kind == "default" for place in operands.values()):
        raise UsageError(
            "PCB509",
            "a call of a batched function leaves out an argument whose default is an array, which no module text can "
            "hold; pass the argument",
        )


def _is_literal(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_literal, value))
    return isinstance(value, LITERALS)
