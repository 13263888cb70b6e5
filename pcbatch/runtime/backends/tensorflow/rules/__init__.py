"""Vectorisation rules of our own, for operations that TensorFlow's pfor has none for, or one that does not do.

They are in a copy of pfor (`private.copy_of_pfor`), so that they are ours alone. A rule gets the inputs of one
operation, each either *stacked* (`[lanes, ...]`) or the same for all lanes, and gives stacked outputs. The rules lie by
family in the files beside this one.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private, work
from pcbatch.runtime.backends.tensorflow.rules import (
    arrays,
    convolutions,
    elements,
    extremes,
    images,
    linear_algebra,
    loops,
)
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule
from pcbatch.runtime.backends.tensorflow.xla_cpu import softplus

RULES: dict[str, Rule] = {
    **arrays.RULES,
    **convolutions.RULES,
    **elements.RULES,
    **images.RULES,
    **linear_algebra.RULES,
}
"""Rules for operations that TensorFlow has none for, by operation; where it has one in a later version, that stays."""

CORRECTIONS: dict[str, tuple[Applies, Rule]] = {
    **arrays.CORRECTIONS,
    **convolutions.CORRECTIONS,
    **elements.CORRECTIONS,
    **extremes.CORRECTIONS,
    **linear_algebra.CORRECTIONS,
    **softplus.CORRECTIONS,
}
"""Cases in which our rule stands in for TensorFlow's own, which gives up on them or gets them wrong."""


def _register(registry: MutableMapping[str, private.Converter], wrap: Callable[[tf.Tensor, bool], Any]) -> None:
    """Put our rules into the registry of a copy of pfor; operations that TensorFlow has a rule for keep it."""
    for name, rule in RULES.items():
        if name not in registry:
            registry[name] = functools.partial(_apply, rule, wrap)
    for name, (applies, rule) in CORRECTIONS.items():
        if name in registry:
            ours = functools.partial(_apply, rule, wrap)
            registry[name] = functools.partial(_choose, applies, ours, registry[name])
    for name in loops.LOOPS:
        if name in registry:
            registry[name] = functools.partial(loops.checked, registry[name])


READS = {"ReadVariableOp", *elements.READS}
"""Operations on a variable's handle that can do with its value in place of the handle."""

Pairs = Sequence[tuple[tf.Tensor, tf.Tensor]]
"""Tensors of a graph that is vectorised, and what stands for each in the present one."""


def vectorized(
    graph: Any, outputs: Sequence[tf.Tensor], stacked: Pairs, same: Pairs, handles: Pairs, lanes: Any
) -> list[tf.Tensor]:
    """The tensors `outputs` of `graph`, which computes them for one lane, for all lanes: `[lanes, ...]`.

    What stands for `stacked` tensors is `[lanes, ...]`, `same` ones do not differ by lane; what is read from variables
    by these `handles` is what they are paired with. Every operation between must have a rule. Operations are made in
    the present graph, a function's; `graph` stays as it is.

    Not `tf.vectorized_map`, which gathers where the number of lanes is unknown and broadcasts axes of length 1; nor the
    public `pfor`, which traces anew each time, into the present graph, and leaves what it has traced there.
    """
    present = tf.compat.v1.get_default_graph()
    private.share_functions(graph, present)  # an operation that no lane's value goes into is taken as it is
    conversion = private.Conversion(private.copy_of_pfor(_register), graph, lanes)
    known = [(handle, value) for handle, value in handles if {user.type for user in handle.consumers()} <= READS]
    read = [(user.outputs[0], value) for handle, value in handles for user in handle.consumers() if _is_read(user)]
    done = {id(inner) for inner, _ in (*known, *same)}
    captured = [
        (inner, private.capture(present, outer)) for outer, inner in private.captures(graph) if id(inner) not in done
    ]
    for pairs, is_stacked in ((stacked, True), *((pairs, False) for pairs in (same, known, read, captured))):
        for inner, outer in pairs:
            conversion.give(inner, outer, is_stacked)
    used = work.needed(outputs)
    operations = [operation for operation in graph.get_operations() if operation.name in used]
    for output, safe in extremes.same_for_all(operations, conversion.convert):
        conversion.give(output, safe, False)
    found = [conversion.convert(output) for output in outputs]
    return [row.t if row.is_stacked else tf.broadcast_to(row.t, [lanes, *row.t.shape]) for row in found]


def _is_read(operation: Any) -> bool:
    return bool(operation.type == "ReadVariableOp")


_observed: ContextVar[list[str] | None] = ContextVar("observed", default=None)


@contextlib.contextmanager
def observed(names: list[str]) -> Iterator[None]:
    """Add to `names` the operations to which a rule of ours is applied inside."""
    token = _observed.set(names)
    try:
        yield
    finally:
        _observed.reset(token)


def _apply(rule: Rule, wrap: Callable[[tf.Tensor, bool], Any], inputs: Any) -> list[Any]:
    names = _observed.get()
    if names is not None:
        names.append(inputs.op_type)
    outputs = rule(inputs)
    return [wrap(output, True) for output in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _choose(applies: Applies, ours: Callable[[Any], Any], theirs: Callable[[Any], Any], inputs: Any) -> Any:
    return ours(inputs) if applies(inputs) else theirs(inputs)
