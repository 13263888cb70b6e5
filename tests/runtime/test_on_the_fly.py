"""Batching on the fly: launches as counted by hand, what is waited for, faults that are found late, what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus
from pcbatch.runtime.strategies.on_the_fly import POLICIES, batches

STRATEGIES = ("depth", "agenda")
both = pytest.mark.parametrize("strategy", STRATEGIES)
W = tf.constant(np.random.default_rng(0).normal(size=(4, 8)) * 0.5, tf.float32)
EMBEDDING = tf.constant(np.random.default_rng(1).normal(size=(9, 4)), tf.float32)


def launched(function: Any, *batch: Any) -> list[tuple[int, int]]:
    """Of each launch that is not of integers alone how many rows it has, and how many blocks."""
    machine = function.session.pipeline(batch, {})[1].machine
    found: list[tuple[int, int]] = []
    machine.watch = lambda batch: (
        found.append((len(batch), len({node.block for node in batch}))) if batch[0].use.late else None
    )
    function.run(*batch)
    return found


# -- the order of batches ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Sketch:
    """As much of a node as its order depends on."""

    name: str
    signature: str
    needs: list[Sketch]
    heavy: bool


def graph(text: str) -> list[Any]:
    """Nodes from `name=signature:needs`, apart by blanks; those in upper case are heavy."""
    found: dict[str, Any] = {}
    for each in text.split():
        name, _, rest = each.partition("=")
        signature, _, needs = rest.partition(":")
        after = [found[need] for need in needs]
        found[name] = Sketch(name, signature, after, signature.isupper())
    return [*found.values()]


def named(nodes: list[Any], strategy: str) -> str:
    return " ".join("".join(node.name for node in batch) for batch in batches(nodes, POLICIES[strategy]))


def test_depth_runs_what_lies_equally_deep() -> None:
    nodes = graph("a=x b=x:a c=x:b d=x e=y:d f=y:c")
    assert named(nodes, "depth") == "ad b e c f"


def test_the_agenda_waits_for_the_signature_that_lies_less_deep() -> None:
    """Losses at three depths run at once, as in the paper's Figure 2."""
    nodes = graph("a=x b=x:a c=x:b d=y:a e=y:b f=y:c")
    assert named(nodes, "agenda") == "a b c def"
    assert named(nodes, "depth") == "a b d c e f"


def test_the_agenda_takes_the_cheap_one_of_two_at_one_depth() -> None:
    assert named(graph("a=X b=y"), "agenda") == "b a"
    assert named(graph("a=y b=X"), "agenda") == "a b"
    assert named(graph("a=X b=Y"), "agenda") == "a b"


# -- launches ----------------------------------------------------------------------------------------------------------


@pcbatch.autobatch
def encode(left, right, word, node):
    if left[node] < 0:
        return EMBEDDING[word[node]]
    first = encode(left, right, word, left[node])
    return tf.tanh(tf.linalg.matvec(W, tf.concat([first, encode(left, right, word, right[node])], 0)))


@pcbatch.autobatch
def costly(left, right, word, node):
    if left[node] < 0:
        return EMBEDDING[word[node]]
    first = costly(left, right, word, left[node])
    return costly_cell(first, costly(left, right, word, right[node]))


@pcbatch.autobatch
@pcbatch.cost(1e6)
def costly_cell(first, second):
    return tf.tanh(tf.linalg.matvec(W, tf.concat([first, second], 0)))


def trees(*shapes: Any, room: int = 9) -> list[np.ndarray]:
    """Arrays of trees, which are nested pairs, and their roots."""
    arrays = np.full((3, len(shapes), room), -1)

    def place(lane: int, shape: Any, free: list[int]) -> int:
        number = free.pop(0)
        if isinstance(shape, int):
            arrays[2, lane, number] = shape
        else:
            arrays[:2, lane, number] = [place(lane, each, free) for each in shape]
        return number

    roots = [place(lane, shape, [*range(room)]) for lane, shape in enumerate(shapes)]
    return [*arrays.astype(np.int32), np.array(roots, np.int32)]


BATCH = trees((((0, 1), 2), 3), (4, 5), 6, ((7, 8), (1, 2)))


@both
def test_trees_take_a_launch_for_each_level(strategy: Any) -> None:
    function = encode.options(strategy=strategy)
    run = function.run(*BATCH)
    np.testing.assert_allclose(run.value, encode(*BATCH), rtol=1e-5, atol=1e-6)
    assert launched(function, *BATCH) == [(11, 1), (4, 1), (2, 1), (1, 1)]
    assert sum(run.utilization.active.values()) == sum(run.utilization.executed.values())
    assert set(run.outcome.phases) == {"building", "scheduling", "executing"}


@both
def test_what_explain_says_is_what_is_launched(strategy: Any) -> None:
    found = pcbatch.explain(costly, *BATCH)
    run = costly.options(strategy=strategy).run(*BATCH)
    way = next(way for way in found.ways if strategy in way.name)
    assert found.blocks
    assert [(each.by_depth, each.by_agenda) for each in found.blocks] == [(3, 3)]
    assert [way.blocks[each.label].launches for each in found.blocks] == [3]
    assert [run.executions[each.label] for each in found.blocks] == [3]


@pcbatch.autobatch
def late(before, n):
    x = 0.0
    for _ in range(before):
        x = x * 0.5 + 1.0
    h = tf.fill([4], x)
    for _ in range(n):
        h = tf.tanh(tf.linalg.matvec(W[:, :4], h))
    return h


def test_an_agenda_does_not_mind_what_lies_before() -> None:
    before, turns = np.array([0, 10, 20], np.int32), np.array([5, 3, 4], np.int32)
    agenda = [rows for rows, _ in launched(late.options(strategy="agenda"), before, turns)]
    depth = [rows for rows, _ in launched(late.options(strategy="depth"), before, turns)]
    assert agenda[-5:] == [3, 3, 3, 2, 1]
    assert len(depth) > len(agenda)
    for strategy in STRATEGIES:
        np.testing.assert_allclose(late.options(strategy=strategy)(before, turns), late(before, turns), rtol=1e-5)


@pcbatch.autobatch
def both_shapes(n):
    a, b = tf.fill([3], 0.25), tf.fill([5], 0.75)
    for _ in range(n):
        a = tf.tanh(a) * 2.0
        if n > 0:
            b = tf.tanh(b) * 2.0
    return a, b


def test_components_run_together_whatever_their_shapes() -> None:
    function = both_shapes.options(strategy="depth")
    for mine, other in zip(function([3, 0, 2]), both_shapes([3, 0, 2]), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)
    machine = function.session.pipeline(([3, 0, 2],), {})[1].machine
    assert any(code.is_flat for code in machine.codes)
    assert (4, 2) in launched(function, [3, 0, 2])


@pcbatch.autobatch
def places(x, n):
    total = 0
    for _ in range(n):
        total = total + tf.reduce_sum(tf.raw_ops.Unique(x=x).idx)
    return total


def test_what_cannot_be_batched_runs_alone() -> None:
    x = tf.constant([[1.0, 1.0, 2.0], [3.0, 4.0, 4.0]])
    function = places.options(strategy="agenda")
    assert np.asarray(function(x, [1, 2])).tolist() == [1, 4]
    assert launched(function, x, [1, 2]) == [(1, 1)] * 3


@pcbatch.autobatch
def root(x):
    y, turns = x, 0
    while tf.abs(y * y - x) > 1e-4 * x:
        y, turns = 0.5 * (y + x / y), turns + 1
    return y, turns


@both
def test_a_branch_waits_for_what_it_needs_and_for_no_more(strategy: Any) -> None:
    x = np.array([2.0, 100.0, 1.0, 7.0], np.float32)
    run = root.options(strategy=strategy).run(x)
    wanted = root.run(x)
    np.testing.assert_allclose(run.value[0], wanted.value[0], rtol=1e-5)
    np.testing.assert_array_equal(run.value[1], wanted.value[1])
    assert run.trips == max(np.asarray(run.value[1])) + 2, "a round for each test of a condition, one for the results"


# -- ends --------------------------------------------------------------------------------------------------------------


@pcbatch.autobatch
def faulty(a, start, n):
    total = a[0] * 0.0
    i = start
    for turn in range(n):
        assert turn < 7, f"turn {turn} of {n}"
        total = total + tf.sqrt(a[i])
        i = i + 1 if turn != 2 else i + 12 // (n - 3)
    return total


@both
@pytest.mark.parametrize("limits", [{}, {"max_steps": 4}, {"max_depth": 0}], ids=str)
def test_the_first_fault_counts_however_late_it_is_found(strategy: Any, limits: dict[str, Any]) -> None:
    a = np.arange(1, 41, dtype=np.float32).reshape(8, 5)
    start, n = np.array([0, 3, 0, 1, -1, 4, -9, 0]), np.array([4, 4, 3, 9, 5, 0, 2, 40])
    run = faulty.options(strategy=strategy, **limits).run(a, start, n)
    wanted = faulty.options(backend="reference", **limits).run(a, start, n)
    np.testing.assert_array_equal(run.status, wanted.status)
    np.testing.assert_array_equal(run.lane_steps, wanted.lane_steps)
    assert [str(fault) for fault in run.errors] == [str(fault) for fault in wanted.errors]
    np.testing.assert_allclose(run.value, wanted.value, rtol=1e-6)
    if not limits:
        assert {LaneStatus.OK, LaneStatus.INDEX} <= set(map(LaneStatus, np.asarray(run.status).tolist()))


@pcbatch.autobatch
def mixed(x, n):
    """Integers that are made of floats, overwritten by integers that are not, and the other way round."""
    c, i, j = n, 0, 1
    y = x[0]
    a, f = np.zeros(5, np.int32), np.zeros(5, np.float32)
    for t in range(n):
        old = i
        i, j = j, i + j
        c = tf.cast(tf.reduce_sum(x) * 3.0, tf.int32) % 7 + t
        y = y * 0.5 + x[old % 4] * tf.cast(c, tf.float32) - x[j % 4]
        a[t % 5] += c
        f[a[t % 5] % 5] = x[t % 4] + f[t % 5]
        if a[0] > 3:
            a[1] = a[0]
    return y, c, i, j, a, f


@pcbatch.autobatch
def two_faults(x, i, d):
    y = x[i] * 2.0
    q = 12 // d
    return y + x[q], q


@both
def test_integers_and_floats_of_one_block(strategy: Any) -> None:
    random = np.random.default_rng(1)
    x, n = random.normal(size=(6, 4)).astype(np.float32), np.array([0, 1, 3, 5, 2, 7], np.int32)
    i, d = np.array([0, 9, 9, 0, 3, -4]), np.array([4, 0, 4, 0, 12, 3])
    for function, batch in ((mixed, (x, n)), (two_faults, (x, i, d))):
        run = function.options(strategy=strategy).run(*batch)
        wanted = function.options(backend="reference").run(*batch)
        np.testing.assert_array_equal(run.status, wanted.status)
        assert [str(fault) for fault in run.errors] == [str(fault) for fault in wanted.errors]
        for mine, other in zip(run.value, wanted.value, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@both
def test_a_lane_that_only_a_late_check_ends_comes_to_an_end(strategy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcbatch.runtime.strategies.on_the_fly.AHEAD", 50)

    @pcbatch.autobatch(strategy=strategy)
    def endless(a, n):
        total, i = a[0] * 0.0, 0
        while n > 0:
            total = total + a[i]
            i = i + 1
        return total

    run = endless.run(np.ones((2, 5), np.float32), [1, 2])
    assert [LaneStatus(int(each)) for each in np.asarray(run.status)] == [LaneStatus.INDEX] * 2
    assert run.lane_steps.tolist() == [5, 5]


@pcbatch.autobatch
def wander(key, n):
    if n == 0:
        return 0.0
    step = pcbatch.random.normal(key)
    left, right = pcbatch.random.split(key)
    if step > 0.3:
        return step + wander(left, n - 1)
    deeper = wander(right, n - 1)
    return deeper - wander(left, n // 2) if step < -0.5 else deeper


@both
def test_draws_are_those_of_the_machine(strategy: Any) -> None:
    keys, depths = pcbatch.random.keys(5, 11), np.arange(11) % 5
    wanted = wander.options(form="lockstep").run(keys, depths)
    run = wander.options(strategy=strategy).run(keys, depths)
    np.testing.assert_allclose(run.value, wanted.value, rtol=1e-6)
    np.testing.assert_array_equal(run.lane_steps, wanted.lane_steps)


@both
def test_gradients_are_those_of_the_machine(strategy: Any) -> None:
    variable = tf.Variable(W)

    @pcbatch.autobatch
    def scaled(x, n):
        for _ in range(n):
            x = tf.tanh(tf.linalg.matvec(variable[:, :4], x))
        return tf.reduce_sum(x)

    x, n = tf.constant(np.random.default_rng(3).normal(size=(3, 4)), tf.float32), [2, 0, 3]
    found = []
    for function in (scaled.options(strategy=strategy), scaled):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(function(x, n))
        found.append(tape.gradient(loss, [x, variable]))
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(mine), tf.convert_to_tensor(other), rtol=1e-5, atol=1e-6)


@both
def test_deep_calls_and_no_lanes(strategy: Any) -> None:
    @pcbatch.autobatch(strategy=strategy)
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    assert np.asarray(depth([700, 3, 0])).tolist() == [700, 3, 0]
    none = depth.run(tf.zeros([0], tf.int32))
    assert (none.block_runs, none.value.shape) == (0, (0,))


@both
def test_what_it_has_no_meaning_for_is_refused(strategy: Any) -> None:
    with pytest.raises(
        pcbatch.UsageError, match=f"PCB535: strategy='{strategy}' keeps its graphs on the host.*schedule"
    ):
        encode.options(strategy=strategy, schedule="sweep")
    with pytest.raises(pcbatch.UsageError, match=f"PCB536: strategy='{strategy}'"):
        tf.function(lambda n: root.options(strategy=strategy)(n))(tf.constant([3.0, 4.0]))


@pcbatch.autobatch
def overwritten(a, k, n):
    """Names that get several values in one block, copies, checks that give nothing, stores between reads."""
    i, total = 0, 0.0
    first = a
    for _ in range(n):
        old, i = i, i + k
        b = first
        b[i % 4] = a[old % 4] + total
        assert i < 9, f"{i} and {old}"
        total = total + b[old % 4] * 0.5
        first, old = b, i
        i = old + 1
    return total, i, first


@both
def test_names_with_several_values_in_a_block(strategy: Any) -> None:
    batch = (np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1, 3, 2]), np.array([3, 4, 2]))
    run, wanted = (
        overwritten.options(**each).run(*batch) for each in ({"strategy": strategy}, {"backend": "reference"})
    )
    assert [str(fault) for fault in run.errors] == [str(fault) for fault in wanted.errors] != []
    for mine, other in zip(run.value, wanted.value, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


x0 = tf.constant([2.0, -1.0, 0.5])
x1 = 3


@pcbatch.autobatch
def like_the_generated_names(a, n):
    none, m = a[:0] * 1.0, n
    for _ in range(n):
        a = tf.tanh(a) + 1.0
        none = tf.tanh(none) + 1.0
        a = a * x0 + tf.map_fn(lambda x0: x0 * 0.5, a)
        m = m * x1 + 1
    return a, none, m


@both
def test_the_users_names_are_not_taken_for_generated_ones(strategy: Any) -> None:
    """Globals and inner variables that are called as values in code are; and components of arrays without any."""
    batch = (np.arange(6, dtype=np.float32).reshape(2, 3), np.array([2, 1]))
    found = like_the_generated_names.options(strategy=strategy)(*batch)
    for mine, other in zip(found, like_the_generated_names.options(backend="reference")(*batch), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5)
