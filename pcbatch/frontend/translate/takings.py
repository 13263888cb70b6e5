"""Methods that change their object and give a value, `y = account.withdraw(5.0)`: both count, as in `xs.pop()`.

Which methods these are is known when they are traced: until then a method that is called for its value changes nothing.
Where that is wrong, the program is built anew with the calls at that place marked. So it is where a method cannot be
traced, since it branches on values of a lane: it is a function of the program then, and its object an argument. A
constructor is one that is given a new object.

    p = Player(x)           p = __made__(Player.__init__(__begun__(Player), x)[1])
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import gast

from pcbatch.errors import Method, Span
from pcbatch.frontend.source.changes import (
    called_part,
    function_of,
    is_one_part,
    mark_function,
    mark_taking,
    root_of,
    steps_of,
    takes,
)
from pcbatch.frontend.source.nodes import constant, dotted, load, span_of, walk_scope
from pcbatch.frontend.source.scopes import Scoped, bound_in
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.unrolling import MethodCall
from pcbatch.ir.called import CALL, name_of_class, parts_of_call, text_of_call
from pcbatch.ir.pseudo_builtins import BEGUN, MADE
from pcbatch.ir.records import AFTER, CONSTRUCTORS, constructor_of

_OWNERS = "_pcb_owners"
"""The attribute of the `o.__call__` that stands for `o`: the classes whose method that may be."""


class Marked:
    """Trees in which such calls are marked; one for each function, whatever versions of it there are.

    `takings` are places, and the variables that methods change there which are called for their value; `methods` are
    calls of methods that are functions of the program, `called` those of objects.
    """

    def __init__(
        self,
        takings: Collection[tuple[Span, str]],
        methods: Collection[MethodCall],
        called: Collection[tuple[Span, str]] = (),
    ):
        self._takings, self._methods, self._called = takings, methods, called
        self._trees: dict[int, Any] = {}

    def source(self, source: FunctionSource) -> FunctionSource:
        """`source` with its calls marked; functions inside it are parts of its tree."""
        every = (*self._takings, *self._called)
        places = (*(span for span, _ in every), *(each.span for each in self._methods))
        if source.is_nested or not any(span.file == source.file for span in places):
            return source
        known = id(source.tree)
        if known not in self._trees:
            tree = _Objects(self._called, source).visit(copy.deepcopy(source.tree))
            for node in _calls(tree):
                if self._is_taking(node, source):
                    mark_taking(node)
            self._trees[known] = _Methods(self._methods, source).visit(tree)
        return replace(source, tree=self._trees[known], root_source=source.root)

    def _is_taking(self, node: Any, source: FunctionSource) -> bool:
        root = root_of(called_part(node))
        here = span_of(node, source.file)
        fits = root is not None and not takes(node) and all(map(is_one_part, steps_of(node.func.value)))
        return fits and any(
            (root == name or name not in source.names) and span.surrounds(here) for span, name in self._takings
        )  # the variables of functions that stand where they are called have other names there


class _Objects(gast.NodeTransformer):  # type: ignore[misc]  # gast has no types
    """Calls the method of an object that is called: `o.__call__(x)` for `o(x)`."""

    def __init__(self, called: Collection[tuple[Span, str]], source: FunctionSource):
        self.called, self.source = called, source

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        here = span_of(node, self.source.file)
        meant = (text for span, text in self.called if span.surrounds(here) and self._is_meant(node.func, text))
        owners = frozenset(parts_of_call(text)[2] for text in meant)
        if owners:
            node.func = gast.copy_location(gast.Attribute(node.func, CALL, gast.Load()), node.func)
            setattr(node.func, _OWNERS, owners)
        return node

    def _is_meant(self, called: Any, text: str) -> bool:
        """Whether the call is the one of `text`; the variables of the compiler's own are not known here."""
        root, steps, _ = parts_of_call(text)
        own_root, own_steps, _ = parts_of_call(text_of_call(called))
        if own_root in self.source.names and own_root not in self.source.locals:
            return False
        if root in self.source.names:
            return (root, steps) == (own_root, own_steps)
        return own_steps == steps or (not steps and not isinstance(called, gast.Attribute))


class _Methods(Scoped):
    """Puts calls of functions of the program in the place of calls of methods."""

    def __init__(self, methods: Collection[MethodCall], source: FunctionSource):
        self.methods, self.source = methods, source
        self._inner: frozenset[str] = frozenset()
        """The variables of the comprehensions and lambdas around."""

    def inside(self, scope: Any) -> None:
        around = self._inner
        self._inner = around | bound_in(scope)
        self.generic_visit(scope)
        self._inner = around

    def _found(self, node: Any, place: Any, *, is_property: bool) -> MethodCall | None:
        """What the call, or the attribute, at `place` is a call of; the first where all are known to be wrong."""
        here = span_of(place, self.source.file)
        root = root_of(node)
        if root is not None and root in self.source.names - self._inner and root not in self.source.locals:
            return None  # an object from around the function: its methods are found by their names
        named = [each for each in self.methods if (each.name, each.is_property) == (node.attr, is_property)]
        owners = getattr(node, _OWNERS, None)
        fits = [each for each in named if each.span.surrounds(here) and (owners is None or each.owner in owners)]
        if root in self._inner:
            fits = [each for each in fits if not each.gives_back]  # what changes there, as an element, would be lost
        return next((each for each in fits if here not in each.left_out), fits[0] if len(fits) > 1 else None)

    def visit_Attribute(self, node: Any) -> Any:
        self.generic_visit(node)
        found = self._found(node, node, is_property=True) if isinstance(node.ctx, gast.Load) else None
        return node if found is None else _call_of(found.label, node, [node.value], [])

    def _constructor(self, node: Any) -> MethodCall | None:
        """The last part of making an object, by a Call of a class, that is a function of the program here."""
        path = dotted(node.func)
        here = span_of(node, self.source.file)
        found = [each for each in self.methods if each.name in CONSTRUCTORS and each.span.surrounds(here)]
        if path is None or not found or path.partition(".")[0] in self.source.locals | self._inner:
            return None
        cls = self.source.scope.live_class(path)
        name = None if cls is None else constructor_of(cls)
        method = None if cls is None or name is None else Method.of(cls, name)
        if method is None:
            return None
        return next((each for each in found if (each.name, each.owner) == (name, name_of_class(method.owner))), None)

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        made = self._constructor(node)
        if made is not None:
            is_after = made.name == AFTER  # it is given nothing but the object
            args, keywords = (node.args, node.keywords) if is_after else ([], [])
            new = _call_of(BEGUN, node, [node.func, *args], keywords)
            given, named = ([], []) if is_after else (node.args, node.keywords)
            changed = gast.Subscript(_call_of(made.label, node, [new, *given], named), constant(1), gast.Load())
            return _call_of(MADE, node, [gast.copy_location(changed, node)], [])
        is_asked = isinstance(node.func, gast.Attribute) and function_of(node) is None
        found = self._found(node.func, node, is_property=False) if is_asked else None
        if found is None:
            return node
        root = root_of(node.func)
        if root in self.source.locals - self._inner and all(map(is_one_part, steps_of(node.func.value))):
            mark_function(node, found.label, gives_back=found.gives_back)
            return node
        called = _call_of(found.label, node, [node.func.value, *node.args], node.keywords)
        return (
            gast.copy_location(gast.Subscript(called, constant(0), gast.Load()), node) if found.gives_back else called
        )


def _call_of(label: str, node: Any, arguments: list[Any], keywords: list[Any]) -> Any:
    return gast.copy_location(gast.Call(load(label, node), arguments, keywords), node)


def _calls(tree: Any) -> Iterator[Any]:
    """The calls of methods in a function and in functions inside it; nothing can change in a lambda."""
    for statement in tree.body:
        for node in walk_scope(statement):
            if isinstance(node, gast.FunctionDef):
                yield from _calls(node)
            elif called_part(node) is not None:
                yield node
