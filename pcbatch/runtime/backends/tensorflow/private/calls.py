"""Traced functions: called without TensorFlow's looks around, and kept as plain data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.private import lookup

TENSOR_NOW = getattr(getattr(tf, "__internal__", None), "EagerTensor", None)
"""The class of tensors that are there, not symbols of a graph; None where this version has none."""
_TELLS = all(hasattr(TENSOR_NOW, name) for name in ("_datatype_enum", "_shape_tuple"))
"""Whether they tell their dtype and shape without making objects of them."""


def call(concrete: Any, arrays: Sequence[tf.Tensor], captured: Sequence[tf.Tensor] | None = None) -> Any:
    """The result of a concrete function on tensors of exactly its signature, and perhaps of what it has `captured`.

    TensorFlow's public call looks at the arguments once more, for half of the time.
    """
    flat = getattr(concrete, "_call_flat", None)
    given = concrete.captured_inputs if captured is None else list(captured)
    return concrete(*arrays) if flat is None else flat(list(arrays), given)


Direct = Callable[..., Sequence[tf.Tensor]]
"""A concrete function on tensors of exactly its signature, and perhaps on others than it has captured."""


def direct(concrete: Any, compiled: bool = False) -> Direct | None:
    """The flat results of a concrete function on tensors of exactly its signature, in ordinary code that no tape sees.

    None where this version has no such way. It asks TensorFlow's runtime for the function by its name, in 17 us for a
    small one; `call` looks for tapes, scopes and a structure of the results before it does that, in 32. What fails is
    done once more by `call`, whose errors say where the operation was made. `compiled` tells that it is XLA's.
    """
    known = lookup.find(lookup.CONTEXT)
    function = getattr(concrete, "_inference_function", None)
    name, outputs = getattr(function, "name", None), getattr(function, "function_type", None)
    context = known and known()
    if not hasattr(context, "call_function") or not isinstance(name, bytes) or outputs is None:
        return None
    if getattr(concrete.graph, "deferred_external_captures", None):  # of which each call has others
        return None
    captured, count = list(concrete.captured_inputs), len(outputs.flat_outputs)
    found = _at_once(context, name, count, compiled, captured, functools.partial(call, concrete))
    if found is not None:
        return found

    def looked_up(arrays: Sequence[tf.Tensor], captured: Sequence[tf.Tensor] = captured) -> Sequence[tf.Tensor]:
        try:
            results: Sequence[tf.Tensor] = context.call_function(name, [*arrays, *captured], count)
            return results
        except Exception:
            again: Sequence[tf.Tensor] = call(concrete, arrays, captured)
            return again

    return looked_up


def _at_once(
    context: Any,
    name: bytes,
    count: int,
    compiled: bool = False,
    captured: Sequence[tf.Tensor] = (),
    again: Direct | None = None,
) -> Direct | None:
    """What `context.call_function` does of this function, in 0.7 of its time: what it looks up is only compared.

    Where somebody wants to see operations, or to cancel them, that is told by `context.call_function`. What fails is
    done `again` so. The options of a call are about how TensorFlow's own kernels run; XLA does not ask for them, but to
    pass them costs a `compiled` function 2 us of 15.
    """
    execution, execute = lookup.find(lookup.EXECUTE), lookup.find(lookup.EXECUTE_NOW)
    cancellation, local = lookup.find(lookup.CANCELLATION), getattr(context, "_thread_local_data", None)
    options, handle = getattr(context, "function_call_options", None), getattr(context, "_context_handle", None)
    parts = (
        hasattr(execution, "execute"),
        hasattr(cancellation, "_active_context"),
        hasattr(local, "device_name"),
        hasattr(options, "_config_proto_serialized"),
    )
    if execute is None or handle is None or local is None or not all(parts):
        return None
    execute_now: Callable[..., Sequence[tf.Tensor]] = execute
    plain, decoded = getattr(execution, "quick_execute", None), name.decode()
    known: tuple[Any, Any, tuple[Any, ...]] = (None, None, ())

    def attributes() -> tuple[Any, ...]:
        nonlocal known
        options, (config, executor, found) = context.function_call_options, known
        if options._config_proto_serialized != config or options._executor_type != executor:
            found = tuple(part for attribute in options.as_attrs().items() for part in attribute)
            known = options._config_proto_serialized, options._executor_type, found
        return found

    def run(arrays: Sequence[tf.Tensor], captured: Sequence[tf.Tensor] = captured) -> Sequence[tf.Tensor]:
        given = [*arrays, *captured]
        try:
            if execution.execute is plain and cancellation._active_context is None:
                told = () if compiled else attributes()
                return execute_now(context._context_handle, local.device_name, decoded, given, told, count)
            found: Sequence[tf.Tensor] = context.call_function(name, given, count)
            return found
        except Exception:
            if again is None:
                raise
            return again(arrays, captured)

    return run


def at_once(concrete: Any, compiled: bool = False) -> Direct | None:
    """The quickest way to call a concrete function without captures, None where this version has none."""
    context, function = lookup.needed(lookup.CONTEXT)(), concrete._inference_function
    return _at_once(context, function.name, len(function.function_type.flat_outputs), compiled)


def device_now() -> str:
    """The whole name of the device that `with tf.device(..)` around tells this thread to use, "" where there is none.

    And where this version does not tell: then all is taken to run where TensorFlow would have it.
    """
    known = lookup.find(lookup.CONTEXT)
    return (getattr(known(), "device_name", None) or "") if known else ""


def spec(tensor: tf.Tensor) -> tuple[Any, Any]:
    """The dtype and shape of a tensor that is there, to be compared with others: a `TensorShape` takes 2 us to hash."""
    dtype, shape = getattr(tensor, "_datatype_enum", None), getattr(tensor, "_shape_tuple", None)
    return tensor.dtype if dtype is None else dtype(), tensor.shape if shape is None else shape()


def specs(values: Sequence[Any]) -> tuple[tuple[Any, Any], ...] | None:
    """The `spec` of each value, in little time; None where one of them is no tensor that is there."""
    found = []
    for value in values:
        if type(value) is not TENSOR_NOW:
            return None
        found.append((value._datatype_enum(), value._shape_tuple()) if _TELLS else spec(value))
    return tuple(found)


def keeps_functions() -> bool:
    """Whether `definitions`, `define` and `call_defined` work; where not, no traced program is kept on disk."""
    context = lookup.find(lookup.CONTEXT)
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
    lookup.needed(lookup.CONTEXT)().add_function_def(definition)


def undefine(name: str) -> None:
    """Let TensorFlow forget a function."""
    context = lookup.needed(lookup.CONTEXT)()
    if context.has_function(name):
        context.remove_function(name)


def call_defined(name: str, arrays: Sequence[tf.Tensor], count: int) -> list[tf.Tensor]:
    """The `count` results of a function that was defined, at once, unseen by tapes."""
    return list(lookup.needed(lookup.CONTEXT)().call_function(name.encode(), list(arrays), count) or ())


def trainable_variables(function: Any) -> Sequence[tf.Variable]:
    """The variables that a traced function reads and that can be trained."""
    return function.graph.trainable_variables


def unordered() -> dict[str, Any]:
    """Attributes of a `tf.function` by which no operation waits for another that has side effects."""
    name = lookup.find(lookup.NO_ORDER)
    return {} if name is None else {name: True}
