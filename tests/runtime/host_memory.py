"""The int32 numbers that a graph has in a GPU's memory where the host looks for them, found without a GPU.

TensorFlow keeps int32 numbers in the host's memory: its kernels for them run there, and so a function takes and gives
them there. Conditionals and loops hand their arguments on to functions. Where TensorFlow writes these out, it copies
what is in the wrong memory. One that stays an operation takes its arguments where its kernel is registered to take
them: in the GPU's memory, but for the predicate, unless an attribute names them. XLA's programs take theirs on the
device, as they are to. (`MemoryTypesForNode` in TensorFlow's `core/framework/memory_types.cc`; its pull request 39860.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry

INT32 = tf.int32.as_datatype_enum
CALLS = ("SymbolicGradient", "PartitionedCall", "StatefulPartitionedCall", "While")
"""Operations of which TensorFlow takes int32 numbers to be the host's, whatever their kernels say."""


@dataclass(frozen=True)
class Misplaced:
    """An int32 argument or result of an operation that runs functions, on the device that it would run on."""

    function: str
    operation: str
    name: str
    argument: str
    device: str


def misplaced(concrete: Any) -> list[Misplaced]:
    """All in the graph of a concrete function, and in the functions that it runs, on a machine with a GPU."""
    definition = concrete.graph.as_graph_def()
    known = {each.signature.name: each for each in definition.library.function}
    return [*_in_nodes("", definition.node, known, set())]


def _in_nodes(function: str, nodes: Sequence[Any], known: Mapping[str, Any], seen: set[str]) -> Iterator[Misplaced]:
    for node in nodes:
        names = [value.func.name for value in node.attr.values() if value.HasField("func")]
        names += [each.name for value in node.attr.values() for each in value.list.func]
        bodies = [known[name] for name in names if name in known]
        must_compile = node.attr["_XlaMustCompile"].b or any(each.attr["_XlaMustCompile"].b for each in bodies)
        if not bodies or must_compile or "CPU" in node.device:
            continue
        if not node.attr["_lower_using_switch_merge"].b:
            device = node.device or "/device:GPU:0"
            for what, place in _on_device(node):
                yield Misplaced(function, node.op, node.name, f"{what} {place}", device)
        for each in bodies:
            if each.signature.name not in seen:
                seen.add(each.signature.name)
                yield from _in_nodes(each.signature.name, each.node_def, known, seen)


def _on_device(node: Any) -> list[tuple[str, int]]:
    """The int32 inputs and outputs of an operation that its kernel for a GPU has in the GPU's memory."""
    registered = kernels.get_registered_kernels_for_op(node.op).kernel
    kernel = next((each for each in registered if each.device_type in ("GPU", "DEFAULT")), None)
    if node.op in CALLS or kernel is None:
        return []
    operation = op_def_registry.get(node.op)
    found = []
    for what, arguments in (("input", operation.input_arg), ("output", operation.output_arg)):
        types = [(each.name, type_) for each in arguments for type_ in _types(each, node)]
        on_host = set(node.attr[f"_{what}_hostmem"].list.i)
        for place, (name, type_) in enumerate(types):
            if type_ == INT32 and place not in on_host and name not in kernel.host_memory_arg:
                found.append((what, place))
    return found


def _types(argument: Any, node: Any) -> list[int]:
    if argument.type_list_attr:
        return list(node.attr[argument.type_list_attr].list.type)
    return [node.attr[argument.type_attr].type if argument.type_attr else argument.type]
