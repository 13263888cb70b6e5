"""The TensorFlow backend."""

from pcbatch.runtime.backends.tensorflow import conversion
from pcbatch.runtime.backends.tensorflow.backend import TensorFlowBackend

__all__ = ["TensorFlowBackend", "conversion"]
