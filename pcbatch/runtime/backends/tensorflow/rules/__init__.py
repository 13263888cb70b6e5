"""Vectorisation rules of our own, for operations that TensorFlow's pfor has none for, or one that does not do.

The registry is private to TensorFlow, so every access to it is in this file. A rule gets the inputs of one operation,
each either *stacked* (`[lanes, ...]`) or the same for all lanes, and gives stacked outputs. The rules lie by family in
the files beside this one.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import work
from pcbatch.runtime.backends.tensorflow.rules import (
    arrays,
    convolutions,
    elements,
    elementwise,
    extremes,
    images,
    linear_algebra,
    loops,
)
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule

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
    **elementwise.CORRECTIONS,
    **extremes.CORRECTIONS,
    **linear_algebra.CORRECTIONS,
}
"""Cases in which our rule stands in for TensorFlow's own, which gives up on them or gets them wrong."""


@functools.cache
def install() -> None:
    """Register our rules, once; operations that this TensorFlow already has a rule for keep it."""
    from tensorflow.python.ops.parallel_for import pfor

    registry = getattr(pfor, "_pfor_converter_registry", {})  # another TensorFlow may keep it elsewhere
    for name, rule in RULES.items():
        if name not in registry:
            pfor.RegisterPFor(name)(functools.partial(_apply, rule, pfor.wrap))
    for name, (applies, rule) in CORRECTIONS.items():
        if name in registry:
            ours = functools.partial(_apply, rule, pfor.wrap)
            registry[name] = functools.partial(_choose, applies, ours, registry[name])
    for name in loops.LOOPS:
        if name in registry:
            registry[name] = functools.partial(loops.checked, registry[name])


Pairs = Sequence[tuple[tf.Tensor, tf.Tensor]]
"""Tensors of a graph that is vectorised, and what stands for each in the present one."""


def vectorized(graph: Any, outputs: Sequence[tf.Tensor], stacked: Pairs, same: Pairs, lanes: Any) -> list[tf.Tensor]:
    """The tensors `outputs` of `graph`, which computes them for one lane, for all lanes: `[lanes, ...]`.

    What stands for `stacked` tensors is `[lanes, ...]`, `same` ones do not differ by lane. Every operation between must
    have a rule. Operations are made in the present graph, a function's; `graph` stays as it is.

    Not `tf.vectorized_map`, which gathers where the number of lanes is unknown and broadcasts axes of length 1; nor the
    public `pfor`, which traces anew each time, into the present graph, and leaves what it has traced there.
    """
    from tensorflow.python.ops.parallel_for import pfor

    install()
    present = tf.compat.v1.get_default_graph()
    for function in graph._functions.values():  # an operation that no lane's value goes into is taken as it is
        present._add_function_recursive(function)
    with graph.as_default():
        lane = tf.compat.v1.placeholder_with_default(0, [])
    converter = pfor.PFor(lane, lanes, graph.get_operations(), fallback_to_while_loop=False)
    captured = [(inner, present.capture(outer)) for outer, inner in graph.captures]
    for pairs, is_stacked in ((stacked, True), (same, False), (captured, False)):
        for inner, outer in pairs:
            converter._add_conversion(inner, pfor.wrap(outer, is_stacked))
    used = work.needed(outputs)
    operations = [operation for operation in graph.get_operations() if operation.name in used]
    for output, safe in extremes.same_for_all(operations, converter._convert_helper):
        converter._add_conversion(output, pfor.wrap(safe, False))
    found = [converter._convert_helper(output) for output in outputs]
    return [row.t if row.is_stacked else tf.broadcast_to(row.t, [lanes, *row.t.shape]) for row in found]


def failing_operations(error: BaseException) -> list[Any]:
    """The operations that pfor was converting when it raised `error`, the outermost (nearest to the piece) first."""
    found = []
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == "_convert_helper" and "y_op" in traceback.tb_frame.f_locals:
            found.append(traceback.tb_frame.f_locals["y_op"])
        traceback = traceback.tb_next
    return found


_observed: ContextVar[list[str] | None] = ContextVar("observed", default=None)


@contextlib.contextmanager
def observed(names: list[str]) -> Iterator[None]:
    """Add to `names` the operations to which a rule of ours is applied inside."""
    token = _observed.set(names)
    try:
        yield
    finally:
        _observed.reset(token)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep TensorFlow from printing pages about a rule that fails: the error says what matters."""

    def is_news(record: Any) -> bool:
        return not record.pathname.endswith("parallel_for/pfor.py")

    logger = tf.get_logger()
    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


def _apply(rule: Rule, wrap: Callable[[tf.Tensor, bool], Any], inputs: Any) -> list[Any]:
    names = _observed.get()
    if names is not None:
        names.append(inputs.op_type)
    outputs = rule(inputs)
    return [wrap(output, True) for output in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _choose(applies: Applies, ours: Callable[[Any], Any], theirs: Callable[[Any], Any], inputs: Any) -> Any:
    return ours(inputs) if applies(inputs) else theirs(inputs)
