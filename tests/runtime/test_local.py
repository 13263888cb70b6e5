"""Local static autobatching: launches as counted by hand, faults in some lanes within a call, what is refused."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus

FRAMES = ("local", "hybrid")


@pcbatch.autobatch
def fibonacci(n):
    if n <= 1:
        return 1
    left = fibonacci(n - 2)
    return left + fibonacci(n - 1)


def launches(numbers: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Each launch of `fibonacci` for lanes with these arguments that called together, and of how many lanes.

    Written from the plain recursion: all lanes test, those at the base return, the others call, together, twice.
    """
    if not numbers:
        return
    yield "test", len(numbers)
    base = [n for n in numbers if n <= 1]
    rest = [n for n in numbers if n > 1]
    if base:
        yield "base", len(base)
    if rest:
        yield "first call", len(rest)
        yield from launches([n - 2 for n in rest])
        yield "second call", len(rest)
        yield from launches([n - 1 for n in rest])
        yield "sum", len(rest)


@pytest.mark.parametrize("strategy", FRAMES)
def test_launches_of_fibonacci_are_those_of_the_plain_recursion(strategy: Any) -> None:
    numbers = [3, 7, 4, 5, 0, 1, 9]
    run = fibonacci.options(strategy=strategy).run(numbers)
    counted = list(launches(numbers))
    assert run.block_runs == run.trips == len(counted)
    wanted = Counter(kind for kind, _ in counted)
    assert sorted(run.executions.values()) == sorted(wanted.values())
    active = sum(lanes for _, lanes in counted)
    assert run.utilization.overall == pytest.approx(active / (len(counted) * len(numbers)))
    assert np.asarray(run.value).tolist() == [fibonacci.single(n) for n in numbers]


@pcbatch.autobatch
def even(n, base):
    assert n != 13, "unlucky"
    if n == 0:
        return 100 // base
    return odd(n - 1, base)[0] + 1


@pcbatch.autobatch
def odd(n, base):
    if n == 0:
        return 200 // base, tf.stack([n, base])
    found = even(n - 1, base)
    return found + 1, tf.stack([found, n])


@pytest.mark.parametrize("strategy", FRAMES)
def test_lanes_fail_and_return_at_different_depths(strategy: Any) -> None:
    """Mutual recursion, faults inside calls, a structure; lanes that have failed leave every frame below."""
    numbers = [0, 5, 40, 3, 13, 20, 1, 8, 60]
    bases = [3, 2, 7, 0, 1, 5, 1, 0, 9]
    reference = odd.options(backend="reference")
    for limits in ({}, {"max_depth": 10}, {"max_steps": 12}):
        run = odd.options(strategy=strategy, **limits).run(numbers, bases)
        wanted = reference.options(**limits).run(numbers, bases)
        np.testing.assert_array_equal(run.status, wanted.status)
        np.testing.assert_array_equal(run.outcome.steps, wanted.outcome.steps)
        assert [str(fault) for fault in run.errors] == [str(fault) for fault in wanted.errors]
        assert {LaneStatus.OK, LaneStatus.ARITHMETIC} <= set(map(LaneStatus, np.asarray(run.status).tolist()))
        for mine, theirs in zip(run.value, wanted.value, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pcbatch.autobatch
def wander(key, n):
    if n == 0:
        return 0.0
    step = pcbatch.random.normal(key)
    left, right = pcbatch.random.split(key)
    if step > 0.3:
        return step + wander(left, n - 1)
    deeper = wander(right, n - 1)
    if step < -0.5:
        return deeper - wander(left, n // 2)
    return deeper


def test_draws_are_those_of_the_machine() -> None:
    keys, depths = pcbatch.random.keys(5, 11), np.arange(11) % 5
    wanted = wander.options(form="lockstep").run(keys, depths)
    for strategy in FRAMES:
        run = wander.options(strategy=strategy).run(keys, depths)
        np.testing.assert_allclose(run.value, wanted.value, rtol=1e-6, err_msg=strategy)
        np.testing.assert_array_equal(run.outcome.steps, wanted.outcome.steps, err_msg=strategy)


@pytest.mark.parametrize("strategy", FRAMES)
def test_stacks_grow_and_no_lanes_are_no_launches(strategy: Any) -> None:
    @pcbatch.autobatch(strategy=strategy)
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    assert np.asarray(depth([200, 3, 0])).tolist() == [200, 3, 0]
    none = depth.run(tf.zeros([0], tf.int32))
    assert none.block_runs == 0
    assert none.value.shape == (0,)


@pytest.mark.parametrize("strategy", FRAMES)
@pytest.mark.parametrize(
    "option",
    [
        {"progress": True},
        {"resume": "run.npz"},
        {"trace": 3},
        {"schedule": "sweep"},
        {"form": "native"},
        {"backend": "reference"},
        {"jit": False},
    ],
    ids=str,
)
def test_what_frames_cannot_do_is_refused(strategy: Any, option: dict[str, Any]) -> None:
    with pytest.raises(pcbatch.UsageError, match=f"PCB535: .*{next(iter(option))}"):
        fibonacci.options(strategy=strategy, **option)


def test_nothing_of_a_run_can_be_saved_but_a_gradient_taken(tmp_path: Any) -> None:
    @pcbatch.autobatch(strategy="local")
    def half(x):
        return x / 2 if x > 1 else x

    with pytest.raises(pcbatch.UsageError, match="PCB566"):
        half.run([1.0, 4.0]).save(tmp_path / "run.npz")
    x = tf.constant([1.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        halves = half(x)
    assert np.asarray(halves).tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(tape.gradient(halves, x), [1.0, 0.5])


@pytest.mark.parametrize(
    ("options", "code"),
    [({"strategy": "local"}, "536"), ({"strategy": "hybrid"}, "536"), ({"schedule": "switch"}, "537")],
)
def test_what_a_caller_vectorises_is_refused(options: dict[str, Any], code: str) -> None:
    function = fibonacci.options(**options)
    numbers = tf.constant([[3, 4], [5, 6]])
    with pytest.raises(pcbatch.UsageError, match=f"PCB{code}"):
        tf.vectorized_map(lambda row: function(row), numbers)
    with pytest.raises(pcbatch.UsageError, match=f"PCB{code}"):
        tf.function(lambda rows: tf.vectorized_map(lambda row: function.run(row).value, rows))(numbers)


@pytest.mark.parametrize("strategy", FRAMES)
def test_compiling_is_counted(strategy: Any) -> None:
    @pcbatch.autobatch(strategy=strategy)
    def halved(n):
        return n // 2 if n > 1 else n

    halved([4, 1])
    stats = halved.stats()
    assert stats.compilations > 0
    assert stats.trace_seconds > 0
    assert (stats.compile_seconds > 0) == (strategy == "hybrid")
    halved([8, 0])
    assert halved.stats() == stats


def test_check_traces_blocks() -> None:
    """What XLA cannot run is refused under hybrid; under local TensorFlow's kernels run it, lane after lane."""

    @pcbatch.autobatch
    def places(x):
        return tf.raw_ops.Unique(x=x).idx

    x = tf.constant([[1, 1, 2], [3, 4, 4]])
    for options in ({}, {"strategy": "hybrid"}):
        with pytest.raises(pcbatch.CompileError, match=r"PCB402: .*Unique"):
            places.options(**options).check(x)
    local = places.options(strategy="local")
    local.check(x)
    assert local.stats().trace_seconds > 0
    assert np.asarray(local(x)).tolist() == [[0, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize("option", [{"strategy": "local"}, {"backend": "reference"}], ids=str)
def test_in_a_graph_there_is_no_host_to_decide(option: dict[str, Any]) -> None:
    function = fibonacci.options(**option)
    with pytest.raises(pcbatch.UsageError, match=f"PCB536: {next(iter(option))}"):
        tf.function(lambda n: function(n))(tf.constant([3, 4]))


@pcbatch.autobatch
def nested(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    if n == 0:
        return nested(m - 1, 1)
    return nested(m - 1, nested(m, n - 1))


@pytest.mark.parametrize("strategy", FRAMES)
def test_threads_share_the_blocks(strategy: Any) -> None:
    """Calls for different numbers of lanes at once, the first ones, which trace, among them."""
    function = nested.options(strategy=strategy)
    batches = [([1, 2, k % 3], [k, 1, 2]) for k in range(4)] + [([k], [2]) for k in range(3)]
    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(lambda batch: np.asarray(function(*batch)).tolist(), batches))
    assert values == [[nested.single(m, n) for m, n in zip(*batch, strict=True)] for batch in batches]


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("strategy", FRAMES)
def test_an_endless_lane_is_interrupted(strategy: Any) -> None:
    @pcbatch.autobatch(strategy=strategy)
    def endless(n):
        while n != 0:
            n = n - 1 if n > 0 else n
        return n

    assert np.asarray(endless([3])).tolist() == [0]
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        endless([-1])
    assert np.asarray(endless([4])).tolist() == [0]
