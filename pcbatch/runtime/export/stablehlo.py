"""StableHLO for any number of lanes: one text, fitted to the texts that XLA is given for some numbers; run by JAX.

Sizes in such a text are `a + b * lanes + c * depth + d * lanes * depth` with integers a to d. They are found from the
texts for several numbers of lanes and depths of stacks, all of which the fitted text must give again. Where it does
not, because an operation depends on sizes in another way, there is no such text.

Nothing here needs TensorFlow, and JAX is imported when it is needed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

from pcbatch.errors import UsageError

_LOCATION = re.compile(r' ?loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*\)')
_HEADER = re.compile(r'^module @(?:"[^"]*"|\S+).*\{$', re.MULTILINE)
_FUNCTION = re.compile(r'func\.func (?:private |public )?@("[^"]*"|[\w.$-]+)\(')
_SYMBOL = re.compile(r'@("[^"]*"|[\w.$-]+)')
_TOKEN = re.compile(r"(\d+)")
_CONSTANT = re.compile(r"^(\s*)(%[\w#]+) = stablehlo\.constant dense<(.*)> : tensor<(\d+)x((?:\d+x)*)(\w+)>$")
_DTYPES = {
    "i1": "bool",
    **{f"i{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
}
"""Elements of constants, as NumPy has them."""
_HOLE = re.compile(r"⟦(-?\d+),(-?\d+),(-?\d+),(-?\d+)⟧")
_CALLED = re.compile(r"stablehlo\.custom_call @(\"[^\"]*\"|[\w.$-]+)")


@dataclass(frozen=True)
class Sample:
    """The text of a program for a number of lanes and a depth of stacks."""

    lanes: int
    depth: int
    text: str


def plain(text: str) -> str:
    """A module's text without locations and names that differ from one process to the next."""
    lines = (line for line in _LOCATION.sub("", text).splitlines() if not line.startswith("#loc"))
    text = _HEADER.sub("module @pcbatch {", "\n".join(lines), count=1)
    names = [name for name in _FUNCTION.findall(text) if name != "main"]
    short = {name: f"f{number}" for number, name in enumerate(dict.fromkeys(names))}
    return _SYMBOL.sub(lambda found: f"@{short.get(found[1], found[1])}", text) + "\n"


def custom_calls(text: str) -> list[str]:
    """Return the names of a module's custom calls, which are no operations of StableHLO."""
    return [*dict.fromkeys(name.strip('"') for name in _CALLED.findall(text))]


def fitted(samples: Sequence[Sample]) -> str | None:
    """The text of which `samples` are instances, its sizes written `⟦a,b,c,d⟧`; None where there is none."""
    lines = [each.text.splitlines() for each in samples]
    if len({len(each) for each in lines}) != 1:
        return None
    fit = _Fit([(each.lanes, each.depth) for each in samples])
    found = []
    for number, same in enumerate(zip(*lines, strict=True)):
        line = same[0] if len({*same}) == 1 else _constant(same, fit, number) or _sizes(same, fit)
        if line is None:
            return None
        found.append(line)
    return "\n".join(found) + "\n"


def filled(text: str, lanes: int, depth: int) -> str:
    """The module's text for a number of lanes and a depth of stacks."""

    def number(found: re.Match[str]) -> str:
        a, b, c, d = map(int, found.groups())
        return str(a + b * lanes + c * depth + d * lanes * depth)

    return _HOLE.sub(number, text)


def varies(text: str) -> tuple[bool, bool]:
    """Return whether a fitted text depends on the number of lanes, and on the depth of stacks."""
    holes = [tuple(map(int, found)) for found in _HOLE.findall(text)]
    return any(b or d for _, b, _, d in holes), any(c or d for _, _, c, d in holes)


class _Fit:
    """Integers a to d for a number that differs by sample."""

    def __init__(self, sizes: Sequence[tuple[int, int]]):
        self._sizes = sizes
        terms: list[Callable[[int, int], int]] = [lambda lanes, depth: 1]
        self._places = [0]
        candidates: list[tuple[int, Callable[[int, int], int]]] = [
            (1, lambda lanes, depth: lanes),
            (2, lambda lanes, depth: depth),
            (3, lambda lanes, depth: lanes * depth),
        ]
        for place, term in candidates:  # what the samples do not tell apart is left out
            tried = np.array([[float(each(*size)) for each in [*terms, term]] for size in sizes])
            if np.linalg.matrix_rank(tried / np.abs(tried).max(axis=0)) == len(terms) + 1:
                terms.append(term)
                self._places.append(place)
        scaled = np.array([[float(each(*size)) for each in terms] for size in sizes])
        self._scale = np.abs(scaled).max(axis=0)
        self._inverse = np.linalg.pinv(scaled / self._scale)

    def hole(self, numbers: Sequence[int]) -> str | None:
        """The text of a size that has these values, by sample."""
        found = self._inverse @ np.array(numbers, float) / self._scale
        factors = [0, 0, 0, 0]
        for place, each in zip(self._places, found.tolist(), strict=True):
            factors[place] = round(each)
        hole = "⟦{},{},{},{}⟧".format(*factors)
        fits = all(filled(hole, *size) == str(each) for size, each in zip(self._sizes, numbers, strict=True))
        return hole if fits else None


def _sizes(lines: Sequence[str], fit: _Fit) -> str | None:
    """Return one line for all samples, whose texts differ in numbers."""
    parts = [_TOKEN.split(line) for line in lines]
    if len({len(each) for each in parts}) != 1:
        return None
    found = []
    for place, same in enumerate(zip(*parts, strict=True)):
        if len({*same}) == 1:
            found.append(same[0])
            continue
        part = fit.hole([*map(int, same)]) if place % 2 else None
        if part is None:
            return None
        found.append(part)
    return "".join(found)


def _constant(lines: Sequence[str], fit: _Fit, number: int) -> str | None:
    """A constant whose length differs by sample, as operations that make it: equal rows, or numbers at one distance.

    XLA is given all its numbers, where it was made of a length.
    """
    found = [each for each in map(_CONSTANT.match, lines) if each is not None]
    heads = {(each[1], each[2], each[5], each[6]) for each in found}
    if len(found) != len(lines) or len(heads) != 1:
        return None
    ((indent, name, inner, dtype),) = heads
    shape = tuple(int(size) for size in inner.split("x") if size)
    arrays = [_numbers(each[3], (int(each[4]), *shape), dtype) for each in found]
    known = [each for each in arrays if each is not None]
    length = fit.hole([int(each[4]) for each in found])
    if len(known) != len(arrays) or length is None:
        return None
    type_ = f"tensor<{length}x{inner}{dtype}>"
    scratch = [f"%pcbatch{number}_{place}" for place in range(4)]
    if all(each.tobytes() == known[0][:1].tobytes() * len(each) for each in known):
        row = next(each[3] for each in found)
        literal = _row(row) if row.startswith("[") else f'"0x{known[0][:1].tobytes().hex().upper()}"'
        dims = ", ".join(str(place + 1) for place in range(len(shape)))
        operations = [
            f"{scratch[0]} = stablehlo.constant dense<{literal}> : tensor<{inner}{dtype}>",
            f"{name} = stablehlo.broadcast_in_dim {scratch[0]}, dims = [{dims}] : (tensor<{inner}{dtype}>) -> {type_}",
        ]
        return "\n".join(indent + each for each in operations)
    if shape or dtype not in ("i32", "i64") or any(len({*np.diff(each).tolist()}) != 1 for each in known):
        return None
    first = fit.hole([int(each[0]) for each in known])
    step = fit.hole([int(each[1]) - int(each[0]) for each in known])
    if first is None or step is None:
        return None
    operations = [
        f"{scratch[0]} = stablehlo.iota dim = 0 : {type_}",
        f"{scratch[1]} = stablehlo.constant dense<{step}> : {type_}",
        f"{scratch[2]} = stablehlo.multiply {scratch[0]}, {scratch[1]} : {type_}",
        f"{scratch[3]} = stablehlo.constant dense<{first}> : {type_}",
        f"{name} = stablehlo.add {scratch[2]}, {scratch[3]} : {type_}",
    ]
    return "\n".join(indent + each for each in operations)


def _row(literal: str) -> str:
    """The text of the first row of nested lists: `[1, 2]` of `[[1, 2], [3, 4]]`."""
    inside, depth = literal[1:-1], 0
    for place, letter in enumerate(inside):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            return inside[:place]
    return inside


def _numbers(literal: str, shape: tuple[int, ...], dtype: str) -> np.ndarray | None:
    """The numbers of a constant that are written out, in hexadecimal or not; None where they cannot be read."""
    if dtype not in _DTYPES:
        return None
    try:
        if literal.startswith("["):
            return np.array(json.loads(literal), _DTYPES[dtype]).reshape(shape)
        if not literal.startswith('"0x'):
            return None
        content = bytes.fromhex(literal.strip('"')[2:])
        if dtype == "i1":
            bits = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")
            return bits[: math.prod(shape)].astype(bool).reshape(shape)
        return np.frombuffer(content, _DTYPES[dtype]).reshape(shape)
    except ValueError:  # such as numbers that are not finite
        return None


# -- calls by JAX ------------------------------------------------------------------------------------------------------


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
