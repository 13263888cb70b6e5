"""Runs the text of a generated program: as plain Python, whose answers are the truth, and in every way of pcbatch's."""

from __future__ import annotations

import ast
import linecache
import math
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from pcbatch import LaneStatus
from pcbatch.errors import CompileError
from pcbatch.ir import program as ir
from tests import kernels
from tests.harness import KERNEL, Lane, Mode, assert_same, leaves, outcomes, run_interpreted, run_lanes, run_python
from tests.stand_ins import Array, plain_module

LANES = 6
STEPS = 100_000
"""More loop turns and calls than any program takes: one that goes on for ever is wrong."""
REFUSABLE = {
    "PCB401": "a slice of known bounds that leaves the array, stored where one of its full length should be",
    "PCB204": "an element stored into a second name of a global array",
    "PCB205": "an element stored into an array that has another live name",
    "PCB211": "an object that a batched function has changed, read by its caller",
    "PCB420": "an element stored into an array that a helper gave back",
    "PCB404": "what a lane cannot keep, such as a lambda, used behind a branch, a loop or a call",
}
"""The codes by which a generated program may be refused, and what for."""
REFUSED = 0.07
"""The share of programs that may be refused so; second names of arrays and living lambdas are written on purpose."""
WILD = (math.nan, math.inf, -math.inf, 0.0, -0.0, 2.0**31, -(2.0**31), 2.0**31 - 128, 1.5, -0.25, 4.0, -7.5)
"""What the wild floats of examples are: 2**31 - 128 is the largest float32 that is an int32."""
WIDE = (2**31 - 1, -(2**31), 2**31 - 2, 1 - 2**31, 0, -1, 1, 5, 2**30, 123456789)
"""What the wide ints of examples are."""


def file_of(source: str) -> str:
    """A name for the file that a program would be in."""
    return f"<generated {zlib.crc32(source.encode()):08x}>"


@lru_cache(maxsize=8)
def code_of(source: str) -> CodeType:
    """The compiled text, which `inspect` finds."""
    file = file_of(source)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return compile(source, file, "exec")


def batched(source: str) -> Any:
    """The entry of a program."""
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(code_of(source), namespace)
    return namespace["main"]


# -- examples ----------------------------------------------------------------------------------------------------------


def batch(source: str) -> tuple[np.ndarray, ...]:
    """Arguments for LANES examples; the same ones for the same program."""
    rng = np.random.default_rng(zlib.crc32(source.encode()))
    return (
        rng.integers(0, 4, LANES, dtype=np.int32),
        rng.integers(-9, 10, LANES, dtype=np.int32),
        rng.integers(-9, 10, LANES, dtype=np.int32),
        (rng.integers(-16, 17, LANES) / 4).astype(np.float32),
        rng.integers(-9, 10, (LANES, 4), dtype=np.int32),
        rng.choice(np.array(WILD, np.float32), LANES),
        rng.choice(np.array(WIDE, np.int32), LANES),
        rng.integers(-9, 10, LANES, dtype=np.int32),
    )


def examples(source: str) -> Iterator[tuple[Any, ...]]:
    """The examples of `batch`, one after the other, as plain Python values."""
    for values in zip(*batch(source), strict=True):
        yield tuple(Array(value.tolist()) if value.ndim else value.item() for value in values)


# -- the truth ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def with_cut_slices(source: str) -> list[Lane]:
    """The same where Python's slices are cut short at the end of an array: those whose ends are known."""
    Array.are_cut = True
    try:
        return truth.__wrapped__(source)
    finally:
        Array.are_cut = False


@lru_cache(maxsize=8)
def truth(source: str) -> list[Lane]:
    """What Python makes of every example, batched functions being plain ones and the module new for each.

    Messages are kept where they are the program's own; those of a failed division or index are pcbatch's to word. No
    line is known of what fails in a lambda or a generator, which may stand elsewhere.
    """
    elsewhere = _kept(source)
    lanes = [run_python(plain_module(code_of(source))["main"], example) for example in examples(source)]
    lanes = [replace(lane, line=None) if lane.line in elsewhere else lane for lane in lanes]
    return [replace(lane, message="") if lane.status in ("ARITHMETIC", "INDEX") else lane for lane in lanes]


def _kept(source: str) -> set[int]:
    """The lines that assign a lambda or a generator to a variable."""
    assigned = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assign)]
    return {node.lineno for node in assigned if isinstance(node.value, ast.Lambda | ast.GeneratorExp)}


def compare(actual: list[Lane], source: str) -> None:
    """Every lane exactly: see `tests.generator` for why floats are exact.

    A slice that leaves its array fails the lane, or is cut short where its ends are known when the program is compiled.
    """
    for number, (got, lane) in enumerate(zip(actual, truth(source), strict=True)):
        if "INDEX" == lane.status != got.status:
            lane = with_cut_slices(source)[number]
        assert_same(got, lane, ("exact",) * len(list(leaves(lane.value))))


# -- pcbatch's answers -------------------------------------------------------------------------------------------------


STAGES = ("cfg", "stack", "optimized")


def check_interpreted(source: str) -> dict[str, ir.Program]:
    """The program after each part of the pipeline, as it is read, lowered and optimised, against plain Python.

    The stages by name.
    """
    function, arguments = batched(source).options(max_steps=STEPS), batch(source)
    for stage in STAGES:
        try:
            compare(run_interpreted(function, stage, arguments, LANES), source)
        except AssertionError as error:
            raise AssertionError(f"{stage}: {error}") from error
    return {stage: function.program(stage, *arguments) for stage in STAGES}


def check_single(source: str) -> None:
    """`f.single` of every example against plain Python."""
    function = batched(source)
    function.program("cfg", *batch(source))  # which may refuse it
    compare([run_python(function.single, example) for example in zip(*batch(source), strict=True)], source)


def check_run(source: str, mode: Mode) -> None:
    """A run of a batch against plain Python."""
    compare(run_lanes(batched(source), mode, batch(source), LANES)[0], source)


def check_limited(source: str, mode: Mode, max_depth: int, max_steps: int) -> None:
    """Statuses and steps of a run under limits against the interpreter of the IR, which Python's own answers judge."""
    limits = {"max_depth": max_depth, "max_steps": max_steps}
    function = batched(source).options(**limits, **mode.options)
    with kernels.forced() if mode == KERNEL else nullcontext():
        run = function.run(*batch(source))
    wanted = list(outcomes(function, "cfg", batch(source), LANES, **limits))
    assert [LaneStatus(int(status)).name for status in run.status] == [outcome.status for outcome in wanted]
    assert np.asarray(run.outcome.steps).tolist() == [outcome.steps for outcome in wanted]


def refused(error: CompileError) -> bool:
    """Whether a program may be refused so; every diagnostic must be of such a code."""
    return all(diagnostic.code in REFUSABLE for diagnostic in error.diagnostics)
