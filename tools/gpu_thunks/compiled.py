"""A program as XLA compiles it for a GPU: traced in one process, compiled in another, whose dumps are read."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tools.gpu_thunks.thunks import Counts, Executed, Trip, names_of, parsed
from tools.gpu_thunks.titles import GRADIENTS
from tools.gpu_thunks.traffic import Traffic

PLUGIN = "jax_plugins.xla_cuda13"
ROOT = Path(__file__).parent.parent.parent
FLAGS: dict[str, tuple[str, ...]] = {
    "default": ("--xla_gpu_enable_command_buffer=-CONDITIONAL,-WHILE", "--xla_gpu_graph_min_graph_size=5"),
    "device loops": ("--xla_gpu_enable_command_buffer=+CONDITIONAL,+WHILE", "--xla_gpu_graph_min_graph_size=1"),
}
"""XLA's flags by name: those that TensorFlow 2.21 has unasked, and the two that leave loops to the device."""


def is_installed() -> bool:
    """Tell whether XLA for CUDA is there."""
    try:
        return importlib.util.find_spec(PLUGIN) is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True)
class Compiled:
    """One compiled program: all that is executed, its loops taken once, and a trip of each of the machine's loops.

    `gradient` are the bytes that the gradient of a trip moves where it is a program of its own.
    """

    name: str
    whole: Counts
    trips: list[Trip]
    gradient: float = 0


def _run(module: str, arguments: Sequence[str], flags: Sequence[str]) -> None:
    """Run a script of this package under flags of XLA's."""
    environment = {**os.environ, "XLA_FLAGS": " ".join(flags), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", f"tools.gpu_thunks.{module}", *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")


def _emptied(folder: Path) -> None:
    """A folder in which nothing is left of another time."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def traced(program: str, folder: Path) -> list[Path]:
    """The programs, before anything is optimised, that running `program` has XLA compile; those with loops, if any."""
    _emptied(folder)
    dump = [f"--xla_dump_to={folder}", "--xla_dump_hlo_as_proto", "--xla_dump_emitter_re=^$"]
    _run("programs", [program], dump)
    files = sorted(folder.glob("*.before_optimizations.hlo.pb"))
    return [file for file in files if b"while" in file.read_bytes()] or files


def compiled(files: Sequence[Path], folder: Path, flags: Sequence[str], turns: int = 1) -> list[Compiled]:
    """The parts that XLA makes of these programs under `flags`; a loop whose turns nobody knows makes so many."""
    _emptied(folder)
    dump = [f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text", "--xla_gpu_autotune_level=0"]
    _run("compiling", [str(file) for file in files], [*dump, *flags])
    found = []
    for first in sorted(folder.glob("*.thunk_sequence.txt")):
        name = first.name.removesuffix(".thunk_sequence.txt")
        last = folder / f"{name}.thunk_sequence_after_thunk_passes.txt"
        sequence = last if last.exists() else first  # where no pass changes it there is no second dump
        (text,) = folder.glob(f"{name}.*gpu_after_optimizations.txt")
        traffic = Traffic(text.read_text("utf-8"))
        names = names_of((folder / f"{name}.thunk_metadata.txt").read_text("utf-8"))
        thunks = parsed(sequence.read_text("utf-8"), names)
        executed = Executed(traffic, turns)
        found.append(Compiled(name, executed.of(thunks), executed.trips(thunks)))
    return found


def counted(
    program: str, flags: Mapping[str, Sequence[str]], turns: int = 1, keep: Path | None = None
) -> dict[str, list[Compiled]]:
    """The parts that XLA makes of one of `PROGRAMS`, by the name of the flags; all files stay in `keep`, if given."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        files = {name: traced(name, folder / name / "traced") for name in (program, GRADIENTS.get(program, program))}
        found: dict[str, list[Compiled]] = {}
        for number, (name, given) in enumerate(flags.items()):
            of = {each: compiled(files[each], folder / each / f"compiled-{number}", given, turns) for each in files}
            moved = sum(each.whole.bytes for each in of[GRADIENTS[program]]) if program in GRADIENTS else 0
            found[name] = [replace(each, gradient=moved) for each in of[program]]
        return found
