"""XLA's foreign function interface: functions of machine code that TensorFlow's XLA calls by name."""

from __future__ import annotations

import ctypes
import functools

from pcbatch.runtime.backends import call_frame
from pcbatch.runtime.backends.tensorflow.private import lookup


class _Text(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("length", ctypes.c_size_t))

    @classmethod
    def of(cls, text: str) -> _Text:
        encoded = text.encode()
        return cls(encoded, len(encoded))


class _Registration(ctypes.Structure):
    """`XLA_FFI_Handler_Register_Args`."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extensions", ctypes.c_void_p),
        ("name", _Text),
        ("platform", _Text),
        ("instantiate", ctypes.c_void_p),
        ("prepare", ctypes.c_void_p),
        ("initialize", ctypes.c_void_p),
        ("execute", ctypes.c_void_p),
        ("traits", ctypes.c_uint32),
    )


@functools.cache
def _table() -> int | None:
    """The address of the interface's functions; None where TensorFlow exports none, or others than we know."""
    function = lookup.exported(lookup.FFI)
    if function is None:
        return None
    function.restype = ctypes.c_void_p
    table: int = function()
    return table if _number(table + call_frame.API_MAJOR) == call_frame.MAJOR else None


def _number(address: int) -> int:
    return ctypes.c_int32.from_address(address).value


def handler_version() -> tuple[int, int] | None:
    """The version of the interface, which a handler has to tell; None where no handler can be registered."""
    table = _table()
    if table is None:
        return None
    return _number(table + call_frame.API_MAJOR), _number(table + call_frame.API_MINOR)


def register_handler(name: str, address: int) -> bool:
    """Let XLA call the handler at `address` by a name, on CPUs, for good; False where it does not take it."""
    table = _table()
    if table is None:
        return False
    size = _Registration.traits.offset + ctypes.sizeof(ctypes.c_uint32)
    told = _Registration(size, None, _Text.of(name), _Text.of("Host"), None, None, None, address, 0)
    register = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Registration))
    place = ctypes.c_size_t.from_address(table + call_frame.API_REGISTER).value
    return not register(place)(ctypes.byref(told))
