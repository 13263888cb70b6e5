"""Generated programs: Python's own answer, lane by lane, against the IR's interpreter and every way to run a batch."""

from __future__ import annotations

import ast
import linecache
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from pcbatch.ir import program as ir
from pcbatch.ir.evaluation import copy_store, python_evaluate
from pcbatch.ir.interpreter import interpret
from tests.generator import programs
from tests.harness import GRAPH, REFERENCE, XLA, Lane, Mode, assert_same, leaves, run_lanes, run_python
from tests.program_features import features

LANES = 6
QUICK = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
COMPILED = settings(QUICK, phases=[Phase.explicit, Phase.generate])
"""For tests in which each try costs a compilation: a failure is shown as it was found, not shrunk."""


# -- running a program's text ------------------------------------------------------------------------------------------


class Array:
    """A lane array of plain Python numbers, which divide by zero and index out of range as Python's do.

    A slice has a fixed length: one that leaves the array is an IndexError.
    """

    def __init__(self, numbers: Iterable[int]):
        self.numbers = [int(number) for number in numbers]

    def __len__(self) -> int:
        return len(self.numbers)

    def _places(self, index: Any) -> list[int]:
        """The positions that a slice or a vector of positions has."""
        if not isinstance(index, slice):
            return [int(position) for position in index]
        places = list(range(len(self)))[index]
        if None not in (index.start, index.stop) and len(places) != index.stop - index.start:
            raise IndexError("the slice leaves the array")
        return places

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Array(self.numbers[place] for place in self._places(index))
        return self.numbers[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, tuple):
            (index,) = index
        if isinstance(index, int):
            self.numbers[index] = int(value)
            return
        places = self._places(index)
        values = list(value) if isinstance(value, Iterable) else [value] * len(places)
        for place, number in zip(places, map(int, values), strict=True):
            self.numbers[place] = number

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __add__(self, other: Any) -> Array:
        others = list(other) if isinstance(other, Iterable) else [other] * len(self)
        return Array(number + each for number, each in zip(self.numbers, others, strict=True))

    def __mod__(self, other: int) -> Array:
        return Array(number % other for number in self.numbers)

    def copy(self) -> Array:
        return Array(self.numbers)


def by_value(function: Callable[..., Any] | None = None, static_argnames: str = "") -> Callable[..., Any]:
    """What stands for `pcbatch.autobatch` when Python runs a program: arrays are values, so a callee gets copies."""
    if function is None:
        return by_value

    def copied(value: Any) -> Any:
        return value.copy() if isinstance(value, Array) else value

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(copied, args), **{name: copied(value) for name, value in kwargs.items()})

    return call


def file_of(source: str) -> str:
    """A name for the file that a program would be in."""
    return f"<generated {zlib.crc32(source.encode()):08x}>"


def batched(source: str) -> Any:
    """The entry of a program, its text where `inspect` finds it."""
    file = file_of(source)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(source, file, "exec"), namespace)
    return namespace["main"]


def batch(source: str) -> tuple[np.ndarray, ...]:
    """Arguments for LANES examples; the same ones for the same program."""
    rng = np.random.default_rng(zlib.crc32(source.encode()))
    return (
        rng.integers(0, 4, LANES, dtype=np.int32),
        rng.integers(-9, 10, LANES, dtype=np.int32),
        rng.integers(-9, 10, LANES, dtype=np.int32),
        (rng.integers(-16, 17, LANES) / 4).astype(np.float32),
        rng.integers(-9, 10, (LANES, 4), dtype=np.int32),
    )


def examples(source: str) -> Iterator[tuple[Any, ...]]:
    """The examples of `batch`, one after the other, as plain Python values."""
    for *numbers, array in zip(*batch(source), strict=True):
        yield (*(number.item() for number in numbers), Array(array.tolist()))


def truth(source: str) -> list[Lane]:
    """What Python makes of every example, batched functions being plain ones.

    Messages are kept where they are the program's own; those of a failed division or index are pcbatch's to word.
    """
    namespace: dict[str, Any] = {"pcbatch": SimpleNamespace(autobatch=by_value, sync=lambda: None)}
    exec(compile(source.replace("import pcbatch", "", 1), file_of(source), "exec"), namespace)
    lanes = [run_python(namespace["main"], example) for example in examples(source)]
    return [replace(lane, message="") if lane.status in ("ARITHMETIC", "INDEX") else lane for lane in lanes]


def compare(actual: list[Lane], wanted: list[Lane]) -> None:
    """Every lane exactly: see `tests.generator` for why floats are exact."""
    for got, lane in zip(actual, wanted, strict=True):
        assert_same(got, lane, ("exact",) * len(list(leaves(lane.value))))


def check(source: str, mode: Mode) -> None:
    note(source)
    compare(run_lanes(batched(source), mode, batch(source), LANES)[0], truth(source))


# -- the tests ---------------------------------------------------------------------------------------------------------


def _axis(array: Array, axis: int) -> Array:
    return Array(range(len(array)))


def _elements(array: Array, places: Array) -> Array:
    return Array(array[place] for place in places)


def interpreted(program: ir.Program, source: str) -> list[Lane]:
    """Every example through the interpreter of the IR, on plain Python values."""
    module: dict[str, Any] = {"pcbatch": SimpleNamespace(autobatch=by_value, sync=lambda: None)}
    exec(source.replace("import pcbatch", "", 1), module)
    free = {"Pair": module["Pair"], "math": math, "__axis__": _axis, "__elements__": _elements}
    evaluate = python_evaluate({function.name: free for function in program.functions})
    outcomes = [interpret(program, example, evaluate, copy_store) for example in examples(source)]
    return [Lane(o.status, o.value, o.message, o.span and o.span.line) for o in outcomes]


@settings(QUICK, max_examples=300)
@given(programs())
def test_interpreters(source: str) -> None:
    note(source)
    function, wanted = batched(source), truth(source)
    for stage in ("cfg", "stack", "optimized"):
        compare(interpreted(function.program(stage), source), wanted)


@settings(QUICK, max_examples=40)
@given(programs())
def test_single(source: str) -> None:
    note(source)
    function = batched(source)
    compare([run_python(function.single, example) for example in zip(*batch(source), strict=True)], truth(source))


@settings(COMPILED, max_examples=80)
@given(programs(), st.sampled_from(REFERENCE))
def test_reference(source: str, mode: Mode) -> None:
    check(source, mode)


@settings(COMPILED, max_examples=15)
@given(programs(), st.sampled_from(GRAPH))
def test_graph(source: str, mode: Mode) -> None:
    check(source, mode)


@settings(COMPILED, max_examples=6)
@given(programs(), st.sampled_from(XLA))
def test_xla(source: str, mode: Mode) -> None:
    check(source, mode)


@pytest.mark.slow
@settings(QUICK, max_examples=3000)
@given(programs())
def test_interpreters_at_length(source: str) -> None:
    test_interpreters.hypothesis.inner_test(source)


@pytest.mark.slow
@settings(COMPILED, max_examples=200)
@given(programs(), st.sampled_from(GRAPH + XLA))
def test_machines_at_length(source: str, mode: Mode) -> None:
    check(source, mode)


# -- what the generator covers -----------------------------------------------------------------------------------------

SAMPLE = 150
FLOORS = {
    **dict.fromkeys(("Primitive", "Call", "Jump", "Branch", "Return", "Push", "Pop", "PushJump"), 60),
    **dict.fromkeys(("Store", "Update", "Fault", "loop turn"), 40),
    **dict.fromkeys(("while", "for", "nested loops", "break", "continue", "early return in a loop"), 20),
    **dict.fromkeys(("two call sites", "call in a loop", "self-recursion"), 40),
    **dict.fromkeys(("call in a call", "call in a condition", "call returned as it is"), 15),
    **dict.fromkeys(("int", "float", "bool", "tuple", "array"), 40),
    **dict.fromkeys(("//", "%", "and", "or", "not", "conditional expression"), 40),
    **dict.fromkeys(
        ("chained assignment", "chained comparison", "unpacking", "augmented assignment", "augmented store"), 20
    ),
    **dict.fromkeys(("assert", "raise", "keyword arguments"), 20),
    **dict.fromkeys(("match", "walrus", "in", "not in", "math", "field", "dict", "bitwise operator"), 10),
    **dict.fromkeys(("loop else", "slice", "slice store", "static parameter", "starred"), 10),
    **dict.fromkeys(("enumerate", "zip", "reversed", "guard", "loop over a tuple", "mutual recursion"), 4),
    **dict.fromkeys(("shift", "loop over an array"), 1),
}
"""In how many programs of the sample each must occur at least."""
STATUS_FLOORS = {"OK": 500, "RAISED": 3, "ASSERTION": 3, "ARITHMETIC": 5, "INDEX": 5}
"""How many lanes of the sample must end so at least."""


def sample() -> list[str]:
    """The same SAMPLE different programs every time."""
    found: dict[str, None] = {}

    @settings(QUICK, max_examples=2 * SAMPLE, phases=[Phase.generate])
    @given(programs())
    def collect(source: str) -> None:
        found.setdefault(source)

    collect()
    assert len(found) >= SAMPLE
    return list(found)[:SAMPLE]


def test_what_the_generator_covers(record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for source in sample():
        function = batched(source)
        stages = [function.program(stage) for stage in ("cfg", "stack", "optimized")]
        counts.update(features(ast.parse(source), stages))
        statuses.update(lane.status for lane in truth(source))
    report = [f"{name:24} {count:4} of {SAMPLE} programs" for name, count in sorted(counts.items())]
    report += [f"{name:24} {count:4} of {SAMPLE * LANES} lanes" for name, count in sorted(statuses.items())]
    record_property("what generated programs cover", "\n".join(report))
    assert {name: counts[name] for name, floor in FLOORS.items() if counts[name] < floor} == {}
    assert {name: statuses[name] for name, floor in STATUS_FLOORS.items() if statuses[name] < floor} == {}
