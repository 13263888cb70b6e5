"""The corpus, the modes, and the comparison of a batch with `f.single` lane by lane.

A corpus program is a file `tests/corpus/NAME.py` with a batched function NAME and

    DTYPES                      dtypes of the leaves of its result, in order
    batch(rng, lanes)           its arguments, arrays `[lanes, ...]` or tuples of them
    OPTIONS                     options of the entry function (may be absent)
    twin(*example)              the same function, written by another route in Python and NumPy (may be absent)
    status(*example)            what becomes of the lane, the name of a LaneStatus (absent: always "OK")
    message(*example)           part of the message of a lane that fails (may be absent)
    TWIN_TOLERANCE              relative tolerance between the function and its twin (may be absent)

Twins, `status` and `message` get Python numbers for scalars and copies of arrays.
"""

from __future__ import annotations

import contextlib
import importlib
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tensorflow as tf

import tests.schedules
from pcbatch import LaneStatus
from pcbatch.errors import PcbatchError
from pcbatch.ir.values import fields_of, made, pack
from tests import kernels, mixed
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.interpreter import Outcome, interpret

CORPUS = Path(__file__).parent / "corpus"
BATCH = 17
"""The batch size at which every program runs in every mode; prime, so no bucket or tile fits it."""
NAMES = tuple(sorted(path.stem for path in CORPUS.glob("*.py")))

TOLERANCE = {"float32": (2e-5, 2e-6), "float64": (1e-11, 1e-12)}
"""Relative and absolute tolerance by dtype; every other dtype must be equal."""

Engine = Literal[
    "interpret cfg",
    "interpret stack",
    "reference",
    "graph",
    "xla",
    "native",
    "kernel",
    "mixed",
    "lockstep",
    "auto",
    "plain",
    "either",
    "local",
    "hybrid",
    "depth",
    "agenda",
    "refill",
    "keep",
    "replay",
]


@dataclass(frozen=True)
class Mode:
    """A way to run a program. The interpreters run one lane alone, so they know no schedule."""

    engine: Engine
    schedule: str | None = None
    forks: bool = False

    def __str__(self) -> str:
        """As in the names of tests: `xla-sweep`, `interpret-cfg`, `graph-busiest-forks`."""
        parts = [*self.engine.split(), *([self.schedule] if self.schedule else []), *(["forks"] if self.forks else [])]
        return "-".join(parts)

    @property
    def options(self) -> dict[str, Any]:
        """What `f.options` is given for this mode."""
        return {**self._engine_options, **({"fork": True} if self.forks else {})}

    @property
    def _engine_options(self) -> dict[str, Any]:
        if self.engine == "reference":
            return {"backend": "reference", "schedule": self.schedule}
        if self.engine in ("local", "hybrid", "depth", "agenda"):
            return {"strategy": self.engine}
        if self.engine in ("native", "auto", "kernel"):
            return {"form": "native" if self.engine == "kernel" else self.engine}
        if self.engine == "refill":
            return {
                "form": "lockstep",
                "max_lanes": REFILLED,
                "jit": self.schedule == "auto",
                "schedule": self.schedule,
            }
        if self.engine in ("keep", "replay"):
            return {"tape": self.engine, "jit": self.schedule == "auto", "schedule": self.schedule}
        if self.engine in ("plain", "either"):
            return {"jit": "auto" if self.engine == "either" else False}
        if self.engine in ("mixed", "lockstep"):
            return {"form": "lockstep"}
        return {"jit": self.engine == "xla", "schedule": self.schedule, "form": "lockstep"}


INTERPRETERS = (Mode("interpret cfg"), Mode("interpret stack"))
REFERENCE = (Mode("reference", "auto"),)  # lanes run one by one there
GRAPH = (Mode("graph", "busiest"), Mode("graph", tests.schedules.GATHERING), Mode("graph", tests.schedules.RANDOM))
XLA = (Mode("xla", "earliest"), Mode("xla", "adaptive"))  # "adaptive" is "sweep" where nothing is dear, as here
AUTO = Mode("auto")
"""A program as users run it: in native form where it can be and is better so, else as XLA runs it in lockstep."""
PLAIN, EITHER = Mode("plain"), Mode("either")
"""The same without XLA, and with or without it, as the rule of `jit="auto"` says: other programs than those of one
block run as in other modes there."""
REFILLED = 5
"""Lanes of a pool that is refilled: fewer than `BATCH`."""
REFILL = (Mode("refill", "sweep"), Mode("refill", tests.schedules.GATHERING), Mode("refill", "auto"))
"""At most so many lanes: in graph mode, and under XLA."""
TAPED = (Mode("keep", "sweep"), Mode("replay", "auto"), Mode("keep", "auto"), Mode("replay", tests.schedules.GATHERING))
"""A gradient tape watches: the run is recorded, in graph mode and under XLA. Programs without floats run as ever."""
NATIVE = Mode("native")
"""Native form, or the reason why there is none."""
KERNEL = Mode("kernel")
"""Native form for a GPU, on the CPU in its stead."""
MIXED = Mode("mixed")
"""Lockstep in every second block, native code between these."""
LOCKSTEP = Mode("lockstep")
"""Lockstep throughout, under the schedule that users get."""
OTHER_STRATEGIES = (Mode("local"), Mode("hybrid"), Mode("xla", "switch"), Mode("depth"), Mode("agenda"))
"""The paper's other machines, and batching on the fly: launches of blocks, decided on the host."""
MACHINES = (*REFERENCE, *GRAPH, *XLA, AUTO)
MODES = INTERPRETERS + MACHINES


@dataclass(frozen=True)
class Program:
    """A corpus program, its options applied. `twin` and `message` are None where the file has none."""

    name: str
    function: Any
    dtypes: tuple[str, ...]
    batch: Callable[[np.random.Generator, int], tuple[Any, ...]]
    status: Callable[..., str]
    twin: Callable[..., Any] | None
    message: Callable[..., str] | None
    states_failures: bool
    twin_tolerance: float

    def arguments(self, lanes: int) -> tuple[Any, ...]:
        """A batch of `lanes` examples; the same ones every time."""
        return self.batch(np.random.default_rng([zlib.crc32(self.name.encode()), lanes]), lanes)


@cache
def load(name: str) -> Program:
    """The corpus program in `tests/corpus/NAME.py`."""
    module = importlib.import_module(f"tests.corpus.{name}")
    function = getattr(module, name)
    options = getattr(module, "OPTIONS", {})
    return Program(
        name,
        function.options(**options) if options else function,
        module.DTYPES,
        module.batch,
        getattr(module, "status", lambda *example: "OK"),
        getattr(module, "twin", None),
        getattr(module, "message", None),
        hasattr(module, "status"),
        getattr(module, "TWIN_TOLERANCE", 1e-4),
    )


# -- structures and examples -------------------------------------------------------------------------------------------


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested tuples, lists, dicts and records, left to right."""
    items = _items(value)
    if items is None:
        yield value
    else:
        for item in items.values():
            yield from leaves(item)


def _items(value: Any) -> dict[Any, Any] | None:
    """The parts of a structure by key, field or position; None for a leaf."""
    if isinstance(value, dict):
        return value
    fields = fields_of(value)
    return dict(enumerate(value)) if fields is None and isinstance(value, tuple | list) else fields


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """`value` with `function` of each of its leaves."""
    items = _items(value)
    if items is None:
        return function(value)
    found = {key: mapped(item, function) for key, item in items.items()}
    if fields_of(value) is not None:
        return made(type(value), found)
    return found if isinstance(value, dict) else type(value)(found.values())


def shape_of(value: Any) -> Any:
    """The nesting of `value`, its leaves left out: what two structures must have in common."""
    items = _items(value)
    if isinstance(value, tuple | list) and items is not None:
        return tuple(shape_of(item) for item in items.values())
    return None if items is None else {key: shape_of(item) for key, item in items.items()}


def example(arguments: Any, lane: int) -> Any:
    """Example number `lane` of a batch; arrays are copies, since a program may store into its arguments."""
    return mapped(arguments, lambda array: np.array(array[lane]) if array.ndim > 1 else array[lane])


def plain(value: Any) -> Any:
    """`value` with Python numbers for NumPy scalars and copies of arrays, for twins."""
    return mapped(value, lambda leaf: np.array(leaf) if np.ndim(leaf) else leaf.item())


# -- what should come out ----------------------------------------------------------------------------------------------

FAILURES: dict[type[BaseException], str] = {
    AssertionError: "ASSERTION",
    ZeroDivisionError: "ARITHMETIC",
    IndexError: "INDEX",
}
"""What becomes of a lane whose `f.single` raises this; any other exception is a `raise` of the program."""
LIMITS = ("MAX_DEPTH", "MAX_STEPS")
"""Ends of a lane that options decide, which plain Python knows nothing of."""


@dataclass(frozen=True)
class Lane:
    """One lane's end: the name of its status, its result where that is "OK", else its message and the source line.

    Of what a lane should be, the message may be a part, and the line None where nothing is said of it.
    """

    status: str
    value: Any = None
    message: str = ""
    line: int | None = None


def run_python(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Lane:
    """What a plain function, such as `f.single`, makes of one example.

    Programs fail by Python's exceptions; pcbatch's own are errors. Eager TensorFlow has one exception of its own for
    what Python calls ZeroDivisionError and IndexError.
    """
    try:
        return Lane("OK", function(*arguments))
    except PcbatchError:
        raise
    except tf.errors.InvalidArgumentError as error:
        for text, status in {"division by zero": "ARITHMETIC", "out of bounds": "INDEX"}.items():
            if text in error.message:
                return Lane(status, message=error.message, line=failing_line(error))
        raise
    except (ValueError, OverflowError) as error:
        numbers = str(error).startswith(("math ", "cannot convert", "negative shift", "isqrt()"))
        numbers = numbers or "not in list" in str(error)
        status = "ARITHMETIC" if numbers else FAILURES.get(type(error), "RAISED")
        return Lane(status, message=str(error), line=failing_line(error))
    except (AssertionError, ArithmeticError, LookupError, RuntimeError) as error:
        return Lane(FAILURES.get(type(error), "RAISED"), message=str(error), line=failing_line(error))


def failing_line(error: BaseException) -> int:
    """The line of the corpus file, or of the generated program, at which `error` was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f.lineno for f in frames if Path(f.filename).parent == CORPUS or f.filename.startswith("<generated")][-1]


@cache
def expected(name: str, lanes: int) -> tuple[Lane, ...]:
    """What each lane of `load(name).arguments(lanes)` should give: `f.single`'s answer, which has the stated status."""
    program = load(name)
    arguments = program.arguments(lanes)
    wanted = []
    for lane in range(lanes):
        numbers = plain(example(arguments, lane))
        status = program.status(*numbers)
        if status in LIMITS:
            wanted.append(Lane(status))
            continue
        single = run_python(program.function.single, example(arguments, lane))
        assert single.status == status
        if status != "OK":
            single = replace(single, message=program.message(*numbers) if program.message else "")
        wanted.append(single)
    return tuple(wanted)


# -- running -----------------------------------------------------------------------------------------------------------


def outcomes(
    function: Any, stage: str, arguments: tuple[Any, ...], lanes: int, **limits: int | None
) -> Iterator[Outcome]:
    """Run each example of a batch by `tests.ir.interpreter`, statements as the backend evaluates them at once.

    The stages are "cfg", "stack" and "optimized". A result is one value, a tuple of the arrays in it where it has
    several.
    """
    bound, pipeline, captured = function.session.pipeline(arguments, {})
    program = {"cfg": pipeline.cfg, "stack": pipeline.stack, "optimized": pipeline.optimized}[stage]
    evaluate, store = interpreter_callbacks(program, replace(pipeline.environment, captured=captured))
    for lane in range(lanes):
        one = [
            pack(bound.types[name], leaves if name in bound.shared else list(map(_row(lane), leaves)))
            for name, leaves in bound.leaves.items()
        ]
        yield interpret(program, one, evaluate, store, **limits)


def run_interpreted(function: Any, stage: str, arguments: tuple[Any, ...], lanes: int) -> list[Lane]:
    """Every example of a batch through the interpreter of the IR."""
    pipeline = function.session.pipeline(arguments, {})[1]
    limits = {"max_depth": pipeline.options.max_depth, "max_steps": pipeline.options.max_steps}
    results = []
    for outcome in outcomes(function, stage, arguments, lanes, **limits):
        value = None
        if outcome.status == "OK":
            parts = outcome.value if isinstance(outcome.value, tuple) else [outcome.value]
            value = mapped(pack(pipeline.read.reading.result, parts), tf.convert_to_tensor)
        results.append(Lane(outcome.status, value, outcome.message, outcome.span and outcome.span.line))
    return results


def _row(lane: int) -> Callable[[Any], Any]:
    return lambda array: array[lane]


def run_lanes(function: Any, mode: Mode, arguments: tuple[Any, ...], lanes: int) -> tuple[list[Lane], list[Any]]:
    """Run a batch: a Lane for each example, and the leaves of the result as arrays `[lanes, ...]`.

    The interpreters take the examples one by one and give no arrays. Checks on the way what holds for every run:
    results have a leading lane axis, failed lanes read NaN or 0, and `run.errors` names the failed lanes, each once and
    in order.
    """
    if mode in INTERPRETERS:
        return run_interpreted(function, mode.engine.removeprefix("interpret "), arguments, lanes), []
    forced = {MIXED: mixed.forced, KERNEL: kernels.forced}.get(mode, contextlib.nullcontext)
    with forced(), tf.GradientTape() if mode.engine in ("keep", "replay") else contextlib.nullcontext() as tape:
        arguments = arguments if tape is None else _watched(tape, arguments)
        run = function.options(**mode.options).run(*arguments)
    statuses = [LaneStatus(int(number)).name for number in np.asarray(run.status)]
    faults = {fault.lane: fault for fault in run.errors}
    failed = [lane for lane, status in enumerate(statuses) if status != "OK"]
    assert len(statuses) == lanes
    assert [fault.lane for fault in run.errors] == failed
    assert [fault for fault in run.errors if fault.span is None] == [], "a lane fails at a line of the source"
    arrays = [np.asarray(leaf) for leaf in leaves(run.value)]
    for array in arrays:
        assert array.shape[:1] == (lanes,)
        blank = np.isnan(array[failed]) if np.issubdtype(array.dtype, np.floating) else array[failed] == 0
        assert np.all(blank), f"failed lanes {failed} read {array[failed]}"
    results = [
        Lane(status, _pick(run.value, lane))
        if status == "OK"
        else Lane(status, message=faults[lane].message, line=faults[lane].span.line)
        for lane, status in enumerate(statuses)
    ]
    return results, arrays


def _watched(tape: tf.GradientTape, arguments: Any) -> Any:
    """The arguments, the floats among them as tensors that the tape watches."""

    def one(leaf: Any) -> Any:
        if np.asarray(leaf).dtype.kind != "f":
            return leaf
        tensor = tf.convert_to_tensor(leaf)
        tape.watch(tensor)
        return tensor

    return mapped(arguments, one)


def _pick(value: Any, lane: int) -> Any:
    return mapped(value, lambda leaf: np.asarray(leaf)[lane])


# -- comparing ---------------------------------------------------------------------------------------------------------


def assert_close(actual: Any, wanted: Any, dtype: str, tolerance: float | None = None) -> None:
    """One leaf against another: floats to tolerance (relative; of the dtype where None), everything else exactly."""
    actual, wanted = np.asarray(actual), np.asarray(wanted)
    assert actual.shape == wanted.shape
    if dtype not in TOLERANCE:
        np.testing.assert_array_equal(actual, wanted)
        return
    relative, absolute = TOLERANCE[dtype] if tolerance is None else (tolerance, tolerance)
    np.testing.assert_allclose(actual, wanted, rtol=relative, atol=absolute)


def assert_same(actual: Lane, wanted: Lane, dtypes: tuple[str, ...], tolerance: float | None = None) -> None:
    """One lane against what it should be: status, part of the message, structure, and every leaf of the result."""
    assert actual.status == wanted.status, f"{actual} instead of {wanted}"
    assert wanted.message in actual.message
    assert wanted.line is None or actual.line == wanted.line, f"{actual} instead of {wanted}"
    if wanted.status != "OK":
        return
    assert shape_of(actual.value) == shape_of(wanted.value)
    for leaf, other, dtype in zip(leaves(actual.value), leaves(wanted.value), dtypes, strict=True):
        assert_close(leaf, other, dtype, tolerance)


def check(name: str, mode: Mode, lanes: int) -> None:
    """Run corpus program `name` with a batch of `lanes` in `mode` and compare every lane with what it should be."""
    program = load(name)
    arguments = program.arguments(lanes)
    before = [np.array(leaf) for leaf in leaves(arguments)]
    actual, arrays = run_lanes(program.function, mode, arguments, lanes)
    for leaf, given in zip(leaves(arguments), before, strict=True):
        np.testing.assert_array_equal(leaf, given, err_msg="the caller's arrays must not change")
    if replace(mode, forks=False) in (*MACHINES, PLAIN, EITHER, NATIVE, MIXED, LOCKSTEP):
        finished = next(lane for lane in expected(name, BATCH) if lane.status == "OK")
        assert [array.dtype.name for array in arrays] == list(program.dtypes)
        assert [array.shape[1:] for array in arrays] == [np.shape(leaf) for leaf in leaves(finished.value)]
    for lane, (got, wanted) in enumerate(zip(actual, expected(name, lanes), strict=True)):
        try:
            assert_same(got, wanted, program.dtypes)
        except AssertionError as error:
            raise AssertionError(f"lane {lane} of {name}{example(arguments, lane)} in {mode}: {error}") from error
