"""pfor, TensorFlow's vectoriser: a copy with rules of our own, and one graph on its way through it."""

from __future__ import annotations

import ast
import functools
import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from types import ModuleType, SimpleNamespace
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.private import lookup
from pcbatch.threads import parse

Converter = Callable[[Any], Any]
"""A function from an operation's inputs, in pfor's form, to its outputs, wrapped."""


def registered_rules() -> Mapping[str, Converter]:
    """The rules for vectorising that TensorFlow's registry has, by type of operation."""
    return getattr(lookup.find(lookup.PFOR), "_pfor_converter_registry", {})


@functools.cache
def copy_of_pfor(register: Callable[[MutableMapping[str, Converter], Any], None]) -> Any:
    """Return a copy of TensorFlow's vectoriser with the rules that `register(registry, wrap)` adds.

    pfor looks for rules in a registry that is a global of its module, and nested conversions (the body of a loop, of a
    conditional, of a function that is called) are started by rules that look there, too. So does all that TensorFlow
    vectorises for others, in any thread: `tf.vectorized_map`, `tape.jacobian`. A copy of the module has a registry of
    its own, and whatever starts in the copy stays in it. Operations for which someone else has registered a rule with
    TensorFlow have it in the copy, too.
    """
    pfor = lookup.needed(lookup.PFOR)
    tree = parse(inspect.getsource(pfor))
    # A module's statements other than imports, definitions and assignments act on others: this one defines a flag.
    tree.body = [statement for statement in tree.body if not isinstance(statement, ast.Expr)]
    copy: Any = ModuleType(pfor.__name__)
    copy.__file__ = pfor.__file__
    exec(compile(tree, pfor.__file__, "exec"), vars(copy))
    copy.WrappedTensor = pfor.WrappedTensor  # what rules give that belong to operations, or to TensorFlow's registry
    # Pages about a rule that fails: our error says what matters.
    copy.logging = SimpleNamespace(**dict.fromkeys(("debug", "error", "info", "vlog", "warning"), _nothing))
    register(copy._pfor_converter_registry, copy.wrap)
    copy._pfor_converter_registry = ChainMap(copy._pfor_converter_registry, pfor._pfor_converter_registry)
    return copy


def _nothing(*arguments: Any) -> None:
    """Log nothing."""


class Conversion:
    """The conversion, by a copy of pfor, of one graph for one lane to all lanes."""

    def __init__(self, copy: Any, graph: Any, lanes: Any):
        with graph.as_default():
            lane = tf.compat.v1.placeholder_with_default(0, [])
        self._wrap = copy.wrap
        self._pfor = copy.PFor(lane, lanes, graph.get_operations(), fallback_to_while_loop=False)

    def give(self, tensor: tf.Tensor, value: tf.Tensor, is_stacked: bool) -> None:
        """Let `value` stand for `tensor` of the graph, `[lanes, ...]` if it is stacked."""
        self._pfor._add_conversion(tensor, self._wrap(value, is_stacked))

    def convert(self, tensor: tf.Tensor) -> Any:
        """Return the conversion of `tensor`: its value `t`, and the flag `is_stacked`."""
        return self._pfor._convert_helper(tensor)


def operations_being_converted(error: BaseException) -> Iterator[Any]:
    """The operations that pfor was converting when it raised `error`, the outermost first."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == "_convert_helper" and "y_op" in traceback.tb_frame.f_locals:
            yield traceback.tb_frame.f_locals["y_op"]
        traceback = traceback.tb_next


def set_rule(operation: Any, rule: Callable[[Any], Iterable[tuple[tf.Tensor, bool]]]) -> None:
    """Let every vectoriser, ours and TensorFlow's, convert this one operation by `rule`.

    pfor looks for a rule on the operation itself before it asks its registry, which is everybody's. `rule` gets the
    operation's inputs, as pfor hands them over, and gives outputs and whether each is stacked. Without a vectoriser the
    operation keeps the rule that it has.
    """
    wrap = getattr(lookup.find(lookup.PFOR), "wrap", None)
    if wrap is not None:
        operation.pfor_converter = lambda inputs: [wrap(*output) for output in rule(inputs)]


def copy_rule(copy: Any, operation: Any) -> None:
    """Let the same operation on other inputs be converted by the rule that `operation` has."""
    if has_rule(operation):
        copy.pfor_converter = operation.pfor_converter


def has_rule(operation: Any) -> bool:
    """Return whether an operation has a rule of its own."""
    return hasattr(operation, "pfor_converter")


def is_tensorflows(inputs: Any) -> bool:
    """Return whether `inputs` come from TensorFlow's own pfor, not from a copy."""
    return type(inputs.pfor) is lookup.find(lookup.PFOR).PFor


def lanes_of(inputs: Any) -> tf.Tensor:
    """Return the number of lanes that pfor converts for: int32 `[1]`."""
    return inputs.pfor.loop_len_vector


def is_every_lane(inputs: Any, indices: tf.Tensor) -> bool:
    """Return whether `indices` are the numbers of all lanes."""
    return indices is inputs.pfor.all_indices
