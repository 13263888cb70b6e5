"""A compiled program on disk as the text that XLA gets, in place of TensorFlow's functions.

XLA finds what it has compiled by a program's text in its own language, and TensorFlow makes that text anew in each
process, graph by graph and loop by loop: 2.1 s of the sampler's second process. So the text is what is kept, a module
of StableHLO in a function of one operation, `XlaCallModule`: with it XLA takes 0.5 s. It is made once, by the process
that compiles, and is what that process compiles, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private
from pcbatch.runtime.backends.tensorflow.definitions import portable

STAGE = "stablehlo_serialized"


def lowered(function: Any, concrete: Any, arrays: Sequence[tf.Tensor]) -> tuple[str, list[Any]] | None:
    """The name of a function like `concrete`, compiled from a module, and its `FunctionDef`s.

    `concrete` is what the `tf.function` is for `arrays`; the new one takes what that captures behind them. None where
    there is no such module: on a GPU, in a TensorFlow that has none to give, or where a shape depends on an argument.
    """
    if graphs.on_gpu() or not private.has_modules():
        return None
    given = [*arrays, *concrete.captured_inputs]
    try:
        module = function.experimental_get_compiler_ir(*arrays)(stage=STAGE)

        def whole(*inputs: tf.Tensor) -> list[tf.Tensor]:
            return private.call_module(module, inputs, concrete.outputs)

        traced = tf.function(whole, jit_compile=True, autograph=False)
        specs = [tf.TensorSpec(array.shape, array.dtype) for array in given]
        return portable(*private.definitions(traced.get_concrete_function(*specs)))
    except Exception:  # TensorFlow's functions do as well, and say themselves what is wrong with them
        return None
