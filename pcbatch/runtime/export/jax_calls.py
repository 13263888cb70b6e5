"""Modules of StableHLO as operations of JAX. Nothing here needs TensorFlow, and JAX is imported when it is needed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.runtime.export.template import filled

WIDE = ("int64", "uint64", "float64", "complex128")
"""The dtypes that JAX has only with `jax_enable_x64`."""


@dataclass(frozen=True, eq=False)
class Module:
    """A program as a text of StableHLO for each platform, its sizes open; see `template`.

    It takes a mask of lanes, bool `[lanes]`, and arrays, and gives arrays of the dtypes and shapes `gives`, None
    standing for the lanes.
    """

    name: str
    texts: Mapping[str, str]
    captured: Mapping[str, Sequence[np.ndarray]]
    gives: Sequence[tuple[str, tuple[int | None, ...]]]

    @cached_property
    def is_wide(self) -> bool:
        """Return whether it gives numbers of 64 bits."""
        return any(dtype in WIDE for dtype, _ in self.gives)

    def __call__(self, arrays: Sequence[Any], lanes: int, depth: int) -> list[Any]:
        """Run it on the mask and the arrays, or trace that; with stacks for so many live calls."""
        found: list[Any] = _operation().bind(*arrays, module=self, lanes=lanes, depth=depth)
        return found


def jax() -> ModuleType:
    """JAX; UsageError PCB581 where it is not installed."""
    try:
        import jax as found
        import jax.extend.core
        import jax.extend.mlir.dialects.func
        import jax.extend.mlir.ir
        import jax.interpreters.mlir
    except ImportError as error:
        raise UsageError(
            "PCB581", f"exported programs are run by JAX, which is not here ({error}); pip install 'jax>=0.8'"
        ) from None
    return found


def wide() -> contextlib.AbstractContextManager[Any]:
    """Numbers of 64 bits, inside."""
    found: contextlib.AbstractContextManager[Any] = jax().enable_x64(True)
    return found


def is_wide_now() -> bool:
    """Return whether JAX has numbers of 64 bits here."""
    return bool(jax().config.jax_enable_x64)


def is_array(value: Any) -> bool:
    """Return whether a value is an array of JAX, which may be traced."""
    return isinstance(value, jax().Array)


def is_traced(value: Any) -> bool:
    """Return whether a value stands for an array that is not there yet."""
    return isinstance(value, jax().core.Tracer)


@functools.cache
def _operation() -> Any:
    """The operation of JAX that runs a module."""
    found = jax()
    from jax.extend.core import Primitive
    from jax.interpreters import mlir

    operation = Primitive("pcbatch_exported")
    operation.multiple_results = True

    def abstract(*arrays: Any, module: Module, lanes: int, depth: int) -> list[Any]:
        return [
            found.core.ShapedArray(tuple(lanes if size is None else size for size in shape), np.dtype(dtype))
            for dtype, shape in module.gives
        ]

    operation.def_abstract_eval(abstract)
    operation.def_impl(lambda *arrays, **how: found.jit(partial(operation.bind, **how))(*arrays))
    mlir.register_lowering(operation, partial(_lowered, platform=None))
    for platform in ("cpu", "cuda", "rocm"):
        mlir.register_lowering(operation, partial(_lowered, platform=platform), platform=platform)
    return operation


def _lowered(context: Any, *values: Any, module: Module, lanes: int, depth: int, platform: str | None) -> Any:
    """The values that a call of the module gives, as MLIR has them."""
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import func
    from jax.interpreters import mlir

    if platform is None or platform not in module.texts:
        here = platform or "another device"
        raise UsageError(
            "PCB581",
            f"{module.name} was exported for {' and '.join(module.texts)}, and this is {here}; export it with "
            f"platforms=({platform or 'cpu'!r},), or run it under jax.default_device(jax.devices('cpu')[0])",
        )
    parsed = ir.Module.parse(filled(module.texts[platform], lanes, depth))
    results = ir.SymbolTable(parsed.operation)["main"].type.results
    name = mlir.merge_mlir_modules(context.module_context.module, module.name, parsed)
    constants = [mlir.ir_constant(each) for each in module.captured[platform]]
    return func.CallOp(results, ir.FlatSymbolRefAttr.get(name), [*values, *constants]).results
