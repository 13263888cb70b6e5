"""Runs generated programs whose calls are forked, plain and under a tape: judged by `f.single` and a tape over it."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import LaneStatus
from pcbatch.ir.analysis.parallel_call_groups import groups
from tests.adjoint.truth import floats, loss, weights
from tests.generator_of_forks import LARGEST, VARIABLES
from tests.harness import Lane, run_python
from tests.ir.machine_parser import parse_machine

LANES = 5
REFUSABLE = {"PCB204", "PCB205", "PCB420"}
"""The codes by which a generated program may be refused: stores to arrays that have a second name."""
LIMITS = {"max_steps": 10**6}
GRAPH = {"jit": False, "form": "lockstep", **LIMITS}


def module(source: str) -> dict[str, Any]:
    """What a generated module has."""
    file = f"<generated {zlib.crc32(source.encode()):08x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(source, file, "exec"), namespace)
    return namespace


def batch(seed: int) -> tuple[Any, ...]:
    """Arguments of LANES examples: among them one without fuel and one with as much as there may be."""
    rng = np.random.default_rng(seed)
    n = rng.permutation([0, LARGEST, *rng.integers(1, LARGEST + 1, LANES - 2)])
    numbers = [n, rng.integers(0, 9, LANES)]
    arrays = [rng.normal(size=shape) for shape in ((LANES,), (LANES, 3), (LANES, 4), (LANES,), (LANES, 4))]
    return (*(tf.constant(each, tf.int32) for each in numbers), *map(tf.constant, arrays))


def size(function: Any, arguments: Sequence[Any]) -> list[int]:
    """Of how many calls the groups of a program are that lanes come to."""
    program = parse_machine(str(function.options(fork=True, **GRAPH).ir("machine", *arguments)))
    return [len(group.members) for group in groups(program)]


def assert_near(ours: Any, theirs: Any) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    if ours.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs)
        return
    scale = max(float(np.max(np.abs(theirs), initial=0.0)), 1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * scale)


def check_plain(source: str, arguments: Sequence[Any], **options: Any) -> Any:
    """A forked run against `f.single`, and in all that is counted against calls in sequence; that run."""
    function = module(source)["main"]
    run = function.options(fork=True, **(GRAPH | options)).run(*arguments)
    wanted = function.options(backend="reference", **LIMITS).run(*arguments)
    np.testing.assert_array_equal(run.status, wanted.status)
    np.testing.assert_array_equal(run.lane_steps, wanted.lane_steps)
    assert [(e.lane, e.message, e.span) for e in run.errors] == [(e.lane, e.message, e.span) for e in wanted.errors]
    check_lanes(run.value, run.status, singles(function, arguments))
    return run


def singles(function: Any, arguments: Sequence[Any], shared: Sequence[int] = ()) -> list[Lane]:
    """What becomes of each example by itself; arguments at `shared` places all have in common."""
    examples = [
        tuple(each if place in shared else each[lane] for place, each in enumerate(arguments)) for lane in range(LANES)
    ]
    return [run_python(function.single, each) for each in examples]


def check_lanes(value: Any, status: Any, lanes: Sequence[Lane]) -> None:
    """What a run gives, and how its lanes have ended."""
    assert [LaneStatus(int(each)).name for each in status] == [lane.status for lane in lanes]
    for number, lane in enumerate(lanes):
        if lane.status == "OK":
            for ours, theirs in zip(tf.nest.flatten(value), tf.nest.flatten(lane.value), strict=True):
                assert_near(ours[number], theirs)


def of_singles(
    function: Any, arguments: Sequence[Any], sources: Sequence[Any], shared: Sequence[int]
) -> tuple[list[Any], list[Lane]]:
    """The gradients of `loss` by a tape over `single` of each example that does not fail; and what becomes of each."""
    with tf.GradientTape() as tape:
        tape.watch(floats(arguments))
        lanes = singles(function, arguments, shared)
        parts, like = [], next(floats(lane.value) for lane in lanes if lane.status == "OK")
        given = weights([tf.zeros([LANES, *each.shape], each.dtype) for each in like])
        for number, lane in enumerate(lanes):
            if lane.status == "OK":
                pairs = zip(floats(lane.value), given, strict=True)
                parts += [tf.reduce_sum(result * weight[number]) for result, weight in pairs]
        value = tf.add_n(parts)
    return tape.gradient(value, sources), lanes


KEPT = (5, 6)
"""The places of the arguments that functions hand on as they are."""


def check_taped(source: str, arguments: Sequence[Any], *, shared: Sequence[int] = (), **options: Any) -> None:
    """A forked run under a tape against a tape over `f.single`: by arguments and by captured variables.

    Arguments at `shared` places are the first example's for all.
    """
    space = module(source)
    arguments = [each[0] if place in shared else each for place, each in enumerate(arguments)]
    options["in_axes"] = tuple(None if place in shared else 0 for place in range(len(arguments)))
    function, variables = space["main"].options(fork=True, **(GRAPH | options)), [space[name] for name in VARIABLES]

    def taped(*given: Any) -> tuple[Any, ...]:
        sources = [*floats(given), *variables]
        with tf.GradientTape() as tape:
            tape.watch(floats(given))
            run = function.run(*given)
            value = loss(run)
        found = tape.gradient(value, sources, unconnected_gradients="zero")
        return run.value, run.status, [tf.convert_to_tensor(each) for each in found]

    value, status, found = taped(*arguments)
    wanted, lanes = of_singles(space["main"], arguments, [*floats(arguments), *variables], shared)
    check_lanes(value, status, lanes)
    for ours, theirs in zip(found, wanted, strict=True):
        assert_near(ours, tf.zeros_like(ours) if theirs is None else tf.convert_to_tensor(theirs))
