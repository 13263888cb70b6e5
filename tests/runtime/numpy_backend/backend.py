"""The backend as one object."""

from __future__ import annotations

from pcbatch.runtime.backends.protocol import Backend
from tests.runtime.numpy_backend.arrays import NumPyArrays
from tests.runtime.numpy_backend.control import NumPyControl
from tests.runtime.numpy_backend.host import NumPyHost
from tests.runtime.numpy_backend.pieces import NumPyPieces


class NumPyBackend(NumPyArrays, NumPyControl, NumPyPieces, NumPyHost):
    """See `protocol.Backend`."""


def numpy_backend() -> Backend:
    """A NumPy backend; here it is checked that it has all that a backend has."""
    return NumPyBackend()
