"""The compiler of LLVM's text to machine code of this process."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from pcbatch.runtime.llvm import vector_library
from pcbatch.runtime.llvm.code import ARRAYS
from pcbatch.runtime.llvm.interface import LANES, NAME

PYTHON = (
    *("PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_CheckSignals", "PyErr_SetInterrupt"),
    *("PyErr_Occurred", "PyLong_AsSsize_t", "PyLong_FromSsize_t"),
)
"""The functions of Python that compiled code calls."""
LARGE, HUGE = 200_000, 1_000_000
"""Bytes of text beyond which LLVM optimises less: the full effort grows faster than programs do. Of large text it makes
no vectors of straight-line code: for a sampler of seven dimensions that takes 3.0 of 3.7 seconds, and gains 4%."""
DEPTH, USUAL_DEPTH = 3, 12
"""Levels of operands that LLVM follows where it makes vectors of straight-line code, and its own number."""
NEWEST = 22
"""The newest LLVM that is known to have this option: one that it does not know would end the process."""

_lock = threading.Lock()


@functools.cache
def _prepared() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in PYTHON:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        llvm.add_symbol(name, address)
    if vector_library.library() is not None:
        llvm.load_library_permanently(vector_library.LIBRARY)


@functools.cache
def _features() -> tuple[str, str]:
    """Return this processor's name and its features."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def width() -> int:
    """The number of lanes that run in a group: two vectors of 64 bits, so that one computes while the other waits."""
    features = llvm.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


def _level(text: str) -> int:
    return 3 if len(text) < LARGE else 2 if len(text) < HUGE else 1


def _machine(level: int) -> Any:
    cpu, features = _features()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=level, cpu=cpu, features=features, jit=True)


def optimized(text: str, level: int | None = None) -> tuple[Any, Any]:
    """A module of this text after LLVM's passes of a `level`, and the target that it is for."""
    _prepared()
    if level is None:
        level = _level(text)
    machine = _machine(level)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    if level and f"!{ARRAYS} = " in text:
        _run_passes(module, machine, level, loops=level > 1, lines=level > 2)
    elif level:
        _simplify(module, machine, level)
    return module, machine


def _simplify(module: Any, machine: Any, level: int) -> None:
    """Run the passes that look at one function at a time.

    The others take longer. Without loops over elements they gain nothing: of the cheap tasks' code, at most 3%.
    """
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
    passes = builder.getFunctionPassManager()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _run_passes(module: Any, machine: Any, level: int, loops: bool, lines: bool) -> None:
    """Run all passes; they make vectors of `loops`, and of `lines` that do the same, if that is wanted."""
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization, options.slp_vectorization = loops, lines
    builder = llvm.create_pass_builder(machine, options)
    _follow(DEPTH)
    try:
        builder.getModulePassManager().run(module, builder)
    finally:  # others compile with this library, too, such as Numba
        _follow(USUAL_DEPTH)


def _follow(depth: int) -> None:
    if llvm.llvm_version_info[0] <= NEWEST:
        llvm.set_option("", f"-slp-recursion-max-depth={depth}")


def assembly(text: str, target: Any, triple: str, cpu: str, features: str, library: bytes | None) -> str:
    """The assembly of the function `NAME` of a module for another `target`; it may call functions of a `library`."""
    with _lock:
        level = _level(text)
        machine = target.create_target_machine(opt=level, cpu=cpu, features=features)
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = triple, str(machine.target_data)
        if library is not None:
            linked = llvm.parse_bitcode(library)
            linked.triple, linked.data_layout = triple, str(machine.target_data)
            module.link_in(linked)
            for function in module.functions:
                if not function.is_declaration and function.name != NAME:
                    function.linkage = "internal"
            unused = llvm.create_new_module_pass_manager()
            unused.add_global_dead_code_eliminate_pass()
            unused.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
        _run_passes(module, machine, level, loops=False, lines=False)
        found: str = machine.emit_assembly(module)
        return found


def object_code(text: str, level: int | None = None) -> bytes:
    """The machine code of a module of this text, as an object file; of the `level` that its size asks for, else."""
    with _lock:
        module, machine = optimized(text, level)
        found: bytes = machine.emit_object(module)
    return found


def target() -> tuple[str, ...]:
    """The compiler and processor that machine code is for."""
    _prepared()
    has_vectors = "" if vector_library.library() is None else vector_library.LIBRARY
    return llvmlite.__version__, llvm.get_process_triple(), *_features(), has_vectors, str(DEPTH)


@dataclass(frozen=True)
class Loaded:
    """The functions of an object file, which live as long as this does."""

    call: Callable[..., None]
    run: int
    """The address of that."""
    lanes: int
    """The address of that that runs without Python."""
    engine: Any


def loaded(code: bytes) -> Loaded:
    """The functions `run` and `lanes` of machine code."""
    (run, lanes), engine = addresses(code, (NAME, LANES))
    return Loaded(ctypes.PYFUNCTYPE(None, ctypes.c_size_t)(run), run, lanes, engine)


def addresses(code: bytes, names: Sequence[str]) -> tuple[list[int], Any]:
    """Return the addresses of functions of an object file, valid as long as the second result lives."""
    _prepared()
    with _lock:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(0))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return [engine.get_function_address(name) for name in names], engine
