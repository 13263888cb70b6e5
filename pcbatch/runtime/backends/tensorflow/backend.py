"""The TensorFlow backend: the machine's array operations, compiled by XLA or run as a plain graph."""

from __future__ import annotations

from pcbatch.runtime.backends.tensorflow.parts.arrays import TensorFlowArrays
from pcbatch.runtime.backends.tensorflow.parts.control import TensorFlowControl
from pcbatch.runtime.backends.tensorflow.parts.host import TensorFlowHost
from pcbatch.runtime.backends.tensorflow.parts.pieces import TensorFlowPieces


class TensorFlowBackend(TensorFlowArrays, TensorFlowControl, TensorFlowPieces, TensorFlowHost):
    """See `protocol.Backend`."""

    name = "tensorflow"
    ops_module = "pcbatch.runtime.backends.tensorflow.ops"
