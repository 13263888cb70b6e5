"""Methods that are part of a program, since they cannot be traced: of objects that lanes make or are given."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Method, NameResolutionError, Span
from pcbatch.frontend import FunctionSource, read_method
from pcbatch.frontend.source.changes import called_part, changed_in, mark_function, root_of
from pcbatch.frontend.source.live import capture
from pcbatch.frontend.source.nodes import assigned_in, constant, load, walk_scope
from pcbatch.frontend.source.source import Parameter
from pcbatch.frontend.source.supers import Supers, supers_in
from pcbatch.function.taken import PART, Taken
from pcbatch.ir.records import INIT

_OBJECT = "_pcb_object"
"""The parameter of a method of a class for the object by which it is called."""


class TakenMethod(Taken):
    """A method of a value: its object is an argument, and what it changes of that is part of what it gives.

        def withdraw(self, amount):             def withdraw(self, amount):
            if amount < self.money:                 if amount < self.money:
                self.money -= amount                    self.money -= amount
                return amount                           return (amount, self)
            return 0.0                              return (0.0, self)

    `takings` are the places where methods change a variable and give a value, `calls` those of the `others`, the
    program's methods by their names. One that is static, or of the class, is given its object, too, which says that it
    is the one that is meant: its class has no other.
    """

    def __init__(
        self,
        method: Method,
        takings: Collection[tuple[Span, str]],
        calls: Collection[tuple[Span, Method]],
        others: Mapping[str, TakenMethod],
    ):
        super().__init__(method.function)
        self.method, self._takings, self._calls, self._others = method, takings, calls, others
        self.receiver = method.cls
        first = method.cls or method.behind or method.owner
        self._meanings = {each: self._of(each) for each in _below(first)} if method.cls is None else {}
        self._meanings[first] = method

    def _of(self, cls: type) -> Method | None:
        return Method.of(cls, self.method.name, self.method.behind)

    def is_same(self) -> bool:
        """Whether the class still has this method, and those that inherit from it what they had."""
        return all(self._of(cls) == known for cls, known in self._meanings.items())

    def _own(self, source: FunctionSource) -> set[str]:
        return {source.parameters[0].name}

    def _source(self) -> FunctionSource:
        return read_method(self.method.function, self._prepared)

    @cached_property
    def gives_back(self) -> bool:
        """Whether it changes its object, or gives nothing else."""
        return not self.method.is_property and (self._changes or not self._gives)

    @cached_property
    def _captured(self) -> FunctionSource:
        return self._given_object(capture(self.method.function))

    @cached_property
    def _gives(self) -> bool:
        nodes = [node for statement in self._captured.tree.body for node in walk_scope(statement)]
        return any(isinstance(node, gast.Return) and node.value is not None for node in nodes)

    @cached_property
    def _changes(self) -> bool:
        """Whether it changes its object, by itself or by what it calls: methods may call each other."""
        seen: list[TakenMethod] = [self]
        for each in seen:
            if each._changes_itself or (each is not self and not each._gives and not each.method.is_property):
                return True
            seen += [other for other in each._called if other not in seen]
        return False

    @cached_property
    def _changes_itself(self) -> bool:
        source = self._captured
        (receiver,) = self._own(source)
        inside = (name for place, name in self._takings if self._is_here(place))
        return receiver in {*changed_in(source.tree.body), *inside}

    def _is_here(self, place: Span) -> bool:
        tree = self._captured.tree
        return place.file == self._captured.file and tree.lineno <= place.line <= tree.end_lineno

    @cached_property
    def _called(self) -> list[TakenMethod]:
        """The methods of its object, or of a part of that, that it calls."""
        (receiver,) = self._own(self._captured)
        nodes = (node for statement in self._captured.tree.body for node in walk_scope(statement))
        names = {node.func.attr for node in nodes if root_of(called_part(node)) == receiver}
        found = {method for place, method in self._calls if method.name in names and self._is_here(place)}
        return [each for each in self._others.values() if each.method in found or each.method in self.supers]

    @cached_property
    def supers(self) -> list[Method]:
        """The methods that it calls by `super()`, of the classes that its own one inherits from.

        Of an object whose class has several bases it may be another one: that is found out where the class is known.
        """
        found = supers_in(self._captured.tree, self.method.function)
        methods = [self._super(name, cls) for name, cls in found if cls in self.method.owner.__mro__]
        return [each for each in methods if each is not None]

    def _super(self, name: str, cls: type) -> Method | None:
        return Method.of(self.method.cls or cls, name, cls)

    def _given_object(self, source: FunctionSource) -> FunctionSource:
        """The source with the object as its first parameter."""
        if self.method.kind not in ("static", "class"):
            return source
        source = source.bound() if self.method.kind == "class" else source
        parameters = (Parameter(_OBJECT, "positional"), *source.parameters)
        own, every = source.locals | {_OBJECT}, source.names | {_OBJECT}
        return replace(source, parameters=parameters, locals=own, names=every)

    def _prepared(self, source: FunctionSource) -> FunctionSource:
        """The source with the object beside what is returned, if it is given back."""
        source = self._given_object(source)
        (receiver,) = self._own(source)
        tree = _Mangled(self.method.owner.__name__).visit(copy.deepcopy(source.tree))
        tree = Supers(tree, self.method.function, partial(self._with_super, receiver)).visit(tree)
        if self.method.is_property and self._changes:
            raise NameResolutionError([_property(source, receiver)])
        if self.method.name == INIT and _is_seen_whole(tree.body, receiver):
            raise NameResolutionError([_seen_whole(source, receiver)])
        if receiver in assigned_in(source.tree.body):
            raise NameResolutionError([_rebound(source, receiver)])
        if self.gives_back:
            tree.body = [_GivingBack(receiver).visit(each) for each in tree.body]
            tree.body.append(_pair(None, receiver, tree.body[-1]))
        return replace(source, tree=tree)

    def _with_super(self, receiver: str, node: Any, cls: type) -> Any:
        """A call of the function of the program that an attribute of `super()` is, or what calls it."""
        called = node.func if isinstance(node, gast.Call) else node
        method = self._super(called.attr, cls)
        label = next((name for name, each in self._others.items() if each.method == method), None)
        if label is None or self._others[label].method.is_property == isinstance(node, gast.Call):
            return node
        if not isinstance(node, gast.Call):
            return gast.copy_location(gast.Call(load(label, node), [load(receiver, node)], []), node)
        node.func = gast.copy_location(gast.Attribute(load(receiver, node), called.attr, gast.Load()), node.func)
        mark_function(node, label, gives_back=self._others[label].gives_back)
        return node


class _GivingBack(gast.NodeTransformer):  # type: ignore[misc]  # gast has no types
    """Returns the object, too."""

    def __init__(self, receiver: str):
        self.receiver = receiver

    def visit_Return(self, node: Any) -> Any:
        return _pair(node.value, self.receiver, node)

    def visit_FunctionDef(self, node: Any) -> Any:
        return node


def _pair(value: Any, receiver: str, place: Any) -> Any:
    given = gast.copy_location(constant(None), place) if value is None else value
    both = gast.copy_location(gast.Tuple([given, load(receiver, place)], gast.Load()), place)
    return gast.copy_location(gast.Return(both), place)


class _Mangled(gast.NodeTransformer):  # type: ignore[misc]  # gast has no types
    """Private attributes, `self.__name`, as Python has them in the body of a class."""

    def __init__(self, owner: str):
        self.owner = owner.lstrip("_")

    def visit_Attribute(self, node: Any) -> Any:
        self.generic_visit(node)
        if node.attr.startswith("__") and not node.attr.endswith("__") and self.owner:
            node.attr = f"_{self.owner}{node.attr}"
        return node


def _is_seen_whole(body: list[Any], receiver: str) -> bool:
    """Whether a constructor uses its object otherwise than by attributes, before it surely has one: it is none yet."""
    for statement in body:
        nodes = list(gast.walk(statement))
        parts = {id(node.value) for node in nodes if isinstance(node, gast.Attribute) and node.attr != "__dict__"}
        if any(isinstance(node, gast.Name) and node.id == receiver and id(node) not in parts for node in nodes):
            return True
        match statement:
            case gast.Assign(targets=[gast.Attribute(value=gast.Name(id=name)), *_]) if name == receiver:
                return False
    return False


def _seen_whole(source: FunctionSource, receiver: str) -> Diagnostic:
    return Diagnostic(
        "PCB209",
        f"`{receiver}` is used in `{source.name}` before it has an attribute",
        source.span,
        f"this {PART}",
        f"assign an attribute first, in a statement of its own, `{receiver}.x = ..`",
    )


def _rebound(source: FunctionSource, receiver: str) -> Diagnostic:
    return Diagnostic(
        "PCB209",
        f"`{receiver}` is assigned in the method `{source.name}`",
        source.span,
        f"this {PART}",
        "give the other object a name of its own",
    )


def _property(source: FunctionSource, receiver: str) -> Diagnostic:
    return Diagnostic(
        "PCB424",
        f"the property `{source.name}` changes `{receiver}`, its object",
        source.span,
        f"this {PART}",
        f"make it a method, `{receiver}.{source.name}()`, which may change its object",
    )


def _below(cls: type) -> Iterator[type]:
    """The classes that inherit from `cls`."""
    found: list[type] = cls.__subclasses__()
    for each in found:
        yield each
        yield from _below(each)
