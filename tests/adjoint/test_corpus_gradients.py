"""Gradients of the corpus's programs of floats, and of generated ones, by every option that a taped run knows.

Each lane against a tape over `f.single`.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import CompileError, UsageError
from pcbatch.function import executing
from pcbatch.runtime.adjoint import tape as tapes
from tests import generated_runs
from tests.adjoint.truth import TINY
from tests.generated_runs import refused
from tests.generator import program_of
from tests.harness import NAMES, example, leaves, load, mapped, run_python

slow = pytest.mark.slow


def _has_floats(name):
    program = load(name)
    given = leaves(program.arguments(3))
    return any(each.startswith("float") for each in program.dtypes) and any(
        np.asarray(x).dtype.kind == "f" for x in given
    )


FLOATS = tuple(name for name in NAMES if _has_floats(name))
SCHEDULES = ("auto", "earliest", "busiest", "sweep", "adaptive")
SIZES = (0, 1, 3, 17, 64)
ROWS = ("as usual", "always", "never")
SEGMENTS = ("one", "many")
TAPES = ("keep", "replay")
JIT = (False, False, True)
RUNS = tuple(
    (
        name,
        lanes,
        SCHEDULES[(place + number) % len(SCHEDULES)],
        ROWS[(place + 2 * number) % len(ROWS)],
        SEGMENTS[(place // 2 + number) % 2],
        TAPES[(place // 3 + number // 2) % 2],
        JIT[(place + number) % len(JIT)],
    )
    for place, name in enumerate(FLOATS)
    for number, lanes in enumerate(SIZES)
    if (number - place // len(SIZES)) % len(SIZES) == 0
)
"""Every program in a batch of one size, the other options in turn."""
NATIVELY = ("adaptive_simpson", "nested_stores")
"""Programs whose gradients by native code are tried in a hurry, too."""
QUICK = tuple(run for run in RUNS if run[1] == 3 and not run[-1])[:1]


def test_the_runs_cover_every_pair_of_options():
    assert len(FLOATS) >= 25
    for first, second in itertools.combinations(range(1, 7), 2):
        pairs = {(run[first], run[second]) for run in RUNS}
        assert len(pairs) == len({run[first] for run in RUNS}) * len({run[second] for run in RUNS})


def weight(place, lane):
    """What a result counts in the loss."""
    return 0.5 + (7 * place + 3 * lane) % 5


def watched(arguments):
    """The arguments with tensors for the floats among them, and these."""
    floats = []

    def one(leaf):
        array = np.asarray(leaf)
        if array.dtype.kind != "f":
            return array
        floats.append(tf.constant(array))
        return floats[-1]

    return mapped(arguments, one), floats


def total(value, lanes, sound):
    """The weighted sum of the float results of a batch, of lanes that have not failed."""
    parts = [tf.zeros([], tf.float64)]
    for place, leaf in enumerate(leaves(value)):
        if not leaf.dtype.is_floating:
            continue
        by_lane = tf.reduce_sum(tf.reshape(tf.cast(leaf, tf.float64), [lanes, -1]), axis=1)
        scaled = by_lane * np.array([weight(place, lane) for lane in range(lanes)])
        parts.append(tf.reduce_sum(tf.where(sound, scaled, tf.zeros_like(scaled))))
    return tf.add_n(parts)


def of_batch(function, arguments, lanes):
    """The gradients by the floats of the arguments, and which lanes have not failed."""
    given, floats = watched(arguments)
    with tf.GradientTape() as tape:
        tape.watch(floats)
        run = function.run(*given)
        sound = np.asarray(run.status) == 0
        value = total(run.value, lanes, sound)
    return tape.gradient(value, floats, unconnected_gradients="zero"), sound


def of_single(function, arguments, lane):
    """The same of one example."""
    given, floats = watched(example(arguments, lane))
    with tf.GradientTape() as tape:
        tape.watch(floats)
        result = run_python(function.single, given)
        assert result.status == "OK"
        parts = [tf.zeros([], tf.float64)]
        for place, leaf in enumerate(leaves(result.value)):
            if tf.is_tensor(leaf) and leaf.dtype.is_floating:
                parts.append(tf.reduce_sum(tf.cast(leaf, tf.float64)) * weight(place, lane))
        value = tf.add_n(parts)
    return tape.gradient(value, floats, unconnected_gradients="zero")


def assert_close(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    single = ours.dtype == np.float32
    scale = max(float(np.max(np.abs(np.nan_to_num(theirs)), initial=0.0)), 1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=2e-4 if single else 1e-9, atol=(2e-5 if single else 1e-11) * scale)


def assert_like_single(program, arguments, found, sound):
    """The gradients of a batch are those of each example; of lanes that have failed they are zero."""
    for lane, is_sound in enumerate(sound):
        if not is_sound:
            assert all(not np.any(each[lane]) for each in found)
            continue
        truth = of_single(program.function, arguments, lane)
        for ours, theirs in zip(found, truth, strict=True):
            assert_close(ours[lane], theirs)


@pytest.mark.parametrize(
    "run",
    [pytest.param(run, marks=() if run in QUICK else slow) for run in RUNS],
    ids=lambda run: "-".join(map(str, run)).replace(" ", "_"),
)
def test_corpus(run, monkeypatch):
    name, lanes, schedule, rows, segments, tape, jit = run
    if segments == "many":
        monkeypatch.setattr(tapes, "Sizes", lambda: TINY)
    if rows == "never":
        monkeypatch.setattr(executing, "_compaction", lambda *_: None)
    program = load(name)
    options = {"schedule": schedule, "tape": tape, "jit": jit, "deterministic": rows == "always"}
    function = program.function.options(**options, name=f"{name}_{RUNS.index(run)}")  # compiled by nobody else
    arguments = program.arguments(lanes)
    assert_like_single(program, arguments, *of_batch(function, arguments, lanes))


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in NATIVELY else slow) for name in FLOATS])
def test_corpus_natively(name):
    program, lanes = load(name), 5
    function, arguments = program.function.options(form="native", name=f"{name}_natively"), program.arguments(lanes)
    try:
        found, sound = of_batch(function, arguments, lanes)
    except UsageError:  # PCB534
        return
    assert_like_single(program, arguments, found, sound)


@slow
@pytest.mark.parametrize("seed", range(120))
def test_generated(seed, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(tapes, "Sizes", lambda: TINY)
    source = program_of(seed)
    try:
        function = generated_runs.batched(source)
        arguments, lanes = generated_runs.batch(source), generated_runs.LANES
        tape = TAPES[seed // 2 % 2]
        form = {"form": "native"} if seed % 4 == 1 else {"jit": False}
        try:
            ours, sound = of_batch(function.options(tape=tape, name=f"generated_{seed}", **form), arguments, lanes)
        except UsageError:  # PCB534
            return
        theirs, _ = of_batch(function.options(backend="reference"), arguments, lanes)
    except CompileError as error:
        if not refused(error):
            raise
        return
    for mine, other in zip(ours, theirs, strict=True):
        for lane in np.flatnonzero(sound):
            assert_close(mine[lane], other[lane])
