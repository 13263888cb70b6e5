"""`f.export`: a batched function as a file of StableHLO, which JAX runs without TensorFlow and pcbatch's compiler.

The program is the machine's in lockstep, whatever form it has here: native code is of this machine. Its text is made
once for each platform and fits any number of lanes and any size of stacks, where that can be said in one text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.function.arguments import Arguments
from pcbatch.function.call_api import Calls
from pcbatch.function.executing import called_within, exportable
from pcbatch.function.pipeline import Pipeline
from pcbatch.ir.machine import Program
from pcbatch.ir.types import Type, leaves
from pcbatch.lowering.captures.captured import Captured
from pcbatch.options import Options
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.export import file, stablehlo
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.state import FIRST_CAPACITY, GROWTH, Limits
from pcbatch.runtime.resume.savefile import checked_path

PLACES = {"cpu": "CPU", "cuda": "GPU", "rocm": "GPU"}
"""The platforms, as JAX calls them, and what pcbatch compiles for them."""
LANES = (2, 3, 17, 67, 521)
"""The numbers of lanes for which a text is made that is to fit all others from the first on.

The first `FEWEST` of them must fit; for many lanes TensorFlow may write large arrays in another way.
"""
FEWEST = 3
SHALLOW, DEEP = 20, 500
"""Depths of stacks, likewise: with many lanes small ones, since arrays of a known content are made in full."""
MOST_LANES = 2**24
"""The most lanes of one run; more are run in parts."""
_DEFAULT = ("strategy", "form", "fork", "progress", "resume", "trace", "backend", "jit", "max_lanes", "output")
PLAIN = {name: vars(Options())[name] for name in _DEFAULT}
"""The options that an exported program has, whatever those of the function are."""
RUNNABLE = ("mhlo.", "chlo.", "Sharding", "stablehlo.")
"""Prefixes of the operations that JAX runs beside those of StableHLO."""


def export(
    function: Calls[..., Any],
    path: str | os.PathLike[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    platforms: Sequence[str],
) -> None:
    """Write `function`, under `PLAIN` options, for arguments like these to `path`; see `Batched.export`."""
    checked_path(path)
    platforms = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    if not platforms or any(each not in PLACES for each in platforms):
        raise UsageError("PCB582", f"platforms are one or more of {', '.join(map(repr, PLACES))}, not {platforms!r}")
    backend = backend_named("tensorflow")
    if not backend.runs_now():
        raise UsageError("PCB582", f"{function.__name__}.export writes a file; call it outside of a graph")
    blanks = function.session.blanks(args, kwargs)
    given = function.session.bind(blanks.args, blanks.kwargs)
    pipeline, captured = function.session.compiled_for(given)
    texts = {}
    for platform in dict.fromkeys(platforms):
        with backend.targeting(PLACES[platform]), explaining(pipeline.table, backend, jit=True):
            texts[platform] = _text(pipeline, given.lanes, PLACES[platform])
    limits = Limits.of(pipeline.options.max_depth, None)
    grows = any(stablehlo.varies(each.text)[1] for each in texts.values())
    inputs, operands = _inputs(pipeline, given, captured)
    sizes = {n: repr(v) for n, v in given.defaults.items() if not pipeline.read.reading.parameters[n]}
    types = {name: type_ for name, type_ in given.types.items() if name not in sizes}
    contents = file.Contents(
        parameters=types,
        for_all=_for_all(pipeline, given),
        by_name=[n for n, each in function.__signature__.parameters.items() if each.kind is each.KEYWORD_ONLY],
        inputs=inputs,
        operands=operands,
        texts={platform: each.text for platform, each in texts.items()},
        captured={platform: each.captured for platform, each in texts.items()},
        lanes=(max(each.lanes[0] for each in texts.values()), min(each.lanes[1] for each in texts.values())),
        depths=_depths(limits) if grows else [limits.max_depth],
        program=pipeline.table,
        defaults=_defaults(function, given, types, args, kwargs),
        statics={**{name: repr(value) for name, value in given.statics.items()}, **sizes},
    )
    file.write(path, contents)


class _Text:
    """A fitted text: its captured arrays, and the smallest and the largest number of lanes that it serves."""

    def __init__(self, text: str, captured: Sequence[np.ndarray], lanes: tuple[int, int]):
        self.text, self.captured, self.lanes = text, captured, lanes


def _text(pipeline: Pipeline, lanes: int, place: str) -> _Text:
    """The text of a program for any number of lanes, else for `lanes`."""
    program, backend, depth = (
        pipeline.table,
        pipeline.environment.backend,
        Limits.of(pipeline.options.max_depth, None).max_depth,
    )
    called = called_within(program, backend)
    if called:
        raise UsageError(
            "PCB582",
            f"{program.name} cannot be exported: a piece of it calls `{called[0]}`, which is a run of its own; call "
            f"`{called[0]}` in {program.name} itself, or in a function that it calls by its name",
        )
    samples: list[stablehlo.Sample] = []
    captured: list[np.ndarray] = []

    def sample(depth: int, numbers: Sequence[int]) -> None:
        machine = exportable(program, pipeline.options, depth)
        lowering, specs = backend.lowering(machine.as_function(), machine.function_specs), machine.function_specs
        captured[:] = lowering.captured
        for number in numbers:
            shapes = [tuple(number if size is None else size for size in shape) for _, shape in specs]
            text = stablehlo.plain(lowering.text(shapes, place))
            _refuse_calls(program, text)
            samples.append(stablehlo.Sample(number, depth, text))

    odd = depth % 2  # stacks have room for an even number of calls
    if depth < DEEP or not exportable(program, pipeline.options, depth).stack_entries:
        sample(depth, LANES)
    else:
        sample(SHALLOW + odd, LANES)
        sample(DEEP + odd, LANES[1:3])
    for largest in reversed(LANES[FEWEST - 1 :]):
        found = stablehlo.fitted([each for each in samples if each.lanes <= largest])
        if found is not None:
            return _Text(found, captured, (LANES[0], MOST_LANES))
    samples.clear()
    sample(depth, [max(lanes, 1)])
    return _Text(samples[0].text, captured, (samples[0].lanes, samples[0].lanes))


def _refuse_calls(program: Program, text: str) -> None:
    """Refuse calls into this process's code, which no other process has."""
    foreign = [name for name in stablehlo.custom_calls(text) if not name.startswith(RUNNABLE)]
    if foreign:
        raise UsageError(
            "PCB582",
            f"{program.name} cannot be exported: it calls `{foreign[0]}`, which is no part of StableHLO; leave away "
            "what calls Python or a library (tf.py_function, tf.print)",
        )


def _inputs(pipeline: Pipeline, given: Arguments, captured: Captured) -> tuple[list[file.Input], list[np.ndarray]]:
    """Return the program's inputs, in order, and the arrays that it captures."""
    program, names, number = pipeline.table, pipeline.parameters(), 0
    places: dict[str, int] = {}
    for user, type_ in given.types.items():
        flat = pipeline.read.reading.parameters[user]
        if not flat and user in given.defaults:
            continue  # its value is a size, and in the text
        for name in flat:
            places[name] = number
            number += 1
        assert len(flat) == len([*leaves(type_)]), user
    inputs, operands = [], []
    for name in program.parameters:
        (leaf,) = leaves(program.types[name])
        inputs.append(file.Input(places[names[name]], leaf.dtype, leaf.shape, lanes=True))
    for name in program.shared:
        for place, leaf in enumerate(leaves(program.shared_types[name])):
            argument = places.get(names.get(name, ""))
            inputs.append(file.Input(argument, leaf.dtype, leaf.shape, lanes=False))
            if argument is None:
                operands.append(np.asarray(captured.leaves[name][place]))
    return inputs, operands


def _for_all(pipeline: Pipeline, given: Arguments) -> list[str]:
    """The parameters of which the program knows one value for all lanes."""
    names, flat = pipeline.parameters(), pipeline.read.reading.parameters
    shared = {names[name] for name in pipeline.table.shared if name in names}
    return [user for user in given.types if shared.intersection(flat[user])]


def _defaults(
    function: Any, given: Arguments, types: Mapping[str, Type], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, list[np.ndarray]]:
    """The arrays of arguments that were left out."""
    known = {name: value for name, value in kwargs.items() if name in function.__signature__.parameters}
    passed = function.__signature__.bind(*args, **known).arguments
    return {
        name: [np.asarray(leaf, each.dtype) for leaf, each in zip(given.leaves[name], leaves(type_), strict=True)]
        for name, type_ in types.items()
        if name not in passed
    }


def _depths(limits: Limits) -> list[int]:
    """The depths that stacks grow through, all even or all odd, as the largest one."""
    first = min(FIRST_CAPACITY + limits.max_depth % 2, limits.max_depth)
    found = [first]
    while found[-1] < limits.max_depth:
        found.append(min(found[-1] * GROWTH + limits.max_depth % 2, limits.max_depth))
    return found
