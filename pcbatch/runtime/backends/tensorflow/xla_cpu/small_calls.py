"""Small loops that XLA's CPU compiler makes one function of LLVM's, in which they are jumps and a scalar is a register.

XLA does so with what is called under the attribute `xla_cpu_small_call`. `XlaCallModule` lets a program ask for it: a
module of a few lines calls a TensorFlow function under this attribute. `lane_lists` has the figures.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import branches, private, raw_ops, xla_cpu
from pcbatch.runtime.backends.tensorflow.handlers import type_of

_numbers = itertools.count()

_MODULE = """module @pcbatch {{
  func.func public @main({parameters}) -> ({results}) {{
    {names} = func.call @native({arguments}) {{mhlo.frontend_attributes = {natively}}} : {signature}
    return {given} : {results}
  }}
  func.func private @native({parameters}) -> ({results}) {{
    {names} = stablehlo.custom_call @tf.call_tf_function({arguments}) {{tf.backend_config = {function}}} : {signature}
    return {given} : {results}
  }}
}}"""
_NATIVELY = '{xla_cpu_small_call = "true", inlineable = "false"}'
_FUNCTION = "{called_index = 0 : i64, has_token_input_output = false}"


def call(function: Callable[..., Sequence[tf.Tensor]], arrays: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """`function(*arrays)` as one function of LLVM's, where `are_made`. Its results depend on all arrays.

    XLA aborts the whole process if such a function has an argument that its results do not depend on.
    """
    graph = private.new_graph(f"pcbatch_native_{next(_numbers)}")
    with graph.as_default():
        given = [raw_ops.placeholder(array.dtype, tuple(array.shape)) for array in arrays]
        results = [private.capture(graph, result) for result in function(*given)]
        captured = private.captures(graph)
        graph.inputs = [*given, *(inner for _, inner in captured)]
        graph.outputs = results
    inputs, outputs = [*arrays, *(outer for outer, _ in captured)], graph.outputs
    return private.call_module(_module(inputs, outputs), inputs, outputs, private.function_of(graph))


def are_made() -> bool:
    """Return whether XLA compiles for a CPU and makes native functions when asked to."""
    return xla_cpu.is_on() and _has_parts() and _heeded()


def _has_parts() -> bool:
    """Return whether TensorFlow has all that this takes."""
    slices = private.dynamic_slice() is not None and private.update_slice() is not None
    return slices and private.makes_functions() and private.has_modules()


@functools.cache
def _heeded() -> bool:
    """Return whether XLA makes one function of a loop when asked to: its attribute may lose its meaning.

    A loop of one turn is compiled, in 0.1 s. What is a call to this attribute is one in the optimised program.
    """

    def twice(number: tf.Tensor) -> list[tf.Tensor]:
        with raw_ops.reusing():
            body = functools.partial(branches.loop, lambda x: x[0] < 10, lambda x: [x[0] + x[0]])
            return call(lambda x: body([x]), [number])

    with tf.init_scope():  # a graph may be under construction
        traced = tf.function(twice, jit_compile=True, autograph=False)
        text = traced.experimental_get_compiler_ir(tf.TensorSpec([], tf.int32))(stage="optimized_hlo")
    calls = [line for line in text.splitlines() if " call(" in line and 'xla_cpu_small_call="true"' in line]
    return bool(calls)


def _module(inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]) -> str:
    """The text of a module that calls the function number 0 natively."""
    types, results = [type_of(tensor) for tensor in inputs], ", ".join(map(type_of, outputs))
    names = [f"%r#{i}" for i, _ in enumerate(outputs)] if len(outputs) > 1 else ["%r"]
    return _MODULE.format(
        parameters=", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types)),
        arguments=", ".join(f"%a{i}" for i, _ in enumerate(types)),
        signature=f"({', '.join(types)}) -> ({results})",
        results=results,
        natively=_NATIVELY,
        function=_FUNCTION,
        names=f"%r:{len(outputs)}" if len(outputs) > 1 else "%r",
        given=", ".join(names),
    )
