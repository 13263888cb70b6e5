"""Error recovery: a function that is refused is read again without the statement at fault, to tell what else is wrong.

What the statement would have assigned or changed is lost then. A statement that reads what is lost is left out as well,
and nothing is said of it: each fault is told once. A statement is left out whole, with those inside of it, but a loop
or branch goes on behind a fault in its body. An `if` that may leave a loop takes the loop with it; nothing is said of
what stands behind one that may leave the function, for whether that is run is not known. This is the panic mode of
parsers, on abstract values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import gast

from pcbatch.errors import Diagnostic, raise_all
from pcbatch.reading.core import Here, LostError, RefusedError
from pcbatch.reading.kinds import Specialisation
from pcbatch.reading.sources import scope_of
from pcbatch.reading.statements import Statements
from pcbatch.reading.values import LOST, Function, Generator, Ref, Value

T = TypeVar("T")
MOST = 8
"""Maximal number of a function's faults that are told at once."""
CHANGING = ("list", "dict", "set", "object")
"""The kinds of objects whose structure a statement may change; an array keeps its type."""


def all_told(read: Callable[[Collection[Any]], T]) -> T:
    """Return what `read` gives, which leaves out the statements that it is called with.

    Raises CompileError with all refusals, of which each but the first comes from a reading without the statements of
    those before it.
    """
    told: list[Diagnostic] = []
    at_fault: set[Any] = set()
    while len(at_fault) < MOST:
        try:
            result = read(at_fault)
        except LostError:
            break
        except RefusedError as error:
            found, statement = error.diagnostic, error.statement
            if told and statement is None:
                break  # what is left of the function is at fault as a whole, and may not be without the others
            if (found.code, found.span) not in {(each.code, each.span) for each in told}:
                told.append(found)
            if statement is None or statement in at_fault:
                break
            at_fault.add(statement)
        else:
            if not at_fault:
                return result
            break
    raise_all(told)
    raise AssertionError


class Recovery(Statements):
    """A reader that goes on behind statements that are at fault, or need those."""

    def restart(self) -> Here | None:
        is_one = bool(self.at_fault) and len(self.frames) == 1 and not self.contexts
        return self.mark() if is_one else None

    def recover(self, node: Any, here: Here | None, error: RefusedError | LostError) -> None:
        if isinstance(error, RefusedError):
            if len(self.frames) == 1 and not self.contexts:
                error.statement = error.statement or node
            raise error
        is_end = isinstance(node, gast.Return | gast.Raise)
        may_end = not is_end and _leaves(node)
        if here is None or (may_end and any(loop.frame is self.frame for loop in self.loops)):
            raise error  # what stands around it is left out
        self.back_to(here)
        assert self._built is not None
        self._built.is_incomplete = True
        if is_end or may_end:
            self.emitter.enter(None)
            return
        for name in self._touched(node):
            self.state.names[name] = LOST

    def _touched(self, node: Any) -> list[tuple[int, str]]:
        """The variables that a statement may assign, and those that lead to objects that it may change."""
        scope = scope_of(self.frame.function.tree)
        own = [(each, value) for each, value in self.state.names.items() if each[0] == self.frame.number]
        read = {each.id for each in gast.walk(node) if isinstance(each, gast.Name)}
        roots = [value for (_, name), value in own if name in read]
        if any(isinstance(each, Function | Generator) for each in self.state.reachable(iter(roots))):
            roots = [value for _, value in own]  # it may see all variables
        changed = {number for number in self._objects(roots) if self.state.heap[number].kind in CHANGING}
        found = [
            name
            for name, value in self.state.names.items()
            if not name[1].startswith(" ") and not changed.isdisjoint(self._objects([value]))
        ]
        bound = {*_bound(node), *(name for each in _nonlocal(self.frame.function.tree) for name in each.names)}
        return [*found, *((self.frame.number, name) for name in bound & (scope.locals | scope.nonlocals))]

    def _objects(self, roots: Sequence[Value]) -> set[int]:
        """The cells of the heap that values lead to."""
        found = {each.cell for each in self.state.reachable(iter(roots)) if isinstance(each, Ref)}
        return found & self.state.heap.keys()

    def hand_back(self, spec: Specialisation, found: Any) -> None:
        try:
            super().hand_back(spec, found)
        except RefusedError:
            if not spec.is_incomplete:
                raise
            spec.result = None  # what it gives on other ways is not known


def _leaves(node: Any, is_in_loop: bool = False) -> bool:
    """Tell whether a statement may leave those around it: what stands behind it counts where it does not."""
    match node:
        case gast.Return() | gast.Raise():
            return True
        case gast.Break() | gast.Continue():
            return not is_in_loop
        case gast.FunctionDef() | gast.expr():
            return False
        case gast.For() | gast.While():
            is_in_loop = True
    return any(_leaves(each, is_in_loop) for each in gast.iter_child_nodes(node))


def _bound(node: Any) -> Iterator[str]:
    """The names that a statement may give a value."""
    for each in gast.walk(node):
        match each:
            case gast.Name(id=name, ctx=gast.Store() | gast.Del()):
                yield name
            case gast.FunctionDef(name=name) | gast.MatchAs(name=str(name)) | gast.MatchStar(name=str(name)):
                yield name
            case gast.MatchMapping(rest=str(name)):
                yield name


def _nonlocal(tree: Any) -> Iterator[Any]:
    """The declarations by which functions inside of one assign its variables."""
    return (each for each in gast.walk(tree) if isinstance(each, gast.Nonlocal))
