"""Kernels for a target: as PTX, the assembly of NVIDIA's GPUs, or as a handler of XLA's on a CPU, for tests.

Of mathematical functions a GPU has approximations only. The others are those of NVIDIA's `libdevice`, a library as
LLVM's bitcode, which CUDA and the wheels of TensorFlow, JAX and Triton for GPUs bring along.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from pcbatch.runtime.backends.protocol import Backend, Launch, Spec
from pcbatch.runtime.llvm import compiler, frame_text
from pcbatch.runtime.llvm.handler import named
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.interface import NAME
from pcbatch.runtime.llvm.kernel import THREAD, THREADS
from pcbatch.runtime.llvm.types import by_dtype

TRIPLE = "nvptx64-nvidia-cuda"
CARD, FEATURES = "sm_70", "+ptx70"
"""The oldest card and version of PTX: drivers translate it for all newer ones. They are those of CUDA 11.0."""
LIBDEVICE = "libdevice.10.bc"
FOLDERS = (
    *("nvidia/cuda_nvcc/nvvm/libdevice", "nvidia/cu13/nvvm/libdevice", "nvidia/cu12/nvvm/libdevice"),
    *("triton/backends/nvidia/lib", "jax_plugins/nvidia/cuda_nvcc/nvvm/libdevice"),
)
"""The places of the library in wheels."""
FUNCTIONS = (
    *("atan2", "cbrt", "cos", "erf", "exp", "expm1", "fmod", "hypot", "log", "log1p", "pow", "sin", "tan", "tanh"),
)
"""The functions that are called there."""
_DECLARED = re.compile(r'^declare (?:\w+ )?\S+ @"(?P<name>[^"]+)"', re.MULTILINE)
_KNOWN = re.compile(
    r"llvm\.(fabs|copysign|sqrt|floor|ceil|round|rint|ctpop|ctlz|fptosi\.sat|fptoui\.sat|memcpy|smax|smin)\..*"
)
_THREAD = f"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
define internal i64 @"{THREAD}"() alwaysinline {{
  %own = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %before = mul i32 %block, %size
  %all = add i32 %before, %own
  %wide = zext i32 %all to i64
  ret i64 %wide
}}
define internal i64 @"{THREADS}"() alwaysinline {{
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %all = mul i32 %blocks, %size
  %wide = zext i32 %all to i64
  ret i64 %wide
}}
"""
_ALONE = f"""
define internal i64 @"{THREAD}"() {{
  ret i64 0
}}
define internal i64 @"{THREADS}"() {{
  ret i64 1
}}
"""


@functools.cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        return llvm.Target.from_triple(TRIPLE)
    except RuntimeError:
        raise UnsupportedError("anything: this llvmlite has no compiler for NVIDIA's GPUs") from None


@functools.cache
def libdevice() -> bytes | None:
    """NVIDIA's library of mathematical functions; None where it is not found."""
    for folder in _folders():
        if (folder / LIBDEVICE).is_file():
            return (folder / LIBDEVICE).read_bytes()
    return None


def _folders() -> Iterator[Path]:
    flags = re.search(r"--xla_gpu_cuda_data_dir=(\S+)", os.environ.get("XLA_FLAGS", ""))
    told = [flags[1] if flags else None, os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for base in filter(None, told):
        yield Path(base) / "nvvm" / "libdevice"
    for each in FOLDERS:
        package, _, rest = each.partition("/")
        found = importlib.util.find_spec(package)
        for location in (found and found.submodule_search_locations) or ():
            yield Path(location) / rest
    yield from sorted(Path("/usr/local").glob("cuda-*/nvvm/libdevice"), reverse=True)


def ptx(text: str) -> str:
    """The text of a kernel for GPUs. UnsupportedError where there is something in it that these have not."""
    text, functions = renamed(text)
    if functions and libdevice() is None:
        raise UnsupportedError(
            f"{functions[0]}: it is a function of NVIDIA's {LIBDEVICE}, which was not found; tensorflow[and-cuda] "
            "brings it, or set CUDA_HOME"
        )
    text = _without_declarations(text).replace(f'define void @"{NAME}"(', f'define ptx_kernel void @"{NAME}"(')
    found: str = compiler.assembly(
        text + _THREAD, _target(), TRIPLE, CARD, FEATURES, libdevice() if functions else None
    )
    return found


def renamed(text: str) -> tuple[str, list[str]]:
    """The text with the library's names of functions, and those by their usual names.

    UnsupportedError for a function that GPUs do not have.
    """
    names: dict[str, str] = {}
    for name in {found["name"] for found in _DECLARED.finditer(text)} - {THREAD, THREADS}:
        plain, _, kind = name.removeprefix("llvm.").partition(".")
        if not kind and plain.endswith("f") and plain[:-1] in FUNCTIONS:
            plain, kind = plain[:-1], "f32"
        if plain in FUNCTIONS and kind in ("", "f32", "f64"):
            names[name] = f"__nv_{plain}{'f' if kind == 'f32' else ''}"
        elif not _KNOWN.fullmatch(name):
            raise UnsupportedError(f"the function {name}, which GPUs do not have")
    usual = sorted(name.removeprefix("llvm.").partition(".")[0] for name in names)
    return re.sub(r'@"([^"]+)"', lambda found: f'@"{names.get(found[1], found[1])}"', text), usual


def _without_declarations(text: str) -> str:
    """The text without the declarations of what a target defines."""
    return "\n".join(line for line in text.split("\n") if not line.startswith((_of(THREAD), _of(THREADS))))


def _of(name: str) -> str:
    return f'declare i64 @"{name}"('


# -- calls -------------------------------------------------------------------------------------------------------------


THREADS_OF_BLOCK, BLOCKS = 128, 2048
"""Threads of a block, and blocks of a launch at most: a thread runs several lanes where there are more."""
FEW = 32
"""Threads of a block where few lanes are to spread over all of the card: less than one block for each of its parts."""
PARTS = 132
_for_good: list[Any] = []
"""XLA forgets no handler."""


def grid(lanes: int | None) -> tuple[int, int]:
    """The blocks of a launch for so many lanes, and the threads of each."""
    if lanes is None:
        return BLOCKS, THREADS_OF_BLOCK
    threads = FEW if lanes <= FEW * PARTS else THREADS_OF_BLOCK
    return min(-(-lanes // threads), BLOCKS), threads


class Kernel:
    """A kernel as the programs of a backend call it: on the card, or on a CPU in its stead.

    `reads`, `outputs` and `changed` are those of `Handlers.call`; of the outputs only the ranks count.
    """

    def __init__(
        self, backend: Backend, text: str, reads: int, outputs: Sequence[Spec], changed: Sequence[int], name: str
    ):
        self._backend, self._changed = backend, changed
        renamed(text)  # what a GPU does not have is refused on a CPU in its stead, too
        self._ptx = self._name = ""
        if backend.handlers.kernels_on() == "GPU":
            self._ptx = ptx(text)
            return
        with backend.targeting("CPU"):
            version = backend.handlers.version()
        if version is None:
            raise UnsupportedError("kernels, which run nowhere here")
        self._name, code = named(name), compiler.object_code(handler(text, reads, outputs, changed, version))
        (address,), engine = compiler.addresses(code, (frame_text.NAME,))
        _for_good.append(engine)
        backend.handlers.register(self._name, address)

    def call(self, arrays: Sequence[Any], specs: Sequence[Spec], lanes: int | None) -> list[Any]:
        """The outputs, within a compiled program."""
        made = Launch(NAME, self._ptx, *grid(lanes)) if self._ptx else self._name
        return self._backend.handlers.call(made, arrays, specs, self._changed)


# -- on a CPU ----------------------------------------------------------------------------------------------------------


def handler(text: str, reads: int, outputs: Sequence[Spec], changed: Sequence[int], version: tuple[int, int]) -> str:
    """The text of a handler of XLA's that does on a CPU what a kernel does, one lane after the other.

    `reads`, `outputs` and `changed` are those of `Handlers.call`. `version` is that of XLA's interface, which it
    has to tell.
    """
    parts = _handler(reads, outputs, changed, version)
    return "\n".join([_without_declarations(text), _ALONE, *parts, "}", ""])


def _handler(reads: int, outputs: Sequence[Spec], changed: Sequence[int], version: tuple[int, int]) -> Iterator[str]:
    count = reads + len(outputs)
    yield "declare ptr @memcpy(ptr, ptr, i64)"
    yield f"define ptr @{frame_text.NAME}(ptr %frame) {{"
    yield from frame_text.about(version)
    yield "run:"
    yield from frame_text.buffers(reads, count)
    for number, source in enumerate(changed):
        dtype, shape = outputs[number]
        target, size = f"%array{reads + number}", str(by_dtype(dtype).bytes)
        yield f"%there{number} = icmp eq ptr %array{source}, {target}"
        yield f"br i1 %there{number}, label %ready{number}, label %apart{number}"
        yield f"apart{number}:"
        for axis, _ in enumerate(shape):
            yield frame_text.length(f"length{number}.{axis}", reads + number, axis)
            yield f"%size{number}.{axis} = mul i64 {size}, %length{number}.{axis}"
            size = f"%size{number}.{axis}"
        yield f"%copied{number} = call ptr @memcpy(ptr {target}, ptr %array{source}, i64 {size})"
        yield f"br label %ready{number}"
        yield f"ready{number}:"
    yield f'call void @"{NAME}"({", ".join(f"ptr %array{number}" for number in range(count))})'
    yield "ret ptr null"
