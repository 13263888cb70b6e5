"""Plain functions and methods that are part of a program, since they cannot be traced."""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Method, NameResolutionError, Note, Span, UnsupportedSyntaxError
from pcbatch.frontend import FunctionSource, read_function, read_method
from pcbatch.frontend.source.changes import changed_in
from pcbatch.frontend.source.live import capture
from pcbatch.frontend.source.nodes import assigned_in, constant, load, walk_scope
from pcbatch.frontend.source.source import Parameter
from pcbatch.function.linkable import Linkable
from pcbatch.lowering.captures.captured import Namespace

_OBJECT = "_pcb_object"
"""The parameter of a method of a class for the object by which it is called."""
_PART = "is part of the program, since it branches, loops or stores by values of a lane, or calls a batched function"


class Taken(Linkable):
    """A plain function of the user's, or a method, as linking knows a batched one."""

    def __init__(self, function: Any):
        self.function = function.__func__ if isinstance(function, types.MethodType) else function
        self.receiver = getattr(function, "__self__", None)
        self.__name__, self.__qualname__ = self.function.__name__, self.function.__qualname__
        self.__signature__ = inspect.signature(function)
        self._function = function

    @cached_property
    def function_source(self) -> FunctionSource:
        """The captured source; UnsupportedSyntaxError where something in it has no place in a program."""
        source = replace(self._read(), is_taken=True)
        changed = changed_in(source.tree.body) & {parameter.name for parameter in source.parameters} - self._own(source)
        if changed:
            raise NameResolutionError([_changed(source, min(changed))])
        return source

    def _own(self, source: FunctionSource) -> set[str]:
        """The parameters that it may change."""
        return set()

    def _source(self) -> FunctionSource:
        return read_function(self._function)

    def _read(self) -> FunctionSource:
        """The source; what is refused in it says why it is looked at."""
        try:
            return self._source()
        except UnsupportedSyntaxError as error:
            code = self.function.__code__
            note = Note(Span.of_line(code.co_filename, code.co_firstlineno), f"`{self.__name__}` {_PART}")
            raise UnsupportedSyntaxError(
                replace(each, notes=(*each.notes, note)) for each in error.diagnostics
            ) from None

    @property
    def static_argnames(self) -> tuple[str, ...]:
        """None."""
        return ()

    @cached_property
    def namespace(self) -> Namespace:
        """Lookup of the function's free names."""
        receiver = self.function_source.receiver
        return Namespace(self.function, {} if receiver is None else {receiver: self.receiver})

    def all_options(self) -> dict[str, Any]:
        """None: those of the entry count."""
        return {}

    def under(self, changes: Mapping[str, Any]) -> Linkable:
        """Itself."""
        return self

    def is_relative(self, other: object) -> bool:
        """Whether `other` is this one."""
        return other is self


def _changed(source: FunctionSource, name: str) -> Diagnostic:
    """That a helper stores into an argument: Python shows that to the caller, a function of the program does not."""
    return Diagnostic(
        "PCB204",
        f"the helper `{source.name}` changes its argument `{name}`, which belongs to the caller",
        source.span,
        f"this {_PART}",
        f"put @pcbatch.autobatch on `{source.name}`, let it return `{name}`, and assign that: "
        f"`{name} = {source.name}({name}, ..)`",
    )


class TakenMethod(Taken):
    """A method of a value: its object is an argument, and what it changes of that is part of what it gives.

        def withdraw(self, amount):             def withdraw(self, amount):
            if amount < self.money:                 if amount < self.money:
                self.money -= amount                    self.money -= amount
                return amount                           return (amount, self)
            return 0.0                              return (0.0, self)

    `takings` are the places where methods change a variable and give a value. One that is static, or of the class, is
    given its object, too, which says that it is the one that is meant: its class has no other.
    """

    def __init__(self, method: Method, takings: Collection[tuple[Span, str]]):
        super().__init__(method.function)
        self.method, self._takings = method, takings
        self.receiver = method.cls

    def is_same(self) -> bool:
        """Whether the class still has this method."""
        return Method.of(self.method.cls or self.method.owner, self.method.name) == self.method

    def _own(self, source: FunctionSource) -> set[str]:
        return {source.parameters[0].name}

    def _source(self) -> FunctionSource:
        return read_method(self.method.function, self._prepared)

    @cached_property
    def gives_back(self) -> bool:
        """Whether it changes its object, or gives nothing else."""
        source = self._given_object(capture(self.method.function))
        nodes = [node for statement in source.tree.body for node in walk_scope(statement)]
        gives = any(isinstance(node, gast.Return) and node.value is not None for node in nodes)
        return not self.method.is_property and (self._changes(source) or not gives)

    def _changes(self, source: FunctionSource) -> bool:
        (receiver,) = self._own(source)
        first, last = source.tree.lineno, source.tree.end_lineno
        inside = (name for place, name in self._takings if place.file == source.file and first <= place.line <= last)
        return receiver in {*changed_in(source.tree.body), *inside}

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
        if self.method.is_property and self._changes(source):
            raise NameResolutionError([_property(source, receiver)])
        if receiver in assigned_in(source.tree.body):
            raise NameResolutionError([_rebound(source, receiver)])
        if self.gives_back:
            tree.body = [_GivingBack(receiver).visit(each) for each in tree.body]
            tree.body.append(_pair(None, receiver, tree.body[-1]))
        return replace(source, tree=tree)


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


def _rebound(source: FunctionSource, receiver: str) -> Diagnostic:
    return Diagnostic(
        "PCB209",
        f"`{receiver}` is assigned in the method `{source.name}`",
        source.span,
        f"this {_PART}",
        "give the other object a name of its own",
    )


def _property(source: FunctionSource, receiver: str) -> Diagnostic:
    return Diagnostic(
        "PCB424",
        f"the property `{source.name}` changes `{receiver}`, its object",
        source.span,
        f"this {_PART}",
        f"make it a method, `{receiver}.{source.name}()`, which may change its object",
    )
