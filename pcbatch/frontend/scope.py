"""The meaning of a function's free names, as far as the frontend must know: in a live module or a parsed file."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Protocol

from pcbatch.ir import values


@dataclass(frozen=True)
class Origin:
    """The origin of a name's value: a dotted path ("numpy.random", "builtins.abs") and whether it is a module.

    The path is "" where it is not known; for plain values it is the path of their type. `fields` are those of a class
    of records, in order, empty where they are not known; None for everything else. `definition` is a class as it is
    known: itself, or the statement that makes it, with the names around that.
    """

    path: str
    module: bool = False
    fields: tuple[str, ...] | None = None
    definition: Any = field(default=None, compare=False, repr=False)


class Scope(Protocol):
    """The names around a function."""

    def origin(self, name: str) -> Origin | None:
        """Return the meaning of `name`; None if nothing of that name is to be seen."""

    def live_class(self, path: str) -> type | None:
        """The class that a dotted path denotes now; None where it is something else, or is not to be seen."""


@dataclass(frozen=True)
class LiveScope:
    """The closure, globals and builtins of a live function, looked up when asked: names resolve at first use.

    A method that is bound to an object has `supers`, names for its `super()`, too.
    """

    function: FunctionType
    supers: frozenset[str] = frozenset()

    def origin(self, name: str) -> Origin | None:
        """See `Scope`."""
        if name in self.supers:
            return Origin("builtins.super")
        return next(map(origin_of, self.values(name)), None)

    def live_class(self, path: str) -> type | None:
        """See `Scope`; attributes are those of modules."""
        root, *steps = path.split(".")
        found = next(self.values(root), None)
        for step in steps:
            found = vars(found).get(step) if isinstance(found, ModuleType) else None
        return found if isinstance(found, type) else None

    def values(self, name: str) -> Iterator[Any]:
        """Yield the present value of `name`, if it has one."""
        cells = dict(zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True))
        if name in cells:
            with suppress(ValueError):  # the enclosing function has not assigned it yet
                yield cells[name].cell_contents
            return
        for namespace in (self.function.__globals__, vars(builtins)):
            if name in namespace:
                yield namespace[name]
                return


def origin_of(value: Any) -> Origin:
    """Return the origin of a live value."""
    if isinstance(value, ModuleType):
        return Origin(value.__name__, module=True)
    kind = type(value)
    if isinstance(value, type):
        fields = (values.field_names(value) or ()) if values.is_record_class(value) else None
        return Origin(f"{value.__module__}.{value.__qualname__}", fields=fields, definition=value)
    if callable(value) and isinstance(getattr(value, "__name__", None), str):
        owner = getattr(value, "__self__", None)
        module = getattr(value, "__module__", None)
        if module is None and owner is not None:  # a method of a hidden object, such as random.random
            module = type(owner).__module__
        return Origin(f"{module}.{value.__name__}" if module else "")
    return Origin(f"{kind.__module__}.{kind.__qualname__}")


@dataclass(frozen=True)
class StaticScope:
    """The names of a module that was parsed and not imported. After `from m import *` (`open`) every name is known."""

    names: Mapping[str, Origin]
    open: bool = False

    def origin(self, name: str) -> Origin | None:
        """See `Scope`."""
        if name in self.names:
            return self.names[name]
        if hasattr(builtins, name):
            return Origin(f"builtins.{name}")
        if name in ("__name__", "__file__", "__doc__", "__spec__", "__package__", "__loader__"):
            return Origin("builtins.str")
        return Origin("", module=True) if self.open else None

    def live_class(self, path: str) -> type | None:
        """Return None: nothing is live."""
        return None


def static_scope(module: ast.Module, name: str) -> StaticScope:
    """The names that the statements of a module assign, import or define, wherever control may go."""
    found: dict[str, Origin] = {}
    is_open = False
    for node in module_level(module):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    bound = alias.asname or alias.name.partition(".")[0]
                    found[bound] = Origin(alias.name if alias.asname else bound, module=True)
            case ast.ImportFrom(module=source, names=aliases):
                is_open |= any(alias.name == "*" for alias in aliases)
                prefix = f"{source}." if source else ""
                found |= {a.asname or a.name: Origin(prefix + a.name, module=True) for a in aliases if a.name != "*"}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found[node.name] = Origin(f"{name}.{node.name}")
            case ast.ClassDef():
                found[node.name] = Origin(f"{name}.{node.name}", fields=(), definition=node)
            case ast.Name(id=target, ctx=ast.Store()):
                found.setdefault(target, Origin(""))
            case ast.ExceptHandler(name=str(target)) | ast.MatchAs(name=str(target)) | ast.MatchStar(name=str(target)):
                found.setdefault(target, Origin(""))
    hidden = (each for each in ast.walk(module) if isinstance(each, ast.Global))
    found |= {target: Origin("") for each in hidden for target in each.names if target not in found}
    return StaticScope(found, is_open)


def module_level(node: ast.AST) -> list[ast.AST]:
    """Every node that runs when the module is imported, in source order, without bodies of functions and classes."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        found.append(child)
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            found += module_level(child)
    return found
