"""Features of XLA alone: detecting its compilation, slices with computed starts, modules of StableHLO."""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends import interop
from pcbatch.runtime.backends.tensorflow.private import lookup
from pcbatch.runtime.backends.tensorflow.private.graphs import add_function

# -- ffi ---------------------------------------------------------------------------------------------------------------
# XLA's foreign function interface: functions of machine code that TensorFlow's XLA calls by name.


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
    return table if _number(table + interop.API_MAJOR) == interop.MAJOR else None


def _number(address: int) -> int:
    return ctypes.c_int32.from_address(address).value


def handler_version() -> tuple[int, int] | None:
    """The version of the interface, which a handler has to tell; None where no handler can be registered."""
    table = _table()
    if table is None:
        return None
    return _number(table + interop.API_MAJOR), _number(table + interop.API_MINOR)


def register_handler(name: str, address: int) -> bool:
    """Let XLA call the handler at `address` by a name, on CPUs, for good; False where it does not take it."""
    table = _table()
    if table is None:
        return False
    size = _Registration.traits.offset + ctypes.sizeof(ctypes.c_uint32)
    told = _Registration(size, None, _Text.of(name), _Text.of("Host"), None, None, None, address, 0)
    register = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Registration))
    place = ctypes.c_size_t.from_address(table + interop.API_REGISTER).value
    return not register(place)(ctypes.byref(told))


# -- xla ---------------------------------------------------------------------------------------------------------------


def in_xla(graph: Any) -> bool | None:
    """Return whether XLA compiles the trace into `graph`; None where TensorFlow cannot be asked."""
    known = lookup.find(lookup.IN_XLA)
    if known is None:
        warnings.warn(f"{lookup.gone(lookup.IN_XLA)}: {_WITHOUT_IN_XLA}", RuntimeWarning, stacklevel=2)
        return None
    return bool(known(graph))


_WITHOUT_IN_XLA = (
    "everything is taken to run without XLA, so nothing is tuned to it, and a recursion or an assertion inside a "
    "function with jit_compile=True fails with a message of XLA's own"
)


def update_slice() -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor] | None:
    """XLA's `(array, part, starts) -> array` with `part` at `starts`; None where there is none."""
    return lookup.find(lookup.UPDATE_SLICE)


def dynamic_slice() -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor] | None:
    """XLA's `(array, starts, sizes) -> part` at `starts`; None where there is none."""
    return lookup.find(lookup.SLICE)


def has_modules() -> bool:
    """Return whether `call_module` works."""
    return lookup.find(lookup.MODULE) is not None


def call_module(
    module: str | bytes,
    inputs: Sequence[tf.Tensor],
    outputs: Sequence[tf.Tensor],
    function: Any = None,
    platform: str = "CPU",
) -> list[tf.Tensor]:
    """Call a module of StableHLO: return tensors like `outputs`. If it calls the number 0, that is `function`."""
    called = []
    if function is not None:
        add_function(tf.compat.v1.get_default_graph(), function)
        called.append(tf.compat.v1.NameAttrList(name=function.name))
    return list(
        lookup.needed(lookup.MODULE)(
            args=list(inputs),
            version=9,
            module=module,
            Tout=[output.dtype for output in outputs],
            Sout=[output.shape for output in outputs],
            platforms=[platform],
            function_list=called,
        )
    )


_LITERALS: dict[str, str] = {
    **{f"s{bits}s": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}s": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    "f16s": "<f2",
    "f32s": "<f4",
    "f64s": "<f8",
    "preds": "?",
}
"""The fields of a constant of HLO, each with the dtype of its numbers, as NumPy writes it."""


_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def compiler_ir(function: Any, specs: Sequence[tf.TensorSpec]) -> Callable[[str], Any]:
    """XLA's form of a `tf.function` by stage, as `experimental_get_compiler_ir` has it.

    That draws a random number to find the device, which takes 50 ms of a first call. Here it is the only CPU.
    """
    context = lookup.find(lookup.CONTEXT)
    lower = getattr(context and context(), "get_compiler_ir", None)
    if lower is None or tf.config.list_logical_devices("GPU"):
        return lambda stage: function.experimental_get_compiler_ir(*specs)(stage=stage)
    concrete = function.get_concrete_function(*specs)

    def of(stage: str) -> Any:
        found = lower(_CPU, None, concrete.name, [*specs], concrete.captured_inputs, stage)
        return found if stage.endswith("serialized") else found.decode()

    return of


def hlo_constants(module: bytes) -> dict[str, np.ndarray] | None:
    """The numbers of each constant of a serialised HLO module, row by row; None where TensorFlow cannot read one."""
    kind = lookup.find(lookup.HLO)
    if kind is None:
        return None
    read = kind()
    read.ParseFromString(module)
    found = {}
    for instruction in (each for computation in read.computations for each in computation.instructions):
        for field, value in instruction.literal.ListFields() if instruction.opcode == "constant" else ():
            if field.name in _LITERALS:
                dtype = np.dtype(_LITERALS[field.name])
                numbers = np.frombuffer(value, dtype) if isinstance(value, bytes) else np.array(list(value), dtype)
                found[instruction.name] = numbers
    return found
