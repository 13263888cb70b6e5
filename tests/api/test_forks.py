"""Forked calls as users have them: results, errors and steps as ever, and as few runs of expensive blocks as can be."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.forked import IN_SLICES
from pcbatch.runtime.machine.pool_sizing import ForkFeedback
from pcbatch.runtime.resume import savefile

WIDTH = 16
WEIGHTS = (np.random.default_rng(3).normal(size=(2 * WIDTH, WIDTH)) / 6).astype(np.float32)
WORDS = np.random.default_rng(4).normal(size=(9, WIDTH)).astype(np.float32)


@pcbatch.cost(1e6)
@pcbatch.autobatch
def leaf(word):
    return tf.tanh(tf.gather(WORDS, word))


@pcbatch.cost(1e6)
@pcbatch.autobatch
def joined(one, other):
    return tf.tanh(tf.linalg.matvec(WEIGHTS, tf.concat([one, other], 0), transpose_a=True))


@pcbatch.autobatch(jit=False, form="lockstep")
def encoded(left, right, word, node):
    assert word[node] != 7, f"word {word[node]} of node {node} is none"
    if left[node] < 0:
        return leaf(word[node])
    one = encoded(left, right, word, left[node])
    other = encoded(left, right, word, right[node])
    return joined(one, other)


def trees(leaves, seed=0, words=7):
    """Random binary trees with so many leaves: left and right children, words, roots."""
    rng, size = np.random.default_rng(seed), 2 * max(leaves) - 1
    left, right = np.full((2, len(leaves), size), -1, np.int32)
    word = rng.integers(words, size=left.shape).astype(np.int32)
    for tree, count in enumerate(leaves):
        built = iter(range(size))

        def build(count, tree=tree, built=built):
            node = next(built)
            if count > 1:
                part = int(rng.integers(1, count))
                left[tree, node], right[tree, node] = build(part), build(count - part)
            return node

        build(count)
    return left, right, word, np.zeros(len(leaves), np.int32)


def height(left, right, node):
    return 0 if left[node] < 0 else 1 + max(height(left, right, left[node]), height(left, right, right[node]))


def levels(left, right, node=0):
    """How many nodes of each height a tree has."""
    counts = {}

    def visit(node):
        found = height(left, right, node)
        counts[found] = counts.get(found, 0) + 1
        if found:
            visit(left[node])
            visit(right[node])

    visit(node)
    return counts


LEAVES = [1, 9, 4, 12, 2, 7]
together = pytest.mark.xdist_group("forked trees")
"""Tests of the same two programs, of the same shapes."""


@pytest.fixture(scope="module")
def forked():
    return encoded.options(fork=True)


def same(run, other):
    np.testing.assert_array_equal(run.status, other.status)
    np.testing.assert_array_equal(run.lane_steps, other.lane_steps)
    assert [(e.lane, e.message, e.span) for e in run.errors] == [(e.lane, e.message, e.span) for e in other.errors]
    np.testing.assert_allclose(run.value, other.value, rtol=1e-5, atol=1e-6)


@together
def test_launches_and_rows_are_those_of_the_trees(forked):
    """Leaves all at once, nodes level by level: what DyNet's agenda makes of the same trees, from these alone."""
    arguments = trees(LEAVES)
    run = forked.run(*arguments)
    same(run, encoded.run(*arguments))
    counts = {}
    for left, right in zip(*arguments[:2], strict=True):
        for level, nodes in levels(left, right).items():
            counts[level] = counts.get(level, 0) + nodes
    executions = dict(zip((b.label for b in run.program.blocks), np.asarray(run.outcome.executions), strict=True))
    functions = {b.label: b.function for b in run.program.blocks}
    per_function = {name: [label for label, of in functions.items() if of == name] for name in ("leaf", "joined")}
    (leaves,), (nodes,) = per_function["leaf"], per_function["joined"]
    assert executions[leaves] == 1
    assert executions[nodes] == max(counts)
    assert run.utilization.active[leaves] == counts[0]
    assert run.utilization.active[nodes] == sum(n for level, n in counts.items() if level)
    chunk = CPU.expensive_chunk_of_few
    assert len(LEAVES) <= CPU.forked_few
    assert run.utilization.executed[leaves] == -(-counts[0] // chunk) * chunk
    assert run.utilization.executed[nodes] == sum(-(-n // chunk) * chunk for level, n in counts.items() if level)


@pytest.mark.slow
@pytest.mark.parametrize("bad", [{(1, 3)}, {(0, 0), (5, 12), (3, 22), (3, 8)}])
def test_faults_are_those_of_calls_in_sequence(forked, bad):
    arguments = trees(LEAVES)
    for tree, node in bad:
        arguments[2][tree, node] = 7
    run = forked.run(*arguments)
    assert {e.lane for e in run.errors} <= {tree for tree, _ in bad}
    assert run.errors
    same(run, encoded.run(*arguments))


@pytest.mark.slow
def test_the_index_of_a_later_call_that_is_out_of_range(forked):
    """It is computed early, and fails only where its turn comes: not if the call before it fails."""
    arguments = trees(LEAVES)
    arguments[1][1, 0] = 99
    arguments[1][3, 0] = 99
    arguments[2][3, 1] = 7
    run = forked.run(*arguments)
    same(run, encoded.run(*arguments))
    assert [int(run.status[tree]) for tree in (1, 3)] == [LaneStatus.INDEX, LaneStatus.ASSERTION]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, -1])
def test_limits(forked, limit):
    """Steps and depth exactly as many as are needed, and one less."""
    arguments = trees([6, 3])
    need = int(np.max(encoded.run(*arguments).lane_steps))
    options = {"max_steps": need + limit}
    same(forked.options(**options).run(*arguments), encoded.options(**options).run(*arguments))
    deep = max(map(height, *arguments[:2], [0, 0]))
    options = {"max_depth": deep + limit}
    run = forked.options(**options).run(*arguments)
    same(run, encoded.options(**options).run(*arguments))
    assert bool(run.errors) == (limit < 0)


def test_auto_forks_where_a_callee_recurses_and_is_expensive():
    arguments = trees([3, 2])
    assert encoded.options(fork="auto").pipeline(*arguments).machine.form == "lockstep, calls forked"

    @pcbatch.autobatch(fork="auto", jit=False)
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    assert "forked" not in fibonacci.pipeline(np.array([3], np.int32)).machine.form
    assert "fork" not in fibonacci.ir("machine", np.array([3], np.int32))
    assert ", fork (" in fibonacci.options(fork=True).ir("machine", np.array([3], np.int32))


def test_warm_calls_say_why_calls_are_not_made_at_the_same_time():
    @pcbatch.autobatch(fork=True, max_lanes=2, jit=False)
    def tree(n):
        if n < 1:
            return leaf(0)
        return joined(tree(n - 1), tree(n - 2))

    n = np.array([2, 1, 0], np.int32)
    notes = [tree.run(n).profile().notes for _ in range(4)]  # the third is a warm call
    assert "one after the other: max_lanes=2" in notes[0][0]
    assert notes == [notes[0]] * 4


@pytest.mark.slow
def test_what_does_not_run_at_once(forked, tmp_path):
    """In a caller's graph, in slices, and saved; and with few lanes, some examples after others."""
    arguments = trees(LEAVES)
    wanted = encoded(*arguments)
    np.testing.assert_allclose(tf.function(lambda *given: forked(*given))(*arguments), wanted, rtol=1e-5)
    sliced = forked.options(progress=True)
    run = sliced.run(*arguments)
    np.testing.assert_allclose(run.value, wanted, rtol=1e-5)
    assert IN_SLICES in sliced.stats().notes
    assert len(run.executions) == len(run.program.blocks)
    run.save(tmp_path / "run.npz")
    np.testing.assert_allclose(forked.options(resume=tmp_path / "run.npz")(), wanted, rtol=1e-5)
    run = forked.options(max_lanes=32).run(*arguments)
    np.testing.assert_allclose(run.value, wanted, rtol=1e-5)
    assert any("one after the other: max_lanes=32" in note for note in run.profile().notes)
    arguments[2][1, 3] = 7
    run = forked.options(progress=True).run(*arguments)
    same(run, encoded.run(*arguments))
    assert run.errors


def test_saved_slices_that_have_forked_are_refused(tmp_path):
    """As they were written when runs in slices forked: with lists of lanes, and lanes that run calls."""

    @pcbatch.autobatch(fork=True, jit=False)
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    sliced, path = fibonacci.options(progress=True), tmp_path / "run.npz"
    sliced.run(np.array([3, 1], np.int32)).save(path)
    np.testing.assert_array_equal(fibonacci.options(resume=path)(), [2, 1])
    header, arrays = savefile.read(str(path))
    lists = {"state/lists": np.zeros(64, np.int32), "state/lengths": np.zeros(8, np.int32)}
    for forked in (lists, {**lists, "example/given up": np.zeros(2, np.int32)}):
        savefile.write(path, header, {**arrays, **forked})
        with pytest.raises(pcbatch.UsageError, match=r"PCB592: .* it does not hold the variables of this program"):
            fibonacci.options(resume=path)()
    lanes = {name: np.repeat(array, 4, axis=0) for name, array in arrays.items() if name.startswith("state/")}
    savefile.write(path, header, {**arrays, **lanes})
    with pytest.raises(pcbatch.UsageError, match=r"PCB592: .* two lanes hold the same example"):
        fibonacci.options(resume=path)()


@pytest.mark.slow
def test_under_xla_and_again(forked):
    """Warm calls, other trees, more of them, on pools that have grown."""
    compiled = forked.options(jit=True)
    for leaves in (LEAVES, [3] * 6, [20, 1, 1, 1, 1, 1], LEAVES[:2]):
        arguments = trees(leaves)
        np.testing.assert_allclose(compiled(*arguments), encoded(*arguments), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(compiled(*arguments), encoded(*arguments), rtol=1e-4, atol=1e-5)
    arguments = trees([60] * 24)
    deep = compiled.options(max_depth=500)
    pools = deep.pipeline(*arguments).machine.pools
    pools.learned, pools.least = ForkFeedback(1), 0
    first, second = (deep.run(*arguments) for _ in range(2))
    assert ", then " in first.profile().notes[-1]
    assert ", then " not in second.profile().notes[-1]
    np.testing.assert_array_equal(first.value, second.value, err_msg="to the bit, grown in mid-run or not")
    np.testing.assert_allclose(first.value, encoded(*arguments), rtol=1e-4, atol=1e-5)


@pcbatch.autobatch(jit=False, form="lockstep")
def wide(children, word, node):
    """Nodes of three children, or none."""
    if children[node, 0] < 0:
        return leaf(word[node])
    states = pcbatch.map(lambda child: wide(children, word, child), children[node])
    return joined(states[0], states[1] + states[2])


def ternary(height):
    """A tree in which all nodes above the leaves have three children."""
    size = (3 ** (height + 1) - 1) // 2
    inner = (3**height - 1) // 2
    children = np.full((size, 3), -1, np.int32)
    children[:inner] = 1 + 3 * np.arange(inner)[:, None] + np.arange(3)
    return children[None], np.arange(size, dtype=np.int32)[None] % 7, np.zeros(1, np.int32)


@pytest.mark.slow
def test_mapped_calls_are_made_at_the_same_time():
    arguments = ternary(2)
    run = wide.options(fork=True).run(*arguments)
    np.testing.assert_allclose(run.value, wide(*arguments), rtol=1e-5)
    np.testing.assert_allclose(run.value[0], wide.single(*(each[0] for each in arguments)), rtol=1e-5)
    functions = {b.label: b.function for b in run.program.blocks}
    executions = {(functions[label], count) for label, count in run.executions.items() if count}
    assert {("leaf", 1), ("joined", 2)} <= executions
    (note,) = run.profile().notes
    assert note == "12 calls were forked, on 13 of 1,024 lanes at most"


@pcbatch.autobatch(jit=False, max_steps=50)
def turn_by_turn(children, node):
    """Calls in the turns of a loop: over a list, with stores, and in a loop in a loop."""
    if children[node, 0] < 0:
        assert children[node, 1] != -2, f"{node} is none"
        return node + 1
    total, found = 0, tf.zeros([3], tf.int32)
    for k in range(3):
        child = children[node, k]
        found[k] = turn_by_turn(children, child) - k
    for c in children[node]:
        total = max(total, turn_by_turn(children, c))
    return total + tf.reduce_sum(found)


def test_calls_in_the_turns_of_loops_are_made_at_the_same_time():
    """Those of each loop, in a group of their own: with the steps, limits and faults of calls in sequence."""
    children, _, root = ternary(1)
    arguments = [np.repeat(each, 3, 0) for each in (children, root)]
    arguments[1][:] = [0, 1, 2]
    forked = turn_by_turn.options(fork=True)
    run, wanted = forked.run(*arguments), turn_by_turn.run(*arguments)
    assert run.profile().notes == ("6 calls were forked, on 9 of 1,024 lanes at most",)
    np.testing.assert_array_equal(run.value, wanted.value)
    np.testing.assert_array_equal(run.lane_steps, wanted.lane_steps)
    assert run.value[0] == turn_by_turn.single(children[0], 0)


@pytest.mark.slow
def test_calls_in_the_turns_of_loops_fail_as_in_sequence():
    children, _, root = ternary(1)
    arguments = [np.repeat(each, 3, 0) for each in (children, root)]
    arguments[1][:] = [0, 1, 2]
    forked = turn_by_turn.options(fork=True)
    arguments[0][1, 2, 1] = -2
    run = forked.run(*arguments)
    assert not run.errors, "the root of example 1 is a leaf"
    arguments[1][1] = 0
    same(forked.run(*arguments), turn_by_turn.run(*arguments))
    need = int(run.lane_steps[0])
    for limit in (need, need - 1):
        same(forked.options(max_steps=limit).run(*arguments), turn_by_turn.options(max_steps=limit).run(*arguments))


@pytest.mark.slow
def test_auto_writes_out_the_loops_whose_calls_pay():
    children, word, root = ternary(1)

    @pcbatch.autobatch(fork="auto", jit=False)
    def chain(n):
        if n <= 0:
            return 1
        total = 0
        for k in range(2):
            total += chain(n - 1 - k)
        return total

    @pcbatch.autobatch(fork="auto", jit=False)
    def dear(children, word, node):
        if children[node, 0] < 0:
            return leaf(word[node])
        total = tf.zeros([WIDTH])
        for k in range(3):
            total += dear(children, word, children[node, k])
        return total

    n = np.array([4], np.int32)
    assert chain.pipeline(n).machine.form != "lockstep, calls forked"
    assert "turn" in chain.ir("machine", n)
    assert chain.ir("machine", n) == chain.options(fork=False).ir("machine", n), "a loop, as ever"
    np.testing.assert_array_equal(chain(n), chain.single(4))
    np.testing.assert_array_equal(chain(n), chain.single(4))
    run = dear.run(children, word, root)
    assert "3 calls were forked" in run.profile().notes[-1]
    np.testing.assert_allclose(run.value[0], dear.single(children[0], word[0], 0), rtol=1e-5)


LOOPS = {
    "depends": ("    for k in range(2):\n        total = f(total - 1)\n", "what the turn before has left"),
    "of another": ("    for k in range(2):\n        total += f(f(n - 2) - 4 - k)\n", "what another one gives"),
    "branches": (
        "    for k in range(2):\n        assert n > k - 9\n        total += f(n - 1 - k)\n",
        "other statements",
    ),
    "chosen": (
        "    for k in range(2):\n        if n > 3 and f(n - 1) > 2:\n            total += k\n",
        "or in a condition",
    ),
    "asks": (
        "    for k in range(2):\n        total += f(n - 1) if total < 9 else k\n",
        "whether a call is made depends",
    ),
    "differs": ("    for k in range(n):\n        total += f(n - 1 - k)\n", "different numbers of turns"),
    "long": ("    for k in range(65):\n        total += f(n - 5)\n", "65 turns, and 64 in all"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_stay_loops_say_why(name, tmp_path):
    loop, why = LOOPS[name]
    text = f"def f(n):\n    if n <= 0:\n        return 1\n    total = 0\n{loop}    return total\n"
    path = tmp_path / f"loops_{name.replace(' ', '_')}.py"
    path.write_text(text)
    scope = {}
    exec(compile(text, path, "exec"), scope)
    function = scope["f"] = pcbatch.autobatch(fork=True, jit=False, max_depth=20)(scope["f"])
    n = np.array([1, 3, 5], np.int32)
    run = function.run(n)
    assert any(why in note for note in run.profile().notes)
    np.testing.assert_array_equal(run.value, [function.single(each) for each in n])


def test_what_a_turn_leaves_to_the_next_one_is_computed_early():
    @pcbatch.autobatch(fork=True, jit=False)
    def f(n):
        if n <= 0:
            return 1
        total = 0
        for k in range(2):
            total += f(n - 1)
            n = n - k
        return total + n

    n = np.array([1, 3, 5], np.int32)
    run = f.run(n)
    (note,) = run.profile().notes
    assert "calls were forked" in note
    np.testing.assert_array_equal(run.value, [f.single(each) for each in n])
    np.testing.assert_array_equal(run.lane_steps, f.options(fork=False).run(n).lane_steps)


@together
def test_profiles_and_explanations_say_why_calls_were_not_forked():
    arguments = trees(LEAVES)
    assert not encoded.run(*arguments).profile().notes
    told = pcbatch.explain(encoded, *arguments)
    (line,) = told.calls
    assert line.endswith("made one after the other: fork=False; `fork=True` makes them at the same time")
    assert line in str(told)

    @pcbatch.autobatch(fork=True, jit=False)
    def dependent(n):
        return n if n <= 0 else dependent(dependent(n - 1) - 1) + 1

    (note,) = dependent.run(np.array([3], np.int32)).profile().notes
    assert "not made at the same time as the one before it: what it is given depends on what the call before" in note


@pytest.mark.slow
def test_recursion_with_exponentially_many_calls_stays_within_the_bytes():
    """fib(30): 1.6 million calls, which would all be alive at once."""

    @pcbatch.autobatch(fork=True, max_steps=10**7)
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    machine = fibonacci.pipeline(np.array([3, 2], np.int32)).machine
    machine.pools.limit = 2**22
    np.testing.assert_array_equal(fibonacci(np.array([30, 5], np.int32)), [832040, 5])
    size = machine.pools.of(2)
    assert size.pool.lanes * machine.pools.bytes(size.capacity) <= machine.pools.limit


@together
def test_few_examples_have_fewer_rows_at_a_time_unless_bits_are_to_be_the_same(forked):
    few, many = trees(LEAVES), trees(LEAVES * CPU.forked_few)

    def rows(function, batch, of="leaf"):
        blocks = function.program("machine", *batch).blocks
        return {block.chunks.rows for block in blocks if block.function == of}

    assert rows(forked, few) == {CPU.expensive_chunk_of_few}
    assert rows(forked, many) == {CPU.expensive_chunk_of_ends}
    same_bits = forked.options(deterministic=True)
    assert rows(same_bits, few) == rows(same_bits, many) == {CPU.expensive_chunk_of_ends}
    assert rows(forked, many, "joined") == {CPU.expensive_chunk}


def test_calls_whose_results_nobody_reads_fail_all_the_same():
    @pcbatch.autobatch(fork=True, jit=False, form="lockstep")
    def lasting(n, by):
        if n <= 0:
            return 7 // by
        kept = lasting(n - 1, by)
        dropped = lasting(n - 2, by)  # noqa: F841 -- it divides, too
        return kept

    given = np.array([0, 2, 4, 5], np.int32), np.array([1, 2, 3, 0], np.int32)
    run = lasting.run(*given)
    same(run, lasting.options(fork=False).run(*given))
    assert [error.lane for error in run.errors] == [3]
    assert any("calls were forked" in str(note) for _, note in run.outcome.notes)
    alone = [lasting.single(*each) for each in zip(*(array[:3] for array in given), strict=True)]
    np.testing.assert_array_equal(run.value[:3], alone)
