"""Classes of a module that has not run: made of the functions and the fields that stand in them."""

from __future__ import annotations

import ast
import collections
import dataclasses
import enum
import typing
from types import CellType
from typing import Any, Protocol


class MembersError(Exception):
    """A class is more than its text says."""


class Module(Protocol):
    """The questions of a class' body to its module."""

    codes: dict[tuple[str, int], Any]

    def value(self, node: ast.expr, name: str) -> Any:
        """Return what an expression gives."""

    def function(self, node: ast.FunctionDef, qualname: str, cell: CellType | None = None) -> Any:
        """Return what a definition makes."""


class ClassBody:
    """The statements of a class: `members` are what it has, `fields` those that are annotated."""

    def __init__(self, module: Module, node: ast.ClassDef):
        self.module, self.node = module, node
        self.cell = CellType()
        self.fields: dict[str, Any] = {}
        self.members: dict[str, Any] = {}
        self.is_known = not node.keywords
        for statement in node.body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        owner = self.node.name
        match node:
            case ast.FunctionDef(name=name) if [ast.unparse(each) for each in node.decorator_list] == [
                f"{name}.setter"
            ]:
                self._setter(node)
            case ast.FunctionDef(name=name):
                self.members[name] = self.module.function(node, f"{owner}.{name}", self.cell)
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                if not ast.unparse(node.annotation).startswith(("ClassVar", "typing.ClassVar")):
                    self.fields[name] = Any
                if value is not None:
                    self.members[name] = self.module.value(value, f"{owner}.{name}")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.members[name] = self.module.value(value, f"{owner}.{name}")
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                self.is_known = False

    def _setter(self, node: ast.FunctionDef) -> None:
        known = self.members.get(node.name)
        if not isinstance(known, property):
            self.is_known = False
            return
        code = self.module.codes[node.name, node.decorator_list[0].lineno]
        plain = ast.FunctionDef(**{**vars(node), "decorator_list": []})
        self.module.codes[node.name, node.lineno] = code
        self.members[node.name] = known.setter(self.module.function(plain, f"{self.node.name}.{node.name}", self.cell))

    def made(self) -> Any:
        """The class; MembersError where its text does not say what it is."""
        self.cell.cell_contents = object
        bases = tuple(self.module.value(each, "") for each in self.node.bases)
        if not self.is_known or not all(map(_is_plain, bases)):
            raise MembersError
        try:
            found = self._decorated(self._class(bases))
        except (TypeError, ValueError, AttributeError):  # for Python to say when it runs
            raise MembersError from None
        self.cell.cell_contents = found
        return found

    def _class(self, bases: tuple[Any, ...]) -> Any:
        name = self.node.name
        own = {"__module__": f"<{name}>", "__qualname__": name}
        if typing.NamedTuple in bases:
            fields = [*self.fields]
            defaults = [self.members[each] for each in fields if each in self.members]
            base: Any = collections.namedtuple(name, fields, defaults=defaults)  # type: ignore[misc]
            rest = {key: value for key, value in self.members.items() if key not in fields}
            return type(name, (base,), {"__slots__": (), **own, **rest})
        kind: Any = type(bases[0]) if bases else type
        body = kind.__prepare__(name, bases)
        for key, value in {**own, **self.members, "__annotations__": self.fields}.items():
            body[key] = value
        return kind(name, bases, body)

    def _decorated(self, found: Any) -> Any:
        for each in reversed(self.node.decorator_list):
            call = each if isinstance(each, ast.Call) else None
            if self.module.value(each if call is None else call.func, "") is not dataclasses.dataclass:
                raise MembersError
            options = {} if call is None else {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
            found = dataclasses.dataclass(**options)(found)
        return found


def _is_plain(base: Any) -> bool:
    """Tell whether a class with this base is made by doing nothing else: no code of the user's runs then."""
    if base is typing.NamedTuple:
        return True
    if not isinstance(base, type) or not (type(base) is type or issubclass(base, enum.Enum)):
        return False
    return issubclass(base, enum.Enum) or not any("__init_subclass__" in vars(each) for each in base.__mro__[:-1])
