"""Traced functions: called without TensorFlow's looks around, and kept as plain data."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.private import lookup

# -- values ------------------------------------------------------------------------------------------------------------
# TensorFlow's treatment of values: conversions, their callers, and containers of several tensors.


def is_deterministic() -> bool | None:
    """Return whether `tf.config.experimental.enable_op_determinism` was called; None where that cannot be asked."""
    asked = lookup.find(lookup.DETERMINISM)
    return None if asked is None else bool(asked())


def composite_types() -> tuple[type, ...]:
    """The types of values that are made of several tensors: sparse, ragged, a user's own."""
    every = getattr(getattr(tf, "__internal__", None), "CompositeTensor", None)
    return (tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices) if every is None else (every,)


@contextlib.contextmanager
def asked_first(types: tuple[type, ...], conversion: Callable[..., Any]) -> Iterator[bool]:
    """Ask `conversion(value, dtype, name, as_ref)` before TensorFlow makes tensors of NumPy's arrays, inside.

    This holds for every thread until the block ends. Yields False where this version cannot.
    """
    registry = lookup.find(lookup.CONVERSIONS)
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
    """Return whether TensorFlow is computing `flag * x` of tensors, for which it converts both to bool."""
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
    """Return whether TensorFlow converts for one of Python's operators, not for a function that somebody called."""
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


# -- calls -------------------------------------------------------------------------------------------------------------

TENSOR_NOW = getattr(getattr(tf, "__internal__", None), "EagerTensor", None)
"""The class of tensors that are there, not symbols of a graph; None where this version has none."""
_TELLS = all(hasattr(TENSOR_NOW, name) for name in ("_datatype_enum", "_shape_tuple"))
"""True if tensors tell their dtype and shape without creating objects for them."""


def call(concrete: Any, arrays: Sequence[tf.Tensor], captured: Sequence[tf.Tensor] | None = None) -> Any:
    """Return the result of a concrete function on tensors of exactly its signature, and perhaps of its `captured` ones.

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
    small one; `call` looks for tapes, scopes and a structure of the results before it does that, in 32. Nobody else may
    want to see operations, or to cancel them: then the runtime is asked `_at_once`, in 0.7 of the time, without
    `context.call_function`. What fails is done once more by `call`, whose errors say where the operation was made.
    `compiled` tells that it is XLA's.
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
    run = _at_once(context, name.decode(), count, compiled)

    def directly(arrays: Sequence[tf.Tensor], captured: Sequence[tf.Tensor] = captured) -> Sequence[tf.Tensor]:
        try:
            return run([*arrays, *captured])
        except Exception:
            again: Sequence[tf.Tensor] = call(concrete, arrays, captured)
            return again

    return directly


def _at_once(
    context: Any, name: str, count: int, compiled: bool
) -> Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]]:
    """Return a faster `call_defined` of this function (0.7 of the time): it compares instead of looking up.

    It is `call_defined` itself where this version has no such way, where somebody replaces TensorFlow's way to execute,
    and where somebody may cancel what runs. The options of a call are about how TensorFlow's own kernels run; XLA does
    not ask for them, but to pass them costs a `compiled` function 2 us of 15.
    """
    execution, execute = lookup.find(lookup.EXECUTE), lookup.find(lookup.EXECUTE_NOW)
    cancelling, local = lookup.find(lookup.CANCELLING), getattr(context, "_thread_local_data", None)
    options, handle = getattr(context, "function_call_options", None), getattr(context, "_context_handle", None)
    plain = getattr(execution, "quick_execute", None)
    tells = hasattr(local, "device_name") and hasattr(options, "_config_proto_serialized")
    if execute is None or cancelling is None or plain is None or handle is None or local is None or not tells:
        return lambda given: call_defined(name, given, count)
    execute_now: Callable[..., Sequence[tf.Tensor]] = execute
    known: tuple[Any, Any, tuple[Any, ...]] = (None, None, ())

    def attributes() -> tuple[Any, ...]:
        nonlocal known
        options, (config, executor, found) = context.function_call_options, known
        if options._config_proto_serialized != config or options._executor_type != executor:
            found = tuple(part for attribute in options.as_attrs().items() for part in attribute)
            known = options._config_proto_serialized, options._executor_type, found
        return found

    def run(given: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        if execution.execute is not plain or cancelling() is not None:
            return call_defined(name, given, count)
        told = () if compiled else attributes()
        return execute_now(context._context_handle, local.device_name, name, given, told, count)

    return run


def has_begun() -> bool:
    """Return whether TensorFlow has begun, so that XLA may have read its flags. True where it cannot be asked."""
    known = lookup.find(lookup.CONTEXT)
    return bool(getattr(known and known(), "_initialized", True))


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
    """The `spec` of each value, the other way round of NumPy's arrays, in little time; None where one is neither."""
    found: list[tuple[Any, Any]] = []
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            found.append((value.shape, value.dtype))
        elif kind is TENSOR_NOW:
            found.append((value._datatype_enum(), value._shape_tuple()) if _TELLS else spec(value))
        else:
            return None
    return tuple(found)


def from_dlpack() -> Callable[[Any], tf.Tensor]:
    """The function from DLPack's capsules to tensors: TensorFlow's own, without what that asks before."""
    make, known = lookup.find(lookup.FROM_DLPACK), lookup.find(lookup.CONTEXT)
    public: Callable[[Any], tf.Tensor] = tf.experimental.dlpack.from_dlpack
    if make is None or not hasattr(known and known(), "_context_handle"):
        return public

    def tensor(capsule: Any) -> tf.Tensor:
        handle = known()._context_handle
        return public(capsule) if handle is None else make(capsule, handle)

    return tensor


def keeps_functions() -> bool:
    """Return whether `definitions`, `define` and `call_defined` work; otherwise no traced program is kept on disk."""
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
