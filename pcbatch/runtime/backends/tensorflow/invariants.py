"""Constants that a loop or an arm only reads are made inside of it: in functions as plain data.

    c = Const; y = While(x, c) with a body (a, b) -> (f(a, b), b)    becomes    y = While(x) with (a) -> f(a, Const)

XLA does that itself before it compiles, but in the order of a hash table that is another one in each process. So its
programs had other names each time, and what it had compiled was not found again: the sampler's never was. Here it is
done in order, and nothing is left for XLA to do. So constants are made inside of called functions, too, which may hand
them on to a loop or conditional.

Functions of TensorFlow's as plain data are named by content, so that they are the same in every process.
TensorFlow numbers the functions that it traces, so the same program has other names each time, and XLA takes it for
another one. Here a function is named by a digest of what it does, after those that it calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private

# -- functions as plain data -------------------------------------------------------------------------------------------


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


# -- invariants --------------------------------------------------------------------------------------------------------


ARMS = {
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "PartitionedCall": ("f",),
    "StatefulPartitionedCall": ("f",),
}
"""The attributes that name the functions of a loop, a conditional or a call."""
LARGEST = 64
"""Operations on constants that are copied together."""


def moved_inside(main: str, definitions: Sequence[Any]) -> list[Any]:
    """The same functions, and others for the loops and conditionals of `main` that had constants moved inside."""
    known = {each.signature.name: each for each in definitions}
    pending = [main]
    done = set()
    while pending:
        name = pending.pop()
        if name in done or name not in known:
            continue
        done.add(name)
        _Function(known[name], known).rewrite()
        for node in known[name].node_def:
            for attribute in node.attr.values():
                pending += [attribute.func.name, *(each.name for each in attribute.list.func)]
            pending.append(node.op)
    return list(known.values())


class _Function:
    """A function that is changed; `known` has all, and gets those that are made for it."""

    def __init__(self, definition: Any, known: dict[str, Any]):
        self.definition, self.known = definition, known
        self.nodes = {node.name: node for node in definition.node_def}
        self._same: dict[str, str] = {}
        """Replacements of a loop's results that are the constants it was given."""

    def rewrite(self) -> None:
        """Move constants into all its loops and conditionals."""
        for node in self.definition.node_def:
            self._follow(node)
            if node.op in ARMS:
                self._move(node)
        for node in self.definition.node_def:  # not all are in order
            self._follow(node)
        for names in (self.definition.ret, self.definition.control_ret):
            for name, tensor in list(names.items()):
                names[name] = self._same.get(tensor, self._same.get(f"^{tensor}", tensor).removeprefix("^"))

    def _follow(self, node: Any) -> None:
        for place, tensor in enumerate(node.input):
            if tensor in self._same:
                node.input[place] = self._same[tensor]

    def _move(self, node: Any) -> None:
        arms = [self.known[name] for each in ARMS[node.op] if (name := node.attr[each].func.name) in self.known]
        if len(arms) < len(ARMS[node.op]) or (
            "_read_only_resource_inputs" in node.attr and node.attr["_read_only_resource_inputs"].list.i
        ):
            return
        is_loop, first = node.op.endswith("While"), int(node.op.endswith("If"))
        if node.op.endswith("Call") and not _hands_on(node, arms[0]):
            return
        given = [tensor for tensor in node.input if not tensor.startswith("^")][first:]
        places = {
            place: found
            for place, tensor in enumerate(given)
            if (found := self._constant(tensor)) is not None and (not is_loop or self._is_kept(arms[1], place))
        }
        if not places:
            return
        for attribute, arm in zip(ARMS[node.op], arms, strict=True):
            name = f"{arm.signature.name}__{self.definition.signature.name}__{node.name}"
            copy = tf.compat.v1.GraphDef().library.function.add()
            copy.CopyFrom(arm)
            copy.signature.name = name
            _put_inside(copy, {place: (given[place], found) for place, found in places.items()})
            if is_loop and attribute == "body":
                for place in sorted(places, reverse=True):
                    copy.ret.pop(copy.signature.output_arg[place].name)
                    del copy.signature.output_arg[place]
            self.known[name] = copy
            node.attr[attribute].func.name = name
        for place in sorted(places, reverse=True):
            del node.input[first + place]
            for attribute in ("T", "output_shapes") if is_loop else ("Tin",):
                if attribute in node.attr:  # to look for one that is not there would make it
                    _drop(node.attr[attribute].list, place)
        if is_loop:  # under another name, for its results have other numbers
            before, node.name = node.name, _free(f"{node.name}_inside", self.nodes.__contains__)
            self.nodes[node.name] = node
            self._same[f"^{before}"] = f"^{node.name}"
            left = iter(range(len(given)))
            for place, tensor in enumerate(given):
                new = tensor if place in places else f"{node.name}:output:{next(left)}"
                self._same[f"{before}:output:{place}"] = new

    def _is_kept(self, body: Any, place: int) -> bool:
        """Return whether a turn of a loop returns its input at a place, perhaps through an inner loop that keeps it."""
        nodes = {node.name: node for node in body.node_def}
        argument = body.signature.input_arg[place].name
        tensor = body.ret[body.signature.output_arg[place].name]
        while tensor != argument:
            name, _, output = tensor.partition(":")
            node = nodes.get(name)
            if node is None:
                return False
            if node.op == "Identity":
                tensor = node.input[0]
                continue
            inner = self.known.get(node.attr["body"].func.name) if node.op.endswith("While") else None
            number = output.rpartition(":")[2]
            if inner is None or not number.isdigit() or not self._is_kept(inner, int(number)):
                return False
            tensor = node.input[int(number)]
        return True

    def _constant(self, tensor: str) -> list[Any] | None:
        """The operations that make a tensor of constants alone, in order; None where it is none."""
        found: dict[str, Any] = {}
        visiting: list[tuple[str, bool]] = [(tensor.partition(":")[0], False)]
        while visiting:
            name, is_done = visiting.pop()
            node = self.nodes.get(name)
            if node is None or len(found) > LARGEST:
                return None
            if is_done:
                found[name] = node
                continue
            if name in found:
                continue
            if any(each.startswith("^") for each in node.input) or not _is_pure(node):
                return None
            visiting.append((name, True))
            visiting += [(each.partition(":")[0], False) for each in node.input]
        return list(found.values())


def _is_pure(node: Any) -> bool:
    """Return whether an operation only computes, without running functions."""
    if node.op in ARMS or any(each.func.name or each.list.func for each in node.attr.values()):
        return False
    definition = private.definition(node.op)
    return definition is not None and not definition.is_stateful and node.op != "Placeholder"


def _hands_on(call: Any, called: Any) -> bool:
    """Return whether a called function that is not compiled by itself may pass arguments to a loop or conditional."""
    if COMPILED in call.attr or COMPILED in called.attr:
        return False
    return any(node.op in ARMS for node in called.node_def)


def _put_inside(definition: Any, constants: dict[int, tuple[str, list[Any]]]) -> None:
    """Make arguments of a function inside of it: at each place the tensor, and the operations that make it."""
    taken = {node.name for node in definition.node_def} | {each.name for each in definition.signature.input_arg}
    same: dict[str, str] = {}
    made: list[Any] = []
    for place, (tensor, operations) in constants.items():
        names: dict[str, str] = {}
        for operation in operations:
            names[operation.name] = _free(f"{operation.name}_inside", taken.__contains__)
            taken.add(names[operation.name])
            copy = tf.compat.v1.NodeDef()
            copy.CopyFrom(operation)
            copy.name = names[operation.name]
            for at, each in enumerate(copy.input):
                copy.input[at] = _renamed(each, names)
            made.append(copy)
        same[definition.signature.input_arg[place].name] = _renamed(tensor, names)
    for node in definition.node_def:
        for at, each in enumerate(node.input):
            node.input[at] = same.get(each, each)
    for name, each in list(definition.ret.items()):
        definition.ret[name] = same.get(each, each)
    before = [*definition.node_def]
    del definition.node_def[:]
    definition.node_def.extend([*made, *before])
    for place in sorted(constants, reverse=True):
        del definition.signature.input_arg[place]
        _shift(definition.arg_attr, place)


def _renamed(tensor: str, names: dict[str, str]) -> str:
    name, colon, output = tensor.partition(":")
    return f"{names[name]}{colon}{output}"


def _free(name: str, is_taken: Callable[[str], bool]) -> str:
    number, found = 1, name
    while is_taken(found):
        number, found = number + 1, f"{name}_{number}"
    return found


def _shift(attributes: Any, place: int) -> None:
    """Take one argument out of a mapping by their numbers."""
    kept = {number - (number > place): attributes[number] for number in list(attributes) if number != place}
    copies = {}
    for number, value in kept.items():
        copies[number] = type(value)()
        copies[number].CopyFrom(value)
    attributes.clear()
    for number, value in copies.items():
        attributes[number].CopyFrom(value)


def _drop(values: Any, place: int) -> None:
    """Take one of the elements out of a list that an attribute has."""
    for field in (values.type, values.shape):
        if len(field) > place:
            del field[place]
