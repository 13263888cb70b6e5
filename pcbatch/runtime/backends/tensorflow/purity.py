"""Pieces must be pure: operations that would run once for all lanes, or differ by batch, are refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import tensorflow as tf

from pcbatch.errors import raise_all
from pcbatch.ir.machine import Piece
from pcbatch.runtime.backends.tensorflow import blame, private


@dataclass(frozen=True)
class _Refusal:
    """Operations whose type matches `pattern`: what is wrong with them and what to write instead."""

    pattern: re.Pattern[str]
    message: str
    help: str
    stateful: bool = True
    """Whether only operations that TensorFlow marks as stateful are meant."""


def _refusal(pattern: str, message: str, help: str, stateful: bool = True) -> _Refusal:
    return _Refusal(re.compile(pattern), message, help, stateful)


_RANDOM = "draw with pcbatch.random, whose keys are values of a lane: pcbatch.random.normal(key, shape)"

_REFUSALS = (
    _refusal(
        r"Stateless(Random|Truncated|Multinomial|Parameterized|Sample|Shuffle)", "has no per-lane rule", _RANDOM, False
    ),
    _refusal(
        r".*(Random|Multinomial|TruncatedNormal|StatefulUniform|StatefulStandardNormal|Rng).*",
        "has hidden state",
        _RANDOM,
    ),
    _refusal(
        r"Assign|Resource(Scatter|Apply|SparseApply|StridedSliceAssign)|VarHandleOp|DestroyResource",
        "changes or makes a variable",
        "a batched function is pure: return the new value instead",
    ),
    _refusal(r"Assert$", "would stop every lane", "write Python's assert, which fails the lane alone"),
    _refusal(r"Print|StringFormat|LogMessage", "would run once for all lanes", "leave it out, or return the value"),
    _refusal(r".*PyFunc", "calls back into Python", "write it with TensorFlow operations"),
    _refusal(r"Timestamp", "reads a clock", "read the clock outside and pass the time as an argument"),
    _refusal(
        r".*File|Write.*Summary|.*Dataset|Iterator",
        "does input or output",
        "read and write outside the batched function",
        False,
    ),
)

_READS_ONLY = re.compile(
    r"ReadVariableOp|Resource(Gather|GatherNd)$|VariableShape|VarIsInitializedOp|LookupTableFind|LookupTableSize"
    r"|StatefulPartitionedCall|If$|While$|Case$|Placeholder|XlaLaunch"
)
"""Operations that TensorFlow marks as stateful but that neither change anything nor differ from run to run."""


def check(piece: Piece, graph: Any) -> None:
    """Raise a PrimitiveError that lists every impure operation in the trace of a piece."""
    found = []
    bodies: dict[str, Any] | None = None
    for operation in graph.get_operations():
        kinds = [operation.type]
        functions = list(_functions(operation)) if _calls(operation.type) else []
        if functions:
            bodies = bodies or {body.signature.name: body for body in graph.as_graph_def().library.function}
            kinds += _kinds_inside(functions, bodies)
        for kind in kinds:
            refusal = _refused(kind)
            if refusal is not None and not (kind == operation.type == "Assert" and _always_holds(operation)):
                message = f"{kind} {refusal.message}"
                found.append(blame.diagnostic(piece, "PCB403", message, operation=operation, help=refusal.help))
    raise_all(dict.fromkeys(found))


def _always_holds(assertion: Any) -> bool:
    """Whether the condition of an assertion is made of constants alone, and true.

    TensorFlow's own functions make such assertions, `tape.batch_jacobian` about the shapes of its arguments.
    """
    condition = assertion.inputs[0]
    operations = _before(condition.op)
    if any(op.type.startswith("Placeholder") or _is_stateful(op.type) or _calls(op.type) for op in operations):
        return False
    definition = tf.compat.v1.GraphDef(node=[op.node_def for op in operations])
    definition.versions.CopyFrom(condition.graph.graph_def_versions)

    def value() -> Any:
        return tf.graph_util.import_graph_def(definition, return_elements=[condition.name])

    with tf.init_scope():
        return bool(tf.reduce_all(tf.function(value, autograph=False).get_concrete_function()()))


def _before(operation: Any) -> list[Any]:
    """`operation` and all that its value is made of."""
    found, pending = {operation.name: operation}, [operation]
    while pending:
        for tensor in pending.pop().inputs:
            if tensor.op.name not in found:
                found[tensor.op.name] = tensor.op
                pending.append(tensor.op)
    return list(found.values())


@cache
def _refused(kind: str) -> _Refusal | None:
    """Why operations of type `kind` are refused, None for pure ones."""
    for refusal in _REFUSALS:
        if refusal.pattern.match(kind) and (_is_stateful(kind) or not refusal.stateful):
            return refusal
    if _is_stateful(kind) and not _READS_ONLY.match(kind):
        return _refusal("", "has a side effect or hidden state", "do it outside the batched function")
    return None


def _is_stateful(kind: str) -> bool:
    definition = private.definition(kind)
    return definition is not None and definition.is_stateful


@cache
def _calls(kind: str) -> bool:
    """Whether operations of type `kind` run other functions."""
    definition = private.definition(kind)
    return definition is not None and any(attr.type in ("func", "list(func)") for attr in definition.attr)


def _functions(node: Any) -> Iterator[str]:
    """The names of the functions that an operation or a node of a function runs."""
    attributes = node.node_def.attr if hasattr(node, "node_def") else node.attr
    for attribute in attributes.values():
        yield from filter(None, [attribute.func.name, *(function.name for function in attribute.list.func)])


def _kinds_inside(functions: list[str], bodies: dict[str, Any]) -> list[str]:
    """The types of all operations inside functions, however deep."""
    pending, seen = list(functions), set()
    kinds: dict[str, None] = {}
    while pending:
        name = pending.pop()
        if name in seen or name not in bodies:
            continue
        seen.add(name)
        for node in bodies[name].node_def:
            kinds[node.op] = None
            pending.extend(_functions(node))
    return list(kinds)
