"""Plain functions that are part of a program, since they cannot be traced."""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import gast

from pcbatch.errors import Diagnostic, NameResolutionError, Note, Span, UnsupportedSyntaxError
from pcbatch.frontend import FunctionSource, read_function, read_method
from pcbatch.frontend.source.changes import changed_in
from pcbatch.frontend.source.live import capture
from pcbatch.frontend.source.nodes import load
from pcbatch.frontend.source.scope import LiveScope
from pcbatch.frontend.source.supers import SUPER, Supers, supers_in
from pcbatch.function.linkable import Linkable
from pcbatch.ir.records import CONSTRUCTORS
from pcbatch.lowering.captures.captured import Namespace

PART = "is part of the program, since it branches, loops or stores by values of a lane, or calls a batched function"
"""Why such a function is looked at."""


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
        if not self._behind:
            return read_function(self._function)
        return read_method(self.function, self._with_supers)

    @cached_property
    def _behind(self) -> dict[str, type]:
        """The names for its `super()`, if it is bound to an object, and the classes that these are behind."""
        if self.receiver is None:
            return {}
        found = dict.fromkeys(cls for _, cls in supers_in(capture(self.function).tree, self.function))
        return {f"{SUPER}_{number}": cls for number, cls in enumerate(found)}

    def _with_supers(self, source: FunctionSource) -> FunctionSource:
        """The source, bound to its object, in which `super()` has a name."""
        names = {cls: name for name, cls in self._behind.items()}
        tree = copy.deepcopy(source.tree)

        def named(node: Any, cls: type) -> Any:
            called = node.func if isinstance(node, gast.Call) else node
            called.value = gast.copy_location(load(names[cls], called), called.value)
            return node

        tree = Supers(tree, self.function, named).visit(tree)
        scope = LiveScope(self.function, frozenset(self._behind))
        return replace(source, tree=tree, names=source.names | set(self._behind), scope=scope).bound()

    def _read(self) -> FunctionSource:
        """The source; what is refused in it says why it is looked at."""
        try:
            return self._source()
        except UnsupportedSyntaxError as error:
            code = self.function.__code__
            note = Note(Span.of_line(code.co_filename, code.co_firstlineno), f"`{self.__name__}` {PART}")
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
        given = {} if receiver is None else {receiver: self.receiver}
        return Namespace(self.function, given | {name: super(cls, self.receiver) for name, cls in self._behind.items()})

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
    help_ = (
        f"put @pcbatch.autobatch on `{source.name}`, let it return `{name}`, and assign that: "
        f"`{name} = {source.name}({name}, ..)`"
    )
    if source.name in CONSTRUCTORS:
        help_ = f"change `{name}` where the object is made, in a statement of its own"
    message = f"the helper `{source.name}` changes its argument `{name}`, which belongs to the caller"
    return Diagnostic("PCB204", message, source.span, f"this {PART}", help_)
