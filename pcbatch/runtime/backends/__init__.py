"""Array-library backends behind one small protocol."""

from __future__ import annotations

from functools import cache

from pcbatch.runtime.backends.protocol import Backend


@cache
def backend_named(name: str) -> Backend:
    """The backend for an option's name; the array library is imported only now."""
    if name in ("tensorflow", "reference"):  # the reference machine runs TensorFlow's pieces eagerly
        from pcbatch.runtime.backends.tensorflow.backend import TensorFlowBackend

        return TensorFlowBackend()
    raise ValueError(f"no backend {name!r}")
