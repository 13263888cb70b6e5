"""Graphs of functions: made, watched, asked for captures, read and run, and written with operations."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow.private import lookup


def new_graph(name: str) -> Any:
    """An empty graph, apart from all others, which may capture tensors of others and has `inputs` and `outputs`."""
    return lookup.needed(lookup.FUNC_GRAPH)(name)


Watch = Callable[[str, Sequence[tf.Tensor], Mapping[str, Any]], Sequence[tf.Tensor]]
"""A function from an operation's type, inputs and attributes, when somebody makes it, to the inputs that it gets."""


def watched_graph(name: str, watch: Watch) -> Any:
    """An empty graph of which `watch` is asked before an operation is made in it."""
    return _watched_class()(name, watch)


@functools.cache
def _watched_class() -> type:
    base: Any = lookup.needed(lookup.FUNC_GRAPH)

    class Watched(base):  # type: ignore[misc]
        def __init__(self, name: str, watch: Watch):
            self.watch: Watch | None = None  # while it is made
            super().__init__(name)
            self.watch = watch

        def _create_op_internal(self, op_type: str, inputs: Any, *rest: Any, **options: Any) -> Any:
            watch, self.watch = self.watch, None  # which may make operations itself
            try:
                attributes = options.get("attrs") or {}
                inputs = list(inputs if watch is None else watch(op_type, inputs, attributes))
            finally:
                self.watch = watch
            return super()._create_op_internal(op_type, inputs, *rest, **options)

        def capture(self, tensor: Any, *rest: Any, **named: Any) -> Any:
            """Return the stand-in for `tensor` here; PieceRefusalError for a tensor of an unrelated watched graph."""
            graph = getattr(tensor, "graph", None)
            if isinstance(graph, Watched) and graph is not self and not _is_around(graph, self):
                raise PieceRefusalError("PCB401", _STRAY, _HANDED_IN)
            return super().capture(tensor, *rest, **named)

    return Watched


_STRAY = "a tensor is used here that was kept outside when this code, or other code, was traced before"
_HANDED_IN = "a helper is traced, not run for each lane: let it return what is to be kept, and hand it in"


def _is_around(outer: Any, graph: Any) -> bool:
    """Return whether `graph` was made in `outer`, directly or nested."""
    while graph is not None and graph is not outer:
        graph = around(graph)
    return graph is outer


Instead = Callable[[tf.Tensor], Callable[[], tf.Tensor] | None]


def new_body(name: str, instead: Instead) -> Any:
    """The same, which does not capture a tensor for which `instead` makes another in this graph.

    No gradient is asked of what is in it, and nothing in it waits for another operation.
    """
    return _body_class()(name, instead)


@functools.cache
def _body_class() -> Any:
    class Body(lookup.needed(lookup.FUNC_GRAPH)):  # type: ignore[misc]
        def __init__(self, name: str, instead: Instead):
            super().__init__(name)
            self._instead = instead
            self._standing: dict[int, tuple[tf.Tensor, tf.Tensor]] = {}

        def capture(self, tensor: Any, *rest: Any, **named: Any) -> Any:
            """Return the stand-in for `tensor` here."""
            graph = getattr(tensor, "graph", None) if hasattr(tensor, "op") else None
            if graph is None or graph is self:
                return super().capture(tensor, *rest, **named)
            if id(tensor) not in self._standing:
                make = self._instead(tensor)
                if make is None:
                    found = self._stand_in(tensor)
                else:
                    with self.as_default():
                        found = make()
                if found is None:
                    found = super().capture(tensor, *rest, **named)
                self._standing[id(tensor)] = tensor, found
            return self._standing[id(tensor)][1]

        def _stand_in(self, tensor: tf.Tensor) -> tf.Tensor | None:
            """A new placeholder, in a third of TensorFlow's time; None where more is to be known of it."""
            if tensor.dtype in (tf.resource, tf.variant) or not hasattr(self, "add_capture"):
                return None
            shape = tf.compat.v1.AttrValue(shape=tensor.shape.as_proto())
            dtype = tf.compat.v1.AttrValue(type=tensor.dtype.as_datatype_enum)
            found: tf.Tensor = operation(self, "Placeholder", (), (tensor.dtype,), {"dtype": dtype, "shape": shape})[0]
            self.add_capture(tensor, found)
            return found

    return Body


def operation(
    graph: Any, kind: str, inputs: Sequence[tf.Tensor], dtypes: Sequence[tf.DType], attributes: Mapping[str, Any]
) -> Sequence[tf.Tensor]:
    """The outputs of a new operation of type `kind` in `graph`, of tensors of exactly the right dtypes.

    The attributes are all that the type has, as `AttrValue`s. This is the end of the way that TensorFlow's functions
    go, after they have converted and dispatched and looked everything up: it takes a third of their time. Tapes do not
    see the operation. In a body nobody asks where an operation was made, which takes half of what is left.
    """
    if isinstance(graph, _body_class()) and _makes_at_once(graph):
        inside = [each if getattr(each, "graph", None) is graph else graph.capture(each) for each in inputs]
        node = tf.compat.v1.NodeDef(op=kind, name=graph.unique_name(kind), attr=attributes)
        made = lookup.needed(lookup.CREATE)(graph, node, inside, (), extract_traceback=False)
        return graph._create_op_from_tf_operation(made).outputs
    make = getattr(graph, "_create_op_internal", graph.create_op)  # the public one, half as fast, checks once more
    return make(kind, inputs, dtypes, attrs=attributes).outputs


def _makes_at_once(graph: Any) -> bool:
    """Return whether `operation` can create one in a body without TensorFlow's further bookkeeping."""
    return lookup.find(lookup.CREATE) is not None and hasattr(graph, "_create_op_from_tf_operation")


def makes_functions() -> bool:
    """Return whether `function_of` and `add_function` work; otherwise `tf.cond` and `tf.while_loop` make their own."""
    return lookup.find(lookup.FUNCTION) is not None and hasattr(
        lookup.needed(lookup.FUNC_GRAPH), "_add_function_recursive"
    )


def short_stacks() -> contextlib.AbstractContextManager[Any]:
    """A context in which operations note a stack without the calls of pcbatch and TensorFlow that have made them.

    XLA keeps the stack of each operation that it compiles until the process ends: 10 kB each of 60 calls.
    """
    module = lookup.find(lookup.STACKS)
    base = getattr(module, "StackTraceFilter", None)
    return contextlib.nullcontext() if base is None else _stack_filter(base)()


@functools.cache
def _stack_filter(base: Any) -> type:
    @functools.lru_cache(maxsize=4)
    def set_of(files: frozenset[str]) -> Any:
        """Return TensorFlow's set of the files, one for all: each recorded stack keeps it."""
        made = base()
        made.internal_set.update_to({*files})
        return made.internal_set

    class Filter(base):  # type: ignore[misc]
        def get_filtered_filenames(self) -> frozenset[str]:
            return _libraries(len(sys.modules)) | self.parent.get_filtered_filenames()

        def update(self) -> None:
            self.internal_set = set_of(self.get_filtered_filenames())

    return Filter


@functools.lru_cache(maxsize=1)
def _libraries(modules: int) -> frozenset[str]:
    """The files of pcbatch and TensorFlow, of so many modules that are loaded.

    Without those of the last calls on a stack, which TensorFlow takes off by their number.
    """
    last = {getattr(lookup.find(each), "__file__", None) for each in (lookup.STACKS, lookup.CREATE.rpartition(".")[0])}
    folders = (str(Path(__file__).parents[4]), str(Path(tf.__file__).parent))  # as code objects name them: with links
    files = {getattr(module, "__dict__", {}).get("__file__") for module in [*sys.modules.values()]}
    return frozenset(each for each in files if isinstance(each, str) and each.startswith(folders)) - last


def function_of(graph: Any) -> Any:
    """The function that a graph has become, from its `inputs` to its `outputs`, under its name."""
    return lookup.needed(lookup.FUNCTION)(graph.name, graph, {})


def add_function(graph: Any, function: Any) -> None:
    """Let operations of `graph` run `function`."""
    graph._add_function_recursive(function)


def function_attribute(function: Any) -> Any:
    """`function` as an attribute of an operation."""
    return tf.compat.v1.AttrValue(func=tf.compat.v1.NameAttrList(name=function.name))


def is_stateful(graph: Any) -> bool:
    """Return whether a graph has operations that TensorFlow must neither drop nor repeat."""
    return any(operation.op_def.is_stateful for operation in graph.get_operations())


def captures(graph: Any) -> list[tuple[Any, tf.Tensor]]:
    """Return the tensors from outside that a function's graph uses, each with its stand-in there."""
    return list(graph.captures) if isinstance(graph, lookup.needed(lookup.FUNC_GRAPH)) else []


def capture(graph: Any, tensor: Any) -> tf.Tensor:
    """Return the stand-in for `tensor` in the graph of a function."""
    return graph.capture(tensor)


def placeholder_like(tensor: tf.Tensor) -> tf.Tensor:
    """A placeholder in the present graph, of which as much is known: the arrays that a handle or a list leads to."""
    found = tf.compat.v1.placeholder(tensor.dtype, tensor.shape)
    copy = lookup.find(lookup.HANDLE_DATA) if tensor.dtype in (tf.resource, tf.variant) else None
    if copy is not None:
        copy(tensor, found)
    return found


def let_stand_for(graph: Any, tensor: Any, placeholder: tf.Tensor) -> None:
    """Make `placeholder` the result of `capture` for `tensor` from now on."""
    graph.add_capture(tensor, placeholder)


def around(graph: Any) -> Any:
    """The graph around that of a function; None where there is none."""
    return getattr(graph, "outer_graph", None)


def variables_read(graph: Any) -> list[tf.Variable]:
    """The variables that were read while the graph of a function was traced."""
    return list(graph._watched_variables)


def body_of(graph: Any, name: str) -> Any:
    """The graph of a function that operations of `graph` run, with its `inputs` and `outputs`; None where not known."""
    of_function = getattr(graph, "_get_function", None)
    return getattr(of_function and of_function(name), "graph", None)


def results_of(graph: Any, name: str) -> list[tf.Tensor] | None:
    """Return the results of such a function as tensors of its graph; None if unknown.

    The graph's own `outputs` are others where a gradient was asked for: of those and more one function is made, then
    more is taken away again.
    """
    of_function = getattr(graph, "_get_function", None)
    function = of_function and of_function(name)
    body, definition = getattr(function, "graph", None), getattr(function, "definition", None)
    if body is None or definition is None or len(definition.signature.input_arg) != len(body.inputs):
        return None
    given = {each.name: tensor for each, tensor in zip(definition.signature.input_arg, body.inputs, strict=True)}
    found = []
    for result in definition.signature.output_arg:
        name, _, place = definition.ret[result.name].partition(":")
        if not place:
            found.append(given.get(name))
            continue
        try:
            operation = body.get_operation_by_name(name)
        except KeyError:
            return None
        argument, _, index = place.partition(":")
        found.append(operation.outputs[_first_of(operation, argument) + int(index)])
    return None if any(each is None for each in found) else found


def _first_of(operation: Any, argument: str) -> int:
    """The number of the first output of an operation that belongs to an output argument of its type."""
    first = 0
    for each in operation.op_def.output_arg:
        if each.name == argument:
            break
        if each.type_list_attr:
            first += len(operation.get_attr(each.type_list_attr))
        else:
            first += operation.get_attr(each.number_attr) if each.number_attr else 1
    return first


def share_functions(graph: Any, present: Any) -> None:
    """Let operations of `graph` run in the graph `present` as they are, though they call functions."""
    try:
        for function in graph._functions.values():
            present._add_function_recursive(function)
    except AttributeError:
        if graph.as_graph_def().library.function:
            raise lookup.missing("a list of the functions of a graph") from None


def definition(kind: str) -> Any:
    """Return TensorFlow's definition of operations of type `kind`: attributes, statefulness; None if unknown.

    MissingError where it cannot be asked, since nobody could say then what is pure.
    """
    return lookup.needed(lookup.DEFINITIONS).get(kind)


def in_vectorized_map(scope: str) -> bool:
    """Return whether the name scope shows that `tf.vectorized_map` traces, into the graph that it finds."""
    return "loop_body" in scope
