"""Calls that change what they are given, found while types are inferred: a lane's values change by assignment alone.

A method that is called for its value, and a helper, run while the program is traced. What they change in a list, a dict
or an object would be seen by what is traced with them and by nobody else.

They can also change what they reach by themselves, as by a global or a default (`reached`). That is noted, and is wrong
where the piece then does something else when it is traced again: a cache that fills and a log are let be.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pcbatch.errors import ChangeError, Diagnostic, Span
from pcbatch.ir import records
from pcbatch.ir.code import Code
from pcbatch.ir.pseudo_builtins import CHANGED, TAKEN
from pcbatch.lowering.codegen.builtins import BUILTINS, OPS
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import Statement
from pcbatch.lowering.inference import complaints, reached, selected
from pcbatch.lowering.inference.looks import Looks
from pcbatch.runtime.backends.protocol import Backend

BEGIN, LOOK, CHECK, SEEN = "_pcb_begin", "_pcb_look", "_pcb_check", "_pcb_seen"
"""The names by which a traced piece knows the functions below, and what the second has seen."""
REACH, REACHED = "_pcb_reach", "_pcb_reached"
"""The names by which it knows those of `Reaching`."""


class Reaching:
    """What the calls of a piece of `function` change besides what they are given, as it is traced.

    `known` is what calls of the whole program do.
    """

    def __init__(self, environment: Environment, function: str, variables: frozenset[str], known: Known):
        self._namespace = environment.namespaces[function]
        self._variables = variables
        self._known = known
        self._roots: list[tuple[Span | None, list[tuple[str, Any]], frozenset[str], list[str]]] = []
        self._reach = reached.Reach((), frozenset())
        self._changed: dict[Span | None, str] = {}
        self._reads: dict[Span | None, Diagnostic] = {}

    def around(self, each: Statement) -> tuple[Statement, Statement] | None:
        """What stands before and behind a statement that may run code of the user's."""
        roots = []
        for name in each.code.reads:
            if name not in self._variables and name != OPS:
                with contextlib.suppress(KeyError):
                    roots.append((name, self._namespace[name]))
        given = [n for n in each.code.reads if n in self._variables] if calls_something(each.code) else []
        nodes = (node for part in each.code.body for node in ast.walk(part))
        attributes = frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute))
        if not given and not reached.reach(roots, attributes).places:
            return None
        number = len(self._roots)
        self._roots.append((each.span, roots, attributes, given))
        before = Code(f"{REACH}({', '.join((str(number), *given))})")
        return Statement(before, each.span), Statement(Code(f"{REACHED}({number})"), each.span)

    def look(self, number: int, *values: Any) -> None:
        """Before a statement: what can change of what it reaches, by its names or as methods of `values`."""
        _, roots, names, given_names = self._roots[number]
        given = [(name, reached.code_of(value)) for name, value in zip(given_names, values, strict=True)]
        self._reach = reached.reach([*roots, *given], names)

    def check(self, number: int) -> None:
        """Behind it: note what has changed."""
        span, *_ = self._roots[number]
        for place in self._reach.places:
            changed = place.changed()
            if changed is not None:
                self._changed.setdefault(span, place.name)
            clash = self._known.clash(span, place, self._reach.names, changed)
            if clash is not None:
                self._reads.setdefault(span, clash)

    def diagnostics(self, is_same_again: Callable[[], bool]) -> list[Diagnostic]:
        """What is wrong; of a piece that changes something it is asked whether that is the same when traced again."""
        found = [*self._reads.values()]
        if self._changed and not found and not is_same_again():
            found = [
                complaints.changes(f"changes {name}, and gives something else each time", span)
                for span, name in self._changed.items()
            ]
        return found


class Known:
    """What is changed by one statement of a program, and read by another."""

    def __init__(self) -> None:
        self._changed: dict[int, dict[Span | None, tuple[reached.Place, frozenset[Any]]]] = {}
        self._read: dict[int, dict[Span | None, tuple[reached.Place, frozenset[str]]]] = {}

    def clash(
        self, span: Span | None, place: reached.Place, names: frozenset[str], changed: frozenset[Any] | None
    ) -> Diagnostic | None:
        """What is wrong where the statement at `span`, whose code has these `names`, reaches `place`.

        It has `changed` parts of it, None if it has only read it.
        """
        key = id(place.whole)
        if changed is None:
            self._read.setdefault(key, {})[span] = place, names
            others = ((other, parts) for other, (_, parts) in self._changed.get(key, {}).items())
            found = any(place.is_read(parts, names) and other != span for other, parts in others)
            return (
                complaints.changes(f"reads {place.name}, which something else that is called changes", span)
                if found
                else None
            )
        if not changed:
            return None  # something new in a cache
        self._changed.setdefault(key, {})[span] = place, changed
        self._read.get(key, {}).pop(span, None)
        readers = self._read.get(key, {}).values()
        if not any(read.is_read(changed, named) for read, named in readers):
            return None
        return complaints.changes(f"changes {place.name}, which something else that is called reads", span)


def guarded(
    statements: Sequence[Statement],
    reads: Sequence[str],
    variables: frozenset[str],
    environment: Environment,
    reaching: Reaching,
    looks: Looks,
) -> Iterator[Statement]:
    """`statements` with a look at what each is given before it, and a check behind it, where it calls something.

    Where code of the user's may run without that (an operator, a property, a method that is kept), what the piece
    `reads` is checked. Before what might change an object, or give a part of one, stands a look at that.
    """
    calling = any(calls_something(each.code) for each in statements)
    if any(may_run_code(each.code) or each.closes for each in statements):
        yield Statement(Code(f"{BEGIN}({{{', '.join(f'{name!r}: {name}' for name in reads)}}})"))
    for each in statements:
        yield from looks.before(each, environment, variables)
        before, behind = (None if each.closes else reaching.around(each)) or (None, None)
        if before is not None:
            yield before
        noting = replace(each, code=selected.noted(looks.in_calls(each, environment, variables))) if calling else each
        if calls_something(each.code):
            read = [name for name in each.code.reads if name in variables]
            yield Statement(Code(f"{SEEN} = {LOOK}({', '.join(read)})"), each.span)
            yield noting
            yield Statement(Code(f"{CHECK}({SEEN}, {read!r})"), each.span)
        else:
            yield noting
            if may_run_code(each.code) or each.closes:
                yield Statement(Code(f"{CHECK}((), ())"), each.span)
        if behind is not None:
            yield behind


@lru_cache(maxsize=4096)
def calls_something(code: Code) -> bool:
    """Whether the translated `code` calls anything but the backend's operations, which may call methods of users."""
    calls = (node.func for each in code.body for node in ast.walk(each) if isinstance(node, ast.Call))
    return any(not isinstance(f, ast.Attribute) or not _is_operation(f) or f.attr in _METHODS for f in calls)


@lru_cache(maxsize=4096)
def may_run_code(code: Code) -> bool:
    """Whether the translated `code` may run code of the user's: calls, operators, attributes, `with`."""
    nodes = (node for each in code.body for node in ast.walk(each))
    return any(
        isinstance(node, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare | ast.With)
        or (isinstance(node, ast.Attribute) and not _is_operation(node))
        for node in nodes
    )


_METHODS = frozenset({BUILTINS[CHANGED], BUILTINS[TAKEN]})
"""The operations that call a method of an object, on a copy of that: what else it is given might change."""


def _is_operation(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == OPS


Held = list[tuple[Any, tuple[Any, ...]]]
"""What in a value can change, with the parts of that."""


def helpers(backend: Backend, reaching: Reaching) -> Mapping[str, Any]:
    """What a piece with such looks and checks is given. What no lane can keep (a tape) may change as it likes."""
    noted: list[tuple[Held, str]] = []

    def begin(reads: Mapping[str, Any]) -> None:
        """What a piece is given stays as it is: only what is assigned goes on from it."""
        noted[:] = [(held, name) for name, value in reads.items() if (held := list(_held(value, set())))]

    def look(*values: Any) -> list[Held]:
        """What can change in `values`, as it is now."""
        return [list(_held(value, set())) if _is_value(value, backend) else [] for value in values]

    def note(value: Any, is_new: bool, names: Mapping[str, Any]) -> Any:
        """`value`, one of several parts of what has these `names`, or, if it `is_new`, something with such parts."""
        held = [each for each in _held(value, set()) if not (is_new and each[0] is value)]
        if held:
            noted.append((held, _holder(names)))
        return value

    def check_all(seen: Sequence[Held], names: Sequence[str]) -> None:
        """Refuse changes of what has been seen, and of what has been noted up to here."""
        check(seen, names)
        check([held for held, _ in noted], [name for _, name in noted], may_grow=True)

    own = {REACH: reaching.look, REACHED: reaching.check, selected.NOTE: note, BEGIN: begin}
    return {LOOK: look, CHECK: check_all, **own}


def _holder(named: Mapping[str, Any]) -> str:
    """The first name of something that can change; "" if there is none."""
    return next((name for name, value in named.items() if any(_held(value, set()))), "")


def _is_value(value: Any, backend: Backend) -> bool:
    if records.parts_of(value) is None:
        return False
    try:
        backend.type_of(value)
    except TypeError:
        return False
    return True


def check(seen: Sequence[Held], names: Sequence[str], *, may_grow: bool = False) -> None:
    """ChangeError PCB424 if something is not as it was `seen`, in what has these `names`.

    Where it `may_grow` an object may have got more attributes: what a property keeps for the next time.
    """
    known: set[int] = set()
    changed: list[str] = []  # one object that has two names is told, and asked for, by the first
    for each, name in zip(seen, names, strict=True):
        found = {id(whole) for whole, parts in each if name and _has_changed(whole, parts, may_grow)}
        changed += [name] if found - known else []
        known |= found
    if changed:
        name = changed[0]
        raise ChangeError(
            "PCB424",
            f"what is called here changes `{name}`, which it is given",
            f"a method changes its own object, and nothing else that it is given: change `{name}` by one of "
            f"its own, `{name}.method(..)`; have a helper return a new object, `{name} = helper({name})`",
            tuple(changed),
        )


def _has_changed(whole: Any, parts: tuple[Any, ...], may_grow: bool) -> bool:
    now = records.parts_of(whole) or ()
    if may_grow and records.fields_of(whole) is not None:
        now = now[: len(parts)]
    return len(now) != len(parts) or any(a is not b for a, b in zip(now, parts, strict=True))


def _held(value: Any, known: set[int]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    parts = records.parts_of(value)
    if parts is None or id(value) in known:
        return
    known.add(id(value))
    if not records.is_frozen(value):
        yield value, parts
    for part in parts:
        yield from _held(part, known)
