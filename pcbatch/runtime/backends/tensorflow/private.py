"""TensorFlow's insides: all that pcbatch uses of what TensorFlow does not document, and what is lost where it is gone.

No other file of pcbatch imports from `tensorflow.python` or `tensorflow.compiler`, or reads an attribute of
TensorFlow's that begins with an underscore. Where only speed or a clear message is lost with one, the rest works on;
else whatever needs it raises PCB580. `probes.py` has a check of each, and says what is lost.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import sys
import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

import tensorflow as tf

from pcbatch.errors import UsageError

_FUNC_GRAPH = "tensorflow.python.framework.func_graph.FuncGraph"
_CONTEXT = "tensorflow.python.eager.context.context"
_DETERMINISM = "tensorflow.python.framework.config.is_op_determinism_enabled"
_FUNCTION = "tensorflow.python.eager.polymorphic_function.atomic_function.from_func_graph"
_PFOR = "tensorflow.python.ops.parallel_for.pfor"
_IN_XLA = "tensorflow.python.ops.control_flow_util.GraphOrParentsInXlaContext"
_RECORD = "tensorflow.python.eager.record"
_DEFINITIONS = "tensorflow.python.framework.op_def_registry"
_UPDATE_SLICE = "tensorflow.compiler.tf2xla.python.xla.dynamic_update_slice"
_SLICE = "tensorflow.compiler.tf2xla.python.xla.dynamic_slice"
_MODULE = "tensorflow.compiler.tf2xla.ops.gen_xla_ops.xla_call_module"
_NO_ORDER = "tensorflow.python.eager.polymorphic_function.attributes.DISABLE_ACD"
_CONVERSIONS = "tensorflow.python.framework.tensor_conversion_registry"


@functools.cache
def find(path: str) -> Any:
    """A module of TensorFlow's, or something in one, by its whole name; None where this version has none."""
    try:
        return importlib.import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        return getattr(find(module), name, None) if module else None


class MissingError(UsageError):
    """PCB580: a part of TensorFlow that is needed now is not there."""


def needed(path: str) -> Any:
    """The same; MissingError PCB580 where this version has none."""
    found = find(path)
    if found is None:
        raise _missing(path)
    return found


def _missing(path: str) -> MissingError:
    return MissingError("PCB580", f"{_gone(path)}\n  help: {_HELP}")


def _gone(path: str) -> str:
    return f"pcbatch needs {path}, which TensorFlow {tf.__version__} does not have"


_HELP = "install a version of TensorFlow that this pcbatch was made for: pip install 'tensorflow>=2.20,<2.22'"

Converter = Callable[[Any], Any]
"""From the inputs of an operation, as pfor hands them over, to its outputs, wrapped."""

# -- graphs of functions -----------------------------------------------------------------------------------------------


def new_graph(name: str) -> Any:
    """An empty graph, apart from all others, which may capture tensors of others and has `inputs` and `outputs`."""
    return needed(_FUNC_GRAPH)(name)


Watch = Callable[[str, Sequence[tf.Tensor], Mapping[str, Any]], Sequence[tf.Tensor]]
"""From the type of an operation that somebody makes, its inputs and its attributes to the inputs that it gets."""


def watched_graph(name: str, watch: Watch) -> Any:
    """An empty graph of which `watch` is asked before an operation is made in it."""
    return _watched_class()(name, watch)


@functools.cache
def _watched_class() -> type:
    base: Any = needed(_FUNC_GRAPH)

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

    return Watched


def new_body(name: str, instead: Callable[[tf.Tensor], tf.Tensor | None]) -> Any:
    """The same, which does not capture a tensor for which `instead` has another, made in this graph."""
    return _body_class()(name, instead)


@functools.cache
def _body_class() -> Any:
    class Body(needed(_FUNC_GRAPH)):  # type: ignore[misc]
        def __init__(self, name: str, instead: Callable[[tf.Tensor], tf.Tensor | None]):
            super().__init__(name)
            self._instead = instead

        def capture(self, tensor: Any, *rest: Any, **named: Any) -> Any:
            """What stands for `tensor` here."""
            if hasattr(tensor, "op") and tensor.graph is not self:
                with self.as_default():
                    found = self._instead(tensor)
                if found is not None:
                    return found
            return super().capture(tensor, *rest, **named)

    return Body


def operation(
    graph: Any, kind: str, inputs: Sequence[tf.Tensor], dtypes: Sequence[tf.DType], attributes: Mapping[str, Any]
) -> Sequence[tf.Tensor]:
    """The outputs of a new operation of type `kind` in `graph`, of tensors of exactly the right dtypes.

    The attributes are all that the type has, as `AttrValue`s. This is the end of the way that TensorFlow's functions
    go, after they have converted and dispatched and looked everything up: it takes a third of their time. Tapes do not
    see the operation.
    """
    create = getattr(graph, "_create_op_internal", graph.create_op)  # the public one, half as fast, checks once more
    return create(kind, inputs, dtypes, attrs=attributes).outputs


def makes_functions() -> bool:
    """Whether `function_of` and `add_function` work; where not, `tf.cond` and `tf.while_loop` make what they need."""
    return find(_FUNCTION) is not None and hasattr(needed(_FUNC_GRAPH), "_add_function_recursive")


def function_of(graph: Any) -> Any:
    """The function that a graph has become, from its `inputs` to its `outputs`, under its name."""
    return needed(_FUNCTION)(graph.name, graph, {})


def add_function(graph: Any, function: Any) -> None:
    """Let operations of `graph` run `function`."""
    graph._add_function_recursive(function)


def function_attribute(function: Any) -> Any:
    """`function` as an attribute of an operation."""
    return tf.compat.v1.AttrValue(func=tf.compat.v1.NameAttrList(name=function.name))


def call(concrete: Any, arrays: Sequence[tf.Tensor]) -> Any:
    """The result of a concrete function on tensors of exactly its signature.

    TensorFlow's public call looks at the arguments once more, for half of the time.
    """
    flat = getattr(concrete, "_call_flat", None)
    return concrete(*arrays) if flat is None else flat(list(arrays), concrete.captured_inputs)


def direct(concrete: Any) -> Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]] | None:
    """The flat results of a concrete function on tensors of exactly its signature, in ordinary code that no tape sees.

    None where this version has no such way. It asks TensorFlow's runtime for the function by its name, in 17 us for a
    small one; `call` looks for tapes, scopes and a structure of the results before it does that, in 32. What fails is
    done once more by `call`, whose errors say where the operation was made.
    """
    known = find(_CONTEXT)
    function = getattr(concrete, "_inference_function", None)
    name, outputs = getattr(function, "name", None), getattr(function, "function_type", None)
    run = getattr(known and known(), "call_function", None)
    if run is None or not isinstance(name, bytes) or outputs is None:
        return None
    if getattr(concrete.graph, "deferred_external_captures", None):  # of which each call has others
        return None
    captured, count = list(concrete.captured_inputs), len(outputs.flat_outputs)

    def direct_call(arrays: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        try:
            found: Sequence[tf.Tensor] = run(name, [*arrays, *captured], count)
            return found
        except Exception:
            again: Sequence[tf.Tensor] = call(concrete, arrays)
            return again

    return direct_call


def spec(tensor: tf.Tensor) -> tuple[Any, Any]:
    """The dtype and shape of a tensor that is there, to be compared with others: a `TensorShape` takes 2 us to hash."""
    shape = getattr(tensor, "_shape_tuple", None)
    return tensor.dtype, tensor.shape if shape is None else shape()


def keeps_functions() -> bool:
    """Whether `definitions`, `define` and `call_defined` work; where not, no traced program is kept on disk."""
    context = find(_CONTEXT)
    return context is not None and all(
        hasattr(context(), name) for name in ("add_function_def", "remove_function", "call_function", "has_function")
    )


def definitions(concrete: Any) -> tuple[str, Sequence[Any]]:
    """The name of a concrete function, and the `FunctionDef`s of it and of all that it calls."""
    library = list(concrete.graph.as_graph_def().library.function)
    own = concrete.function_def
    return own.signature.name, [*(each for each in library if each.signature.name != own.signature.name), own]


def define(definition: Any) -> None:
    """Let TensorFlow know a function by its `FunctionDef`."""
    needed(_CONTEXT)().add_function_def(definition)


def undefine(name: str) -> None:
    """Let TensorFlow forget a function."""
    context = needed(_CONTEXT)()
    if context.has_function(name):
        context.remove_function(name)


def call_defined(name: str, arrays: Sequence[tf.Tensor], count: int) -> list[tf.Tensor]:
    """The `count` results of a function that was defined, at once, unseen by tapes."""
    return list(needed(_CONTEXT)().call_function(name.encode(), list(arrays), count) or ())


def is_deterministic() -> bool | None:
    """Whether `tf.config.experimental.enable_op_determinism` was called; None where that cannot be asked."""
    asked = find(_DETERMINISM)
    return None if asked is None else bool(asked())


def registered_rules() -> Mapping[str, Converter]:
    """The rules for vectorising that TensorFlow's registry has, by type of operation."""
    return getattr(find(_PFOR), "_pfor_converter_registry", {})


def is_stateful(graph: Any) -> bool:
    """Whether a graph has operations that TensorFlow would not leave out, or do twice."""
    return any(operation.op_def.is_stateful for operation in graph.get_operations())


def captures(graph: Any) -> list[tuple[Any, tf.Tensor]]:
    """The tensors from outside that a function's graph uses, each with what stands for it there."""
    return list(graph.captures) if isinstance(graph, needed(_FUNC_GRAPH)) else []


def capture(graph: Any, tensor: Any) -> tf.Tensor:
    """What stands for `tensor` in the graph of a function."""
    return graph.capture(tensor)


def let_stand_for(graph: Any, tensor: Any, placeholder: tf.Tensor) -> None:
    """From now on `placeholder` is what `capture` gives for `tensor`."""
    graph.add_capture(tensor, placeholder)


def around(graph: Any) -> Any:
    """The graph around that of a function; None where there is none."""
    return getattr(graph, "outer_graph", None)


def trainable_variables(function: Any) -> Sequence[tf.Variable]:
    """The variables that a traced function reads and that can be trained."""
    return function.graph.trainable_variables


def variables_read(graph: Any) -> list[tf.Variable]:
    """The variables that were read while the graph of a function was traced."""
    return list(graph._watched_variables)


def body_of(graph: Any, name: str) -> Any:
    """The graph of a function that operations of `graph` run, with its `inputs` and `outputs`; None where not known."""
    of_function = getattr(graph, "_get_function", None)
    return getattr(of_function and of_function(name), "graph", None)


def share_functions(graph: Any, present: Any) -> None:
    """Let operations of `graph` run in the graph `present` as they are, though they call functions."""
    try:
        for function in graph._functions.values():
            present._add_function_recursive(function)
    except AttributeError:
        if graph.as_graph_def().library.function:
            raise _missing("a list of the functions of a graph") from None


def definition(kind: str) -> Any:
    """What TensorFlow says of operations of type `kind`: their attributes, whether they are stateful; None if unknown.

    MissingError where it cannot be asked, since nobody could say then what is pure.
    """
    return needed(_DEFINITIONS).get(kind)


def in_vectorized_map(scope: str) -> bool:
    """Whether operations made under a name scope are traced by `tf.vectorized_map`, into the graph that it finds."""
    return "loop_body" in scope


def unordered() -> dict[str, Any]:
    """Attributes of a `tf.function` by which no operation waits for another that has side effects."""
    name = find(_NO_ORDER)
    return {} if name is None else {name: True}


def composite_types() -> tuple[type, ...]:
    """The types of values that are made of several tensors: sparse, ragged, a user's own."""
    every = getattr(getattr(tf, "__internal__", None), "CompositeTensor", None)
    return (tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices) if every is None else (every,)


# -- conversion of numbers ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def asked_first(types: tuple[type, ...], conversion: Callable[..., Any]) -> Iterator[bool]:
    """Inside, `conversion(value, dtype, name, as_ref)` is asked before TensorFlow makes tensors of NumPy's arrays.

    By every thread; behind it TensorFlow is as it was. Gives False where this version cannot.
    """
    registry = find(_CONVERSIONS)
    functions = getattr(registry, "_tensor_conversion_func_registry", None)
    known = getattr(registry, "_tensor_conversion_func_cache", None)
    lock = getattr(registry, "_tensor_conversion_func_lock", None)
    if functions is None or known is None or lock is None:
        yield False
        return
    entry, priority = (types, conversion), -1  # those of NumPy's arrays are 0
    with lock:
        functions[priority].append(entry)
        known.clear()
    try:
        yield True
    finally:
        with lock:
            functions[priority].remove(entry)
            if not functions[priority]:
                del functions[priority]
            known.clear()


def in_product_of_bool() -> bool:
    """Whether TensorFlow computes `flag * x` of tensors, for which it makes bools of everything."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(16):
        if frame is None:
            return False
        if frame.f_code.co_name == "_mul_dispatch_factory":
            return True
        frame = frame.f_back
    return False


_OPERATORS = frozenset({"binary_op_wrapper", "r_binary_op_wrapper", "tensor_equals", "tensor_not_equals"})
"""TensorFlow's functions that are methods of tensors for Python's operators."""


def in_operator() -> bool:
    """Whether TensorFlow converts for one of Python's operators, not for a function that somebody called."""
    frame: FrameType | None = sys._getframe(1)
    inside = False
    while frame is not None:
        is_tensorflows = frame.f_globals.get("__name__", "").startswith("tensorflow.")
        if inside and not is_tensorflows:
            return False
        inside = inside or is_tensorflows
        if is_tensorflows and frame.f_code.co_name in _OPERATORS:
            return True
        frame = frame.f_back
    return False


# -- XLA ---------------------------------------------------------------------------------------------------------------


def in_xla(graph: Any) -> bool | None:
    """Whether XLA compiles what is traced into `graph`; None where TensorFlow cannot be asked."""
    known = find(_IN_XLA)
    if known is None:
        warnings.warn(f"{_gone(_IN_XLA)}: {_WITHOUT_IN_XLA}", RuntimeWarning, stacklevel=2)
        return None
    return bool(known(graph))


_WITHOUT_IN_XLA = (
    "everything is taken to run without XLA, so nothing is tuned to it, and a recursion or an assertion inside a "
    "function with jit_compile=True fails with a message of XLA's own"
)


def update_slice() -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor] | None:
    """XLA's `(array, part, starts) -> array` with `part` at `starts`; None where there is none."""
    return find(_UPDATE_SLICE)


def dynamic_slice() -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor] | None:
    """XLA's `(array, starts, sizes) -> part` at `starts`; None where there is none."""
    return find(_SLICE)


def has_modules() -> bool:
    """Whether `call_module` works."""
    return find(_MODULE) is not None


def call_module(
    module: str | bytes, inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor], function: Any = None
) -> list[tf.Tensor]:
    """What a module of StableHLO gives: tensors like `outputs`. If it calls the number 0, that is `function`."""
    called = []
    if function is not None:
        add_function(tf.compat.v1.get_default_graph(), function)
        called.append(tf.compat.v1.NameAttrList(name=function.name))
    return list(
        needed(_MODULE)(
            args=list(inputs),
            version=9,
            module=module,
            Tout=[output.dtype for output in outputs],
            Sout=[output.shape for output in outputs],
            platforms=["CPU"],
            function_list=called,
        )
    )


# -- tapes -------------------------------------------------------------------------------------------------------------


def unrecorded() -> contextlib.AbstractContextManager[Any]:
    """No tape sees what runs inside."""
    record = find(_RECORD)
    return contextlib.nullcontext() if record is None else record.stop_recording()


def may_record() -> bool:
    """Whether there may be a tape that sees what runs now."""
    record = find(_RECORD)
    return record is None or bool(record.could_possibly_record())


def is_watched(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether a tape watches one of `tensors`, so that it records what is made of them."""
    asked = getattr(find(_RECORD), "should_record_backprop", None)
    return may_record() and (asked is None or bool(asked(list(tensors))))


def record_as_one(
    name: str, outputs: Sequence[tf.Tensor], inputs: Sequence[tf.Tensor], gradient: Callable[..., Any]
) -> None:
    """Tell all tapes that `outputs` come from `inputs` by one operation."""
    needed(_RECORD).record_operation(name, outputs, inputs, gradient)


def set_gradient(operation: Any, gradient: Callable[..., Any]) -> None:
    """Let `tf.gradients` take `gradient(*upstream)` for that of an operation, by all of its inputs."""
    operation._gradient_function = lambda _, *upstream: gradient(*upstream)


def has_own_gradient(operation: Any) -> bool:
    """Whether an operation has a gradient of its own, as `tf.custom_gradient` gives it."""
    return "_gradient_op_type" in operation.node_def.attr or getattr(operation, "_gradient_function", None) is not None


def rewires() -> bool:
    """Whether `update_input` works."""
    return hasattr(tf.Operation, "_update_input")


def update_input(operation: Any, place: int, tensor: tf.Tensor) -> None:
    """Let an operation read another tensor of its graph, of the same dtype."""
    operation._update_input(place, tensor)


# -- the vectoriser ----------------------------------------------------------------------------------------------------


@functools.cache
def copy_of_pfor(register: Callable[[MutableMapping[str, Converter], Any], None]) -> Any:
    """A copy of TensorFlow's vectoriser, in whose registry `register(registry, wrap)` has put what it wants.

    pfor looks for rules in a registry that is a global of its module, and nested conversions (the body of a loop, of a
    conditional, of a function that is called) are started by rules that look there, too. So does all that TensorFlow
    vectorises for others, in any thread: `tf.vectorized_map`, `tape.jacobian`. A copy of the module has a registry of
    its own, and whatever starts in the copy stays in it. Operations for which someone else has registered a rule with
    TensorFlow have it in the copy, too.
    """
    pfor = needed(_PFOR)
    tree = ast.parse(inspect.getsource(pfor))
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
    """One graph, which computes something for one lane, on its way to all lanes, by a copy of pfor."""

    def __init__(self, copy: Any, graph: Any, lanes: Any):
        with graph.as_default():
            lane = tf.compat.v1.placeholder_with_default(0, [])
        self._wrap = copy.wrap
        self._pfor = copy.PFor(lane, lanes, graph.get_operations(), fallback_to_while_loop=False)

    def give(self, tensor: tf.Tensor, value: tf.Tensor, is_stacked: bool) -> None:
        """Let `value` stand for `tensor` of the graph, `[lanes, ...]` if it is stacked."""
        self._pfor._add_conversion(tensor, self._wrap(value, is_stacked))

    def convert(self, tensor: tf.Tensor) -> Any:
        """What stands for `tensor`: `t`, and whether it `is_stacked`."""
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
    wrap = getattr(find(_PFOR), "wrap", None)
    if wrap is not None:
        operation.pfor_converter = lambda inputs: [wrap(*output) for output in rule(inputs)]


def has_rule(operation: Any) -> bool:
    """Whether an operation has a rule of its own."""
    return hasattr(operation, "pfor_converter")


def is_tensorflows(inputs: Any) -> bool:
    """Whether `inputs` come from TensorFlow's own pfor, not from a copy."""
    return type(inputs.pfor) is find(_PFOR).PFor


def lanes_of(inputs: Any) -> tf.Tensor:
    """How many lanes pfor converts for: int32 `[1]`."""
    return inputs.pfor.loop_len_vector


def is_every_lane(inputs: Any, indices: tf.Tensor) -> bool:
    """Whether `indices` are the numbers of all lanes."""
    return indices is inputs.pfor.all_indices
