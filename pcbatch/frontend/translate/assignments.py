"""Assignments: to names, to parts of variables, and in place."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Span
from pcbatch.frontend.source.changes import steps_of
from pcbatch.frontend.source.nodes import call, literal, load, store, target_leaves
from pcbatch.frontend.source.scope import Origin
from pcbatch.frontend.translate import changes
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.paths import readable
from pcbatch.frontend.translate.stores import are_rows, row_by_row, store_indices, stored_element
from pcbatch.ir.program import Store
from pcbatch.ir.pseudo_builtins import ROW

PARTS = gast.Subscript | gast.Attribute
"""Targets that are parts of variables."""


class Assignments(Expressions):
    """Translates the assignments of one function; see `Expressions` for its arguments."""

    def _assign(self, targets: Sequence[Any], value: Any, span: Span) -> None:
        if len(targets) == 1 and are_rows(targets[0], value):
            for target, part in row_by_row(self, targets[0], value):
                self._assign([target], part, span)
        elif any(isinstance(each, PARTS) for target in targets for each in target_leaves(target)):
            self._assign_with_stores(targets, value, span)
        elif len(targets) == 1 and isinstance(targets[0], gast.Name):
            self.into(value, targets[0].id, span)
        else:
            self.primitive(targets, self.rewrite(value), span)

    def _assign_with_stores(self, targets: Sequence[Any], value: Any, span: Span) -> None:
        """Values first, then the targets from left to right, as Python does."""
        if len(targets) == 1 and isinstance(targets[0], PARTS):
            later = [step.slice for step in steps_of(targets[0]) if isinstance(step, gast.Subscript)]
            self._store(targets[0], self.operand(self._element(targets[0], value), later), span)
            return
        whole = self.operand(value, targets) if len(targets) > 1 else None
        for target in targets:
            source = value if whole is None else load(whole, value)
            for leaf, name in zip(list(target_leaves(target)), self._spread(target, source, span), strict=True):
                if isinstance(leaf, PARTS):
                    self._store(leaf, name, span)
                else:
                    self.assign(leaf.id, load(name, value), span)

    def _element(self, target: Any, value: Any) -> Any:
        """`value`, which may go into an array: what is written as a tuple or a list is then an array, too."""
        match target, value:
            case gast.Subscript(value=gast.Name(id=name)), gast.Tuple() | gast.List():
                if not self._is_named(target) and name in self.variables:
                    return gast.copy_location(call(ROW, value, load(name, target.value)), value)
        return value

    def _spread(self, target: Any, value: Any, span: Span) -> list[str]:
        """Variables for the values that the leaves of `target` get."""
        leaves = list(target_leaves(target))
        if leaves == [target]:
            return [self.operand(value)]
        names = {id(leaf): self.temporary() for leaf in leaves}

        def renamed(part: Any) -> Any:
            if id(part) in names:
                return store(names[id(part)])
            return gast.Tuple([renamed(each) for each in part.elts], gast.Store())

        self.primitive([renamed(target)], self.rewrite(value), span)
        return [names[id(leaf)] for leaf in leaves]

    def _store(self, target: Any, value: str, span: Span) -> None:
        """`array[i, j] = value`, `part.name = value`."""
        target = self._settled_target(target)
        names = [] if self._is_named(target) else self._indices(target)
        self._emit_change(target, names, value, span)

    def _settled_target(self, target: Any, later: Sequence[Any] = ()) -> Any:
        """`target`, whose part may be read again."""
        if isinstance(target.value, gast.Name):
            return target
        inside = [target.slice, *later] if isinstance(target, gast.Subscript) else later
        settled = copy.copy(target)
        settled.value = readable(self, target.value, inside)
        return settled

    def _indices(self, target: Any, later: Sequence[Any] = ()) -> list[Any]:
        """The indices of an element store, which may be read again: variables; in a structure also literals."""
        indices = store_indices(target)
        is_inside = not isinstance(target.value, gast.Name)
        return [
            index
            if is_inside and literal(index) is not None
            else load(self.operand(index, [*indices[at + 1 :], *later]), index)
            for at, index in enumerate(indices)
        ]

    def _is_named(self, target: Any) -> bool:
        """Whether it is an attribute, or an entry by a key that is a text."""
        return isinstance(target, gast.Attribute) or self._is_key(target.slice)

    def _is_key(self, index: Any) -> bool:
        """Whether an index is a text, or the name of one from around the function."""
        match index:
            case gast.Constant(value=value):
                return isinstance(value, str)
            case gast.Name(id=name) if name not in self.source.locals:
                return self.source.scope.origin(name) == Origin("builtins.str")
        return False

    def _emit_change(self, target: Any, indices: Sequence[Any], value: str, span: Span) -> None:
        """Emit `target = value` for a target with a readable part."""
        match target:
            case gast.Attribute(value=part, attr=name):
                changes.assign_field(self, _loaded(part), name, value, span)
            case gast.Subscript(value=part, slice=key) if self._is_key(key):
                changes.assign_entry(self, _loaded(part), key, value, span)
            case gast.Subscript(value=gast.Name()):
                self._emit_store(target, [index.id for index in indices], value, span)
            case gast.Subscript(value=part):
                changes.assign_element(self, part, indices, value, span)

    def _emit_store(self, target: Any, indices: Sequence[str], value: str, span: Span) -> None:
        array = target.value.id
        if array not in self.source.locals or array in self.source.captured:
            self.report(
                Diagnostic(
                    "PCB204",
                    f"an element of `{array}` is assigned, which is not a local variable",
                    self.span(target.value),
                    "this belongs to another scope",
                    f"pass `{array}` as an argument, or copy it first: `own = tf.identity({array})`; return the result",
                )
            )
        places = {value: span, **{name: self.span(target.slice) for name in indices}, array: self.span(target.value)}
        self.draft.emit(Store(array, tuple(indices), value, span), places)

    def _augmented(self, node: Any) -> None:
        target, span = node.target, self.span(node)
        if isinstance(target, gast.Name):
            method = self._method_in_place(node)
            if method is not None:
                changes.augment(self, load(target.id, target), method, node.value, span)
                return
            value = gast.copy_location(gast.BinOp(load(target.id, target), node.op, node.value), node)
            self.into(value, target.id, span)
            return
        target = self._settled_target(target, [node.value])
        names = [] if self._is_named(target) else self._indices(target, [node.value])
        old = _read(target) if self._is_named(target) else stored_element(target, names)
        method = self._method_in_place(node)
        if method is not None:
            changes.augment(self, old, method, node.value, span)
            return
        value = gast.copy_location(gast.BinOp(old, node.op, node.value), node)
        self._emit_change(target, names, self.operand(value), span)

    def _method_in_place(self, node: Any) -> str | None:
        """The method that changes the target of an augmented assignment, if it is known to be a list or the like."""
        method, span = changes.IN_PLACE.get(type(node.op)), self.span(node)
        if method is None or (span, method) in self.unrolling.in_place:
            return method
        if isinstance(node.op, gast.Add) and isinstance(node.value, gast.List | gast.ListComp):
            return method
        self.unrolling.augmented[span] = method
        return None


def _loaded(part: Any) -> Any:
    return load(part.id, part) if isinstance(part, gast.Name) else part


def _read(target: Any) -> Any:
    """The expression that reads what `target`, whose part is readable, stores into."""
    found = copy.copy(target)
    found.value, found.ctx = _loaded(target.value), gast.Load()
    return found
