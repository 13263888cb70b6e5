"""Captured values: what a program reads from closures, globals and modules, and which of it is array-like.

Array-like free values become shared operands, read at every call: never constants of the compiled program, never copied
to the lanes. (A captured 400 MB array took 43 s and 9 GB to compile as a constant, 0.6 s as an operand.) All other free
values are static: they are part of the compiled program and of its cache key.

A compiled program keeps those arrays that the user's code identifies by object. A gradient tape tells variables and
tensors apart by identity, not by their numbers. A variable is the same one in the body and in the helpers that it
calls, and so is a tensor that a helper reads, too, or that is captured by two names. Other arrays are numbers alone.

Static values have fingerprints, by which a compiled program may be used again.
A function of the user's counts by its identity in the `shallow` key of a call; what it reads while it is traced is
compared apart (see `reads`). A `fingerprint` is for other processes: it looks into the code of such functions
for what they capture. Installed packages are taken as they are.
"""

from __future__ import annotations

import dis
import functools
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pcbatch.installed import OWN, is_installed
from pcbatch.ir import program as ir
from pcbatch.ir.machine import Kept
from pcbatch.ir.payload import PSEUDO_BUILTINS
from pcbatch.ir.types import Type
from pcbatch.ir.values import flatten

# -- fingerprints ------------------------------------------------------------------------------------------------------


LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
BETWEEN = {"CACHE", "PUSH_NULL"}
"""Bytecode that loads a name from around a function, that goes on to an attribute of it, and that may stand between."""


@dataclass(frozen=True, eq=False)
class Same:
    """A value by its identity. Keys hold it, so no other object can get its `id` while its program lives."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def fingerprint(value: Any) -> Any:
    """A hashable key by which two static values are taken for the same in a compiled program.

    Numbers, strings and containers of them by content; functions of the user's by identity and by what they capture;
    everything else (arrays among it) by identity.
    """
    return _fingerprint(value, {}, deep=True)


def shallow(value: Any) -> Any:
    """The same key, but functions by identity alone."""
    return _fingerprint(value, {}, deep=False)


def without_identity(key: Any) -> Any:
    """A key with the classes of values in place of their identities."""
    if isinstance(key, Same):
        return type(key.value)
    if isinstance(key, (tuple, frozenset)):
        return type(key)(map(without_identity, key))
    return key


def static_key(value: Any) -> Any:
    """A hashable key of a static argument: 1, 1.0 and True differ, functions count by identity.

    Other objects count by their own equality. TypeError for what cannot be hashed, such as an array or a list.
    """
    match value:
        case tuple():
            return (type(value), *map(static_key, value))
        case types.FunctionType() | types.MethodType() | functools.partial():
            return shallow(value)
    hash(value)
    return (type(value), value)


def _fingerprint(value: Any, visited: dict[int, int], deep: bool) -> Any:
    """`visited` numbers the functions and containers met so far, so that each is looked into once, cycles or not."""
    match value:
        case bool() | int() | float() | complex() | str() | bytes() | None:
            return (type(value).__name__, repr(value))
        case types.MethodType():
            return ("method", *(_fingerprint(part, visited, deep) for part in (value.__self__, value.__func__)))
        case types.BuiltinMethodType() if not isinstance(value.__self__, (types.ModuleType, type, types.NoneType)):
            return ("method", _fingerprint(value.__self__, visited, deep), value.__name__)  # such as `table.values`
        case types.FunctionType() if not deep:
            return Same(value)
        case tuple() | list() | dict() | set() | frozenset() | types.FunctionType() | functools.partial():
            if id(value) in visited:
                return ("visited", visited[id(value)])
            visited[id(value)] = len(visited)
            return (type(value).__name__, *_parts(value, visited, deep))
    return Same(value)


def _parts(value: Any, visited: dict[int, int], deep: bool) -> Iterator[Any]:
    match value:
        case dict():
            yield from (
                (_fingerprint(key, visited, deep), _fingerprint(each, visited, deep)) for key, each in value.items()
            )
        case set() | frozenset():
            yield frozenset(_fingerprint(item, visited, deep) for item in value)
        case functools.partial():
            yield from (_fingerprint(part, visited, deep) for part in (value.func, value.args, value.keywords))
        case types.FunctionType():
            yield Same(value)
            yield from (_fingerprint(each, visited, deep) for each in _captured(value))
        case _:
            yield from (_fingerprint(item, visited, deep) for item in value)


def _captured(function: types.FunctionType) -> Iterator[Any]:
    """Yield the present values that a user's function reads from around it; of pcbatch's wrappers, closures only."""
    file = function.__code__.co_filename
    if is_installed(file) and not file.startswith(OWN):
        return
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for root, *attributes in _paths(function.__code__):
        if root in cells:
            try:
                value = cells[root].cell_contents
            except ValueError:  # a name that is not bound yet
                continue
        elif root in function.__globals__ and not file.startswith(OWN):
            value = function.__globals__[root]
        else:
            continue
        yield _followed(value, attributes)
    yield from (function.__defaults__, function.__kwdefaults__)


def _followed(value: Any, attributes: list[str]) -> Any:
    """`value.a.b..` as far as attributes are stored values: a property may give another object at each look."""
    for attribute in attributes:
        if isinstance(value, types.ModuleType) and is_installed(getattr(value, "__file__", None) or "<frozen>"):
            return value
        try:
            value = vars(value)[attribute]
        except (TypeError, KeyError):
            return value
    return value


@lru_cache(maxsize=4096)
def _paths(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """The names that `code` and the functions inside it load from around them, each with the attributes read off it."""
    found: dict[tuple[str, ...], None] = {}
    path: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if instruction.opname in BETWEEN:
            continue
        if path and instruction.opname in ATTRIBUTES:
            path = (*path, instruction.argval)
            continue
        if path:
            found[path] = None
        path = (instruction.argval,) if instruction.opname in LOADS else ()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(_paths(constant)))
    return tuple(found)


def is_of_user(function: types.FunctionType) -> bool:
    """Return whether `function` belongs neither to pcbatch nor to Python or an installed package."""
    file = function.__code__.co_filename
    return not (is_installed(file) or file.startswith(OWN))


# -- captured values ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Captured:
    """The arrays that a program captures now: `values` by the name of the operand, with their types and leaves."""

    values: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)
    leaves: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def taken_apart(self, type_of: Callable[[Any], Type]) -> Captured:
        """Return a copy with the types and the leaves of the present values."""
        found = {name: type_of(value) for name, value in self.values.items()}
        leaves = {name: flatten(found[name], value) for name, value in self.values.items()}
        return replace(self, types=found, leaves=leaves)

    def without_values(self) -> Captured:
        """Return a copy that a compiled program may keep: everything but the arrays."""
        return replace(self, values={}, leaves={})


def coded_ops(function: ir.Function) -> Iterator[ir.Coded]:
    """A function's ops with payloads."""
    return (op for block in function.blocks for op in block.ops if isinstance(op, ir.Coded))


def names_read(function: ir.Function) -> frozenset[str]:
    """The free names that a function's ops read."""
    return frozenset(name for op in coded_ops(function) for name in ir.free(op))


def function_variables(function: ir.Function) -> frozenset[str]:
    """Return every variable of a cfg function: parameters, results and the writes of its ops."""
    return frozenset(ordered_variables(function))


def ordered_variables(function: ir.Function) -> tuple[str, ...]:
    """The function's variables: parameters first, then in order of first assignment."""
    written = (name for block in function.blocks for op in block.ops for name in ir.writes(op))
    return tuple(dict.fromkeys((*function.parameters, *written, *function.results)))


def free_roots(program: ir.Program) -> frozenset[str]:
    """The names that some function reads as free, pseudo-builtins apart."""
    return frozenset(name for function in program.functions for name in names_read(function)) - PSEUDO_BUILTINS


Leaves = Mapping[str, Sequence[Any]]
"""The leaves of captured arrays, by operand."""


def kept(captured: Leaves, others: Iterable[Any], is_variable: Callable[[Any], bool]) -> dict[str, Kept]:
    """The leaves that a program keeps, by operand, None in the place of every other leaf.

    `others` is what else the program captures, its helpers among it.
    """
    count = Counter(id(leaf) for leaves in captured.values() for leaf in leaves)
    seen = {each for each in count if count[each] > 1}
    if captured:
        seen.update(map(id, objects(others)))
    return _chosen(captured, lambda leaf: is_variable(leaf) or id(leaf) in seen)


def variables(captured: Leaves, is_variable: Callable[[Any], bool]) -> tuple[Any, ...]:
    """A hashable key of the variables among captured arrays, by identity."""
    return tuple((name, *map(Same, leaves)) for name, leaves in _chosen(captured, is_variable).items())


def holds(found: Mapping[str, Kept], captured: Leaves) -> bool:
    """Return whether the arrays that a program keeps are still captured, each in its place."""
    return all(
        known is None or known is leaf
        for name, leaves in found.items()
        for known, leaf in zip(leaves, captured[name], strict=True)
    )


def objects(captured: Iterable[Any]) -> Iterator[Any]:
    """The objects that captured values are or lead to: functions and arrays that helpers read among them."""
    pending = [fingerprint(value) for value in captured]
    while pending:
        match pending.pop():
            case Same(value=value):
                yield value
            case tuple() | frozenset() as parts:
                pending += parts


def _chosen(captured: Leaves, wanted: Callable[[Any], bool]) -> dict[str, Kept]:
    """The leaves that are wanted, None in the place of the others, by operand; only operands that have some."""
    found = {name: tuple(leaf if wanted(leaf) else None for leaf in leaves) for name, leaves in captured.items()}
    return {name: leaves for name, leaves in found.items() if any(leaf is not None for leaf in leaves)}
