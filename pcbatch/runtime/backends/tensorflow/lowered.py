"""A compiled program on disk as the text that XLA gets, in place of TensorFlow's functions.

XLA finds what it has compiled by a program's text in its own language, and TensorFlow makes that text anew in each
process, graph by graph and loop by loop: 2.1 s of the sampler's second process. So the text is what is kept, a module
of StableHLO in a function of one operation, `XlaCallModule`: with it XLA takes 0.5 s. It is made once, by the process
that compiles, and is what that process compiles, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private, prompt, traces
from pcbatch.runtime.backends.tensorflow.definitions import portable

STAGE = "stablehlo_serialized"
TEXT = "stablehlo"


class Traced:
    """A function traced for arrays of `specs`; see `control.Lowering`."""

    def __init__(self, function: Callable[..., Any], specs: Sequence[tf.TensorSpec]):
        self._specs = specs
        self._traced = tf.function(
            functools.partial(traces.remembering, function),
            jit_compile=True,
            autograph=False,
            experimental_attributes=private.unordered(),
        ).get_concrete_function(*specs)
        variables = {id(each.handle): each for each in self._traced.variables}
        self.captured = [_value(variables.get(id(each), each)) for each in self._traced.captured_inputs]

    def text(self, shapes: Sequence[tuple[int, ...]], place: str) -> str:
        """See `control.Lowering.text`."""
        signature = [tf.TensorSpec(shape, spec.dtype) for shape, spec in zip(shapes, self._specs, strict=True)]
        # What XLA reads must have no length unknown.
        fixed = tf.function(lambda *arrays: self._traced(*arrays), jit_compile=True, autograph=False)
        order = fixed.get_concrete_function(*signature).captured_inputs
        assert [*map(id, order)] == [*map(id, self._traced.captured_inputs)], "captured in another order"
        text = fixed.experimental_get_compiler_ir(*signature)
        found: str = prompt.off_thread(lambda: text(stage=TEXT, platform_name=place))
        return found


def _value(captured: tf.Tensor | tf.Variable) -> Any:
    """Return the present value of a captured array or variable; Ctrl-C's mark counts as not set."""
    return np.zeros(captured.shape, np.int32) if prompt.is_mark(captured) else np.asarray(captured)


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
