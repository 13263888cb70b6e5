"""Expressions and classes of a module that has not run: what they give, where that is known; all else is opaque."""

from __future__ import annotations

import ast
import builtins
import collections
import dataclasses
import enum
import functools
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Protocol

from pcbatch.ir.operators import BINARY
from pcbatch.reading import sources
from pcbatch.reading.builtins import DEBUG, MAP, SYNC
from pcbatch.reading.calls import BatchedFunction

KNOWN: dict[str, tuple[str, str]] = {"pcbatch.sync": SYNC, "pcbatch.debug": DEBUG, "pcbatch.map": MAP}
"""Functions that the reader knows by module and name, by where users import them from."""


@dataclass(frozen=True, eq=False)
class Name:
    """The form of an opaque value in code: a dotted name, of which `root` is the value that it begins with.

    `origin` is the dotted name of what is imported, and empty for other values. `methods` are those of the class of an
    object, or of the class that it is, as Python has them, properties included; `cls` is the class of an object.
    """

    text: str
    origin: str = ""
    root: Any = None
    methods: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    is_object: bool = False
    cls: Any = None


class Opaque:
    """A value of which only the name is known; its attributes are such values, too."""

    def __init__(self, name: Name):
        self.opaque_name = dataclasses.replace(name, root=self) if name.root is None else name
        if name.origin:
            module, _, own = name.origin.rpartition(".")
            self.__module__, self.__name__ = KNOWN.get(name.origin, (module, own))

    def __getattr__(self, attribute: str) -> Any:
        """An attribute."""
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)
        name = self.opaque_name
        found = name.methods.get(attribute)
        if isinstance(found, FunctionType | StaticBatched | staticmethod):
            found = found.__get__(self if name.is_object else None, Opaque)  # which runs nothing
        elif isinstance(found, classmethod):
            found = MethodType(found.__func__, name.cls if name.is_object else self)
        else:
            origin = f"{name.origin}.{attribute}" if name.origin else ""
            found = Opaque(Name(f"{name.text}.{attribute}", origin, name.root))
        vars(self)[attribute] = found
        return found

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Nothing that is opaque is ever called."""
        raise TypeError(f"{self.opaque_name.text} is known by its name only")


def opaque(text: str, origin: str = "") -> Opaque:
    """A value that code reads by a name."""
    return Opaque(Name(text, origin))


def is_opaque(value: Any) -> bool:
    """Tell whether only the name of a value is known."""
    return isinstance(value, Opaque)


@dataclass(frozen=True, eq=False)
class StaticBatched:
    """A batched function of a module that has not run."""

    function: FunctionType
    statics: frozenset[str]
    cost: float | None
    is_static_method: bool = False
    receiver: Any = None

    def __get__(self, instance: Any, owner: Any = None) -> StaticBatched:
        """The function as a method of `instance`."""
        if instance is None or self.is_static_method or self.receiver is not None:
            return self
        return dataclasses.replace(self, receiver=instance)

    def __getattr__(self, name: str) -> Any:
        """Return what else a batched function has is not known here."""
        if name.startswith("__"):
            raise AttributeError(name)
        return opaque(f"{self.function.__name__}.{name}")

    @property
    def __wrapped__(self) -> Any:
        """Return what it was made of."""
        return staticmethod(self.function) if self.is_static_method else self.function


def batched_of(value: Any) -> BatchedFunction | None:
    """Return the reader's view of a batched function of a module that has not run; None for everything else."""
    if not isinstance(value, StaticBatched):
        return None
    tree, file = sources.tree_of(value.function)
    return BatchedFunction(value.function, tree, file, value.statics, value.receiver, value.cost, value)


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


MAKERS = (collections.namedtuple, dataclasses.field, functools.partial, range, float, int)
"""Functions that are called if their arguments are known: they make another value, and do nothing else."""
OPERATORS = {getattr(ast, BINARY[symbol].node): BINARY[symbol].python for symbol in ("+", "-", "*", "/", "//")}
"""Operators on numbers that are known."""


class Expressions:
    """Values of expressions."""

    names: dict[str, Any]
    codes: dict[tuple[str, int], CodeType]
    methods: dict[str, Mapping[str, Any]]

    def value(self, node: ast.expr, name: str) -> Any:
        """Return what an expression gives; opaque, and called `name`, where that is not known."""
        try:
            return self._value(node, name)
        except (ArithmeticError, TypeError, ValueError):  # for Python to say when it runs
            return opaque(name)

    def _value(self, node: ast.expr, name: str) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=known):
                return self.names[known] if known in self.names else getattr(builtins, known, opaque(known))
            case ast.Attribute(value=whole, attr=attribute):
                return getattr(self._value(whole, name), attribute, opaque(name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                found = self._value(operand, name)
                return -found if isinstance(found, int | float | complex) else opaque(name)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._value(left, name), self._value(right, name)
                are_numbers = type(a) in (int, float) and type(b) in (int, float)
                return OPERATORS[type(op)](a, b) if are_numbers and type(op) in OPERATORS else opaque(name)
            case ast.Tuple(elts=elts):
                return tuple(self._items(elts, name))
            case ast.List(elts=elts):
                return self._items(elts, name)
            case ast.Set(elts=elts):
                return set(self._items(elts, name))
            case ast.Dict(keys=keys, values=values):
                own = [self._value(key, name) for key in keys if key is not None]
                return dict(zip(own, self._items(values, name), strict=True))
            case ast.Lambda(args=arguments):
                defaults = tuple(self.value(each, name) for each in arguments.defaults)
                return FunctionType(self.codes["<lambda>", node.lineno], self.names, "<lambda>", defaults)
            case ast.Call(func=function, args=given, keywords=keywords):
                return self._called(self._value(function, name), given, keywords, name)
        return opaque(name)

    def _items(self, nodes: Sequence[ast.expr], name: str) -> list[Any]:
        if any(isinstance(each, ast.Starred) for each in nodes):
            raise ValueError("how many items there are is not known")
        return [self._value(each, f"{name}[{place}]") for place, each in enumerate(nodes)]

    def _called(self, function: Any, given: Sequence[ast.expr], keywords: Sequence[ast.keyword], name: str) -> Any:
        cls = function.opaque_name.text if isinstance(function, Opaque) else getattr(function, "__qualname__", "")
        if cls in self.methods and self.names.get(cls) is function:
            return Opaque(Name(name, methods=self.methods[cls], is_object=True, cls=function))
        arguments = self._items(given, name)
        named = {each.arg: self._value(each.value, name) for each in keywords if each.arg is not None}
        are_all = len(named) == len(keywords)
        is_known = are_all and not any(isinstance(each, Opaque) for each in (*arguments, *named.values()))
        if function not in MAKERS or not is_known:
            return opaque(name)
        return function(*arguments, **named)
