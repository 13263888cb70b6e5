"""Programs as TensorFlow's functions: traced and compiled when first needed, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import xla_cpu


class Traced:
    """A `tf.function` that is a graph even where `tf.config.run_functions_eagerly(True)` is set for the user's own.

    `make()` gives the function anew: one is kept for programs that are tuned to XLA's CPU compiler, one for plain ones.
    """

    def __init__(self, make: Callable[[], Any]):
        self._make = make
        self._made: dict[bool, Any] = {}

    @property
    def function(self) -> Any:
        """The function for programs as they are traced now."""
        on = xla_cpu.is_on()
        if on not in self._made:
            self._made[on] = self._make()
        return self._made[on]

    @property
    def get_concrete_function(self) -> Any:
        """That of `tf.function`."""
        return self.function.get_concrete_function

    @property
    def experimental_get_compiler_ir(self) -> Any:
        """That of `tf.function`."""
        return self.function.experimental_get_compiler_ir

    def __call__(self, *arrays: Any) -> Any:
        """Run it."""
        if tf.config.functions_run_eagerly():
            return self.get_concrete_function(*arrays)(*arrays)
        return self.function(*arrays)
