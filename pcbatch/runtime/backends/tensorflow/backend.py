"""The TensorFlow backend: the machine's array operations, compiled by XLA or run as a plain graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pcbatch.runtime.backends.tensorflow import plainly
from pcbatch.runtime.backends.tensorflow.parts.arrays import TensorFlowArrays
from pcbatch.runtime.backends.tensorflow.parts.control import TensorFlowControl
from pcbatch.runtime.backends.tensorflow.parts.host import TensorFlowHost
from pcbatch.runtime.backends.tensorflow.parts.pieces import TensorFlowPieces


class TensorFlowBackend(TensorFlowArrays, TensorFlowControl, TensorFlowPieces, TensorFlowHost):
    """See `protocol.Backend`."""

    name = "tensorflow"
    ops_module = "pcbatch.runtime.backends.tensorflow.ops"
    plain_builtins: Mapping[str, Callable[..., Any]] = plainly.PLAIN_BUILTINS
    plain_functions: Mapping[Any, Callable[..., Any]] = plainly.PLAIN_FUNCTIONS
