"""Functions of TensorFlow's as plain data: named by content, so that they are the same in every process.

TensorFlow numbers the functions that it traces, so the same program has other names each time, and XLA takes it for
another one. Here a function is named by a digest of what it does, after those that it calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private

PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc", "NumpyFunction"})
"""Operations that run Python code of this process."""
_CALLS = """
Assert Case If PartitionedCall StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile While XlaCallModule
"""
CALLS = frozenset(_CALLS.split())
"""Operations, some called stateful, whose only state is that of the functions that they call."""

COMPILED = "_XlaMustCompile"
"""Attribute of functions that XLA compiles, and sometimes of their calls."""

PULLBACK = "_gradient_op_type"
"""Attribute of operations with a gradient of their own, by a number of this process: not what they compute."""

_ARGUMENT = "pcbatch_argument_"


class NotPortableError(Exception):
    """Raised for a program that depends on something of this process, which the message names."""


def portable(main: str, definitions: Sequence[Any]) -> tuple[str, list[Any]]:
    """The new name of `main`, and functions by their new names, called before calling; NotPortableError."""
    known = {each.signature.name: each for each in definitions}
    names: dict[str, str] = {}
    found: dict[str, Any] = {}
    for name in _in_order(main, known):
        copy = tf.compat.v1.GraphDef().library.function.add()
        copy.CopyFrom(known[name])
        copy.signature.name = ""
        _number_arguments(copy)
        for node in copy.node_def:
            check(node)
            rename(node, names)
            node.attr.pop(PULLBACK, None)
        new = f"pcbatch_{hashlib.sha256(copy.SerializeToString(deterministic=True)).hexdigest()[:32]}"
        copy.signature.name = names[name] = new
        found[new] = copy
    return names[main], list(found.values())


def _number_arguments(definition: Any) -> None:
    """Name a function's arguments by their number: TensorFlow names some of a loop's after functions of its own."""
    numbers = {each.name: f"{_ARGUMENT}{number}" for number, each in enumerate(definition.signature.input_arg)}

    def renamed(given: str) -> str:
        name, colon, output = given.removeprefix("^").partition(":")
        return f"{'^' if given.startswith('^') else ''}{numbers.get(name, name)}{colon}{output}"

    for each in definition.signature.input_arg:
        each.name = numbers[each.name]
    for node in definition.node_def:
        node.input[:] = map(renamed, node.input)
    for returned in (definition.ret, definition.control_ret):
        for name, given in [*returned.items()]:
            returned[name] = renamed(given)


def content_names(definitions: Sequence[Any]) -> dict[str, str]:
    """Return for each function's name one made of its content; NotPortableError."""
    names: dict[str, str] = {}
    for each in definitions:
        names[each.signature.name] = portable(each.signature.name, definitions)[0]
    return names


def rename(node: Any, names: Mapping[str, str]) -> None:
    """Let an operation run functions by their new names."""
    for reference in _references(node):
        reference.name = names[reference.name]
    node.op = names.get(node.op, node.op)


def _references(node: Any) -> Iterator[Any]:
    """The functions that are named by an operation's attributes, in one order: the map has none."""
    for key in sorted(node.attr):
        attribute = node.attr[key]
        kind = attribute.WhichOneof("value")
        if kind == "func":
            yield attribute.func
        elif kind == "list":
            yield from attribute.list.func


def _called(definition: Any, known: Mapping[str, Any]) -> Iterator[str]:
    for node in definition.node_def:
        yield from (reference.name for reference in _references(node))
        if node.op in known:
            yield node.op


def _in_order(main: str, known: Mapping[str, Any]) -> list[str]:
    """The names of `main` and of all that it calls, those that are called before those that call them."""
    order: dict[str, None] = {}
    pending = [(main, False)]
    while pending:
        name, is_done = pending.pop()
        if name in order:
            continue
        if name not in known:
            raise NotPortableError(f"it calls {name}, which is not known")
        if is_done:
            order[name] = None
        else:
            pending.append((name, True))
            pending += [(called, False) for called in _called(known[name], known) if called not in order]
    return list(order)


def is_compiled(definitions: Sequence[Any]) -> bool:
    """Return whether XLA compiles one of these functions."""
    return any(COMPILED in definition.attr for definition in definitions)


def check(node: Any) -> None:
    """NotPortableError for an operation that has something of this process."""
    if node.op in PYTHON:
        raise NotPortableError(f"it runs Python code, by {node.op}")
    if node.op not in CALLS:
        definition = private.definition(node.op)
        if definition is not None and definition.is_stateful:
            raise NotPortableError(f"it has a stateful operation, {node.op}")
