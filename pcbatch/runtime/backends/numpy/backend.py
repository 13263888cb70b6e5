"""The backend as one object."""

from __future__ import annotations

from pcbatch.runtime.backends.numpy.arrays import NumPyArrays
from pcbatch.runtime.backends.numpy.control import NumPyControl
from pcbatch.runtime.backends.numpy.host import NumPyHost
from pcbatch.runtime.backends.numpy.pieces import NumPyPieces
from pcbatch.runtime.backends.protocol import Backend


class NumPyBackend(NumPyArrays, NumPyControl, NumPyPieces, NumPyHost):
    """See `protocol.Backend`."""


def numpy_backend() -> Backend:
    """A NumPy backend; here it is checked that it has all that a backend has."""
    return NumPyBackend()
