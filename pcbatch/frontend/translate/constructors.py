"""What a class makes of what it is given: which parts of a new object are arguments, or parts of them, by `__init__`.

    class Player:
        def __init__(self, name, hand):
            self.name, self.log = name, []          # `.name` is the argument, `.log` new,
            self.hand = self.cards = hand           # `.hand` and `.cards` are one object

`__init__` is read, not run, and in no order: a part may come from whatever is assigned to it anywhere. Where it calls
something of which nobody knows what that keeps, nothing is known of the class either.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
from collections.abc import Callable, Collection, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

from pcbatch.errors import CompileError
from pcbatch.frontend.source.live import definition_of
from pcbatch.frontend.source.scope import LiveScope, Origin, Scope
from pcbatch.frontend.translate.reader import Reader
from pcbatch.frontend.translate.references import (
    ANY,
    LIMIT,
    NEW,
    Kind,
    KindOf,
    Maker,
    Path,
    Reference,
    element,
    step_of,
)
from pcbatch.ir.records import is_generated

Kinds = Callable[[Scope, Callable[[str], bool]], KindOf]
"""`kinds.kind_of_calls`."""
_CONSTANTS = (int, float, complex, str, bytes, bool, type(None), type, FunctionType, BuiltinFunctionType, enum.Enum)
"""What no program changes."""
DEFAULT = "the default of "
"""Begins the names of objects that are defaults of parameters."""
_KEEPING = {"append": False, "insert": False, "setdefault": False, "extend": True, "update": True}
"""Methods that keep what they are given, or its elements."""
_ROUNDS = 8


class _UnknownError(Exception):
    """What a class does is not known."""


def made_by(origin: Origin, kinds: Kinds, *, begun: bool = False) -> Kind:
    """What calls of the class give that `origin` is; where its last part is still to be run, what is `begun`."""
    cls = origin.definition
    assert origin.fields is not None, "it is a class of records"
    if not isinstance(cls, type):  # a statement: what is not seen here is a record of its arguments
        return origin.fields
    try:
        if issubclass(cls, tuple):
            return origin.fields
        return _dataclass(cls, kinds, begun) if dataclasses.is_dataclass(cls) else _simple(cls, kinds)
    except (_UnknownError, CompileError):
        return "unknown"


def _dataclass(cls: type, kinds: Kinds, begun: bool) -> Maker:
    if not cls.__dataclass_params__.init or "__init__" not in _own(cls):  # type: ignore[attr-defined]
        return _simple(cls, kinds)
    fields = dataclasses.fields(cls)
    given = [each for each in fields if each.init]
    parts: list[Reference] = [((f".{each.name}",), (each.name, ())) for each in given]
    defaults = {each.name: each.default for each in given if each.default is not dataclasses.MISSING}
    after = None if begun else getattr(cls, "__post_init__", None)
    if after is not None:
        if len(inspect.signature(after).parameters) > 1:  # it takes what is no field
            raise _UnknownError
        parts = _Body(after, cls, kinds, parts).parts()
    others = _of_class(cls, {f".{each.name}" for each in fields})
    return Maker(tuple(each.name for each in given), (*parts, *others), _shared(cls, defaults))


def _own(cls: type) -> tuple[str, ...]:
    """The methods that the decorator of a dataclass has made for it, or for the dataclass that it inherits from."""
    base = next(each for each in cls.__mro__ if "__init__" in vars(each))
    return ("__init__",) if "__dataclass_params__" in vars(base) and is_generated(vars(base)["__init__"]) else ()


def _simple(cls: type, kinds: Kinds) -> Maker:
    """An object of a simple class; attributes of the class itself belong to all of its objects."""
    made = next((vars(each)["__init__"] for each in cls.__mro__[:-1] if "__init__" in vars(each)), None)
    if made is None:
        return Maker((), tuple(_of_class(cls, ())))
    body = _Body(made, cls, kinds)
    parts = body.parts()
    names = {path[0] for path, _ in parts if path}
    defaults = {
        each.name: each.default
        for each in inspect.signature(made).parameters.values()
        if each.default is not inspect.Parameter.empty
    }
    return Maker(body.parameters, (*parts, *_of_class(cls, names)), _shared(cls, defaults))


def _of_class(cls: type, names: Collection[int | str]) -> Iterator[Reference]:
    """Attributes of the class itself that are none of an object's own, which has these `names`."""
    for base in reversed(cls.__mro__[:-1]):
        for name, value in vars(base).items():
            is_hidden = name.startswith("__") or f".{name}" in names
            if not is_hidden and not isinstance(value, property | classmethod | staticmethod) and _may_change(value):
                yield (f".{name}",), (f"{cls.__name__}.{name}", ())


def _shared(cls: type, defaults: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    changing = (name for name, value in defaults.items() if _may_change(value))
    return tuple((name, f"{DEFAULT}{cls.__name__}.{name}") for name in changing)


def _may_change(value: Any) -> bool:
    return any(map(_may_change, value)) if isinstance(value, tuple | frozenset) else not isinstance(value, _CONSTANTS)


class _Body:
    """Reads the body of `__init__` or `__post_init__`."""

    def __init__(self, function: Any, cls: type, kinds: Kinds, parts: list[Reference] | None = None):
        if not isinstance(function, FunctionType):
            raise _UnknownError
        self.cls, self.kinds = cls, kinds
        self.tree = definition_of(function)
        arguments = self.tree.args
        if arguments.vararg or arguments.kwarg:
            raise _UnknownError
        self.receiver, *own = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        self.parameters = (*own, *(each.arg for each in arguments.kwonlyargs))
        self.owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2]
        nodes = [node for statement in self.tree.body for node in ast.walk(statement)]
        if any(isinstance(node, ast.With | ast.FunctionDef | ast.Yield | ast.YieldFrom | ast.Await) for node in nodes):
            raise _UnknownError
        assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        self.locals = assigned | set(self.parameters) | {self.receiver}
        kind_of = kinds(LiveScope(function), self.locals.__contains__)
        if any(self._is_unknown(node, kind_of) for node in nodes if isinstance(node, ast.Call)):
            raise _UnknownError
        self.reader = Reader(kind_of, True)
        self.known: dict[str, dict[Reference, None]] = {self.receiver: dict.fromkeys(parts or ())}
        self.known |= {name: {((), (name, ())): None} for name in self.parameters}

    def _is_unknown(self, node: ast.Call, kind_of: KindOf) -> bool:
        """Whether a call may keep, or give back, what nobody knows of."""
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr="__init__"):
                return False
            case ast.Attribute(value=part, attr=name) if (root := _root(part)) in self.locals:
                is_whole = isinstance(part, ast.Name) and root == self.receiver
                return is_whole or (name not in _KEEPING and name != "copy")
            case ast.Name(id="super"):
                return False
        return kind_of(node) == "unknown"

    def parts(self) -> list[Reference]:
        """The parts of the new object, by where they come from."""
        for _ in range(_ROUNDS):
            before = sum(map(len, self.known.values()))
            for statement in self.tree.body:
                for node in ast.walk(statement):
                    self._read(node)
            if sum(map(len, self.known.values())) == before:
                return [each for each in self.known[self.receiver] if each[0]]
        raise _UnknownError

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, self._of(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._bind(target, self._of(value))
            case ast.AugAssign(target=target, value=value):
                found = element(tuple(self._of(value)), ANY)
                self._bind(target, [((ANY, *path)[:LIMIT], place) for path, place in found])
            case ast.For(target=target, iter=value):
                self._bind(target, list(element(tuple(self._of(value)), ANY)))
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")))):
                self._inherit(node)
            case ast.Call(func=ast.Attribute(value=part, attr=name)) if _root(part) in self.locals and name != "copy":
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                every = tuple(each for value in given for each in self._of(value))
                kept = (*element(every, ANY), *(every if node.keywords else ())) if _KEEPING[name] else every
                self._bind(part, [((ANY, *path)[:LIMIT], place) for path, place in kept])

    def _inherit(self, node: ast.Call) -> None:
        """`super().__init__(..)`: what the next class makes of these arguments."""
        owner = next((each for each in self.cls.__mro__ if each.__name__ == self.owner), None)
        if owner is None:
            raise _UnknownError
        behind = self.cls.__mro__[self.cls.__mro__.index(owner) + 1 : -1]
        made = next((vars(each)["__init__"] for each in behind if "__init__" in vars(each)), None)
        if made is None:
            return
        body = _Body(made, self.cls, self.kinds)
        maker = Maker(body.parameters, tuple(body.parts()))
        found = self.reader.made(node, maker)
        self._add(self.receiver, [each for reference in found for each in self._resolved(reference)])

    def _of(self, value: ast.expr) -> list[Reference]:
        """Where a value comes from: from arguments, from what is new, from elsewhere."""
        return [each for reference in self.reader.of(value) for each in self._resolved(reference)]

    def _resolved(self, reference: Reference) -> Iterator[Reference]:
        path, (name, inside) = reference
        if name not in self.locals:
            is_new = name.startswith(NEW)
            yield path, (name if is_new else f"{self.cls.__name__}: {name}", inside)
            return
        if name == self.receiver and not inside:  # it is a part of itself
            raise _UnknownError
        found = tuple(self.known.get(name, ()))
        if name == self.receiver:
            found = (*found, *_of_class(self.cls, {each[0][0] for each in found if each[0]}))
        for step in inside:
            found = tuple(element(found, step))
        yield from (((*path, *more)[:LIMIT], place) for more, place in found)

    def _bind(self, target: ast.expr, found: list[Reference]) -> None:
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                is_starred = any(isinstance(each, ast.Starred) for each in parts)
                for at, part in enumerate(parts):
                    inner = list(element(tuple(found), ANY if is_starred else at))
                    if isinstance(part, ast.Starred):
                        part, inner = part.value, [((ANY, *path)[:LIMIT], place) for path, place in inner]
                    self._bind(part, inner)
            case ast.Name(id=name):
                self._add(name, found)
            case ast.Attribute() | ast.Subscript():
                steps: Path = ()
                while isinstance(target, ast.Attribute | ast.Subscript):
                    is_field = isinstance(target, ast.Attribute)
                    steps = (f".{target.attr}" if is_field else step_of(target.slice), *steps)  # type: ignore[union-attr]
                    target = target.value
                if not isinstance(target, ast.Name):
                    raise _UnknownError
                if target.id != self.receiver and found:  # an argument changes, or what may be a part
                    raise _UnknownError
                self._add(target.id, [((*steps, *path)[:LIMIT], place) for path, place in found])

    def _add(self, name: str, found: list[Reference]) -> None:
        self.known.setdefault(name, {}).update(dict.fromkeys(found))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
