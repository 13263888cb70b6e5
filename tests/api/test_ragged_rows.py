"""Rows of unequal length as arguments and results of a batch, judged by the function on each row alone."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus, UsageError
from pcbatch.errors import PcbatchError, PrimitiveError

ROWS = [[1.0, 2.0, 3.0], [4.0], [], [5.0, -1.0, 0.5, 2.0]]
RAGGED = tf.ragged.constant(ROWS)
KEYS = [np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32) for n in (2, 5, 1)]


def total(xs):
    s = 0.0
    for x in xs:
        s += x
    return s


def measured(x):
    return len(x), x.shape[0], x.ndim


def ends(x):
    return sum(x[1:]), sum(x[:-1]), sum(x[1:3]), sum(x[-2:]), x[-1], x[0], x[:-1][::-1][:1]


def scaled(x):
    return x * 2.0 + 1.0


def means(x):
    return np.mean(x), x.sum(), tf.reduce_max(x), min(x), np.argmax(x), np.argmin(x[1:])


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e), tf.nn.softmax(x), tf.nn.log_softmax(x[1:])


def first_changed(x):
    x[0] = 9.0
    x[1:] *= 2.0
    return x


def down(x, i=0):
    if i >= len(x):
        return 0.0
    return x[i] + down(x, i + 1)


def gone_through(x):
    t = 0.0
    for i, v in enumerate(x):
        t += i * v
    for a, b in itertools.pairwise(x):
        t += a * b
    for a, b in zip(x, x[1:], strict=False):  # noqa: RUF007
        t += a / (1.0 + b * b)
    for v in reversed(x):
        t = t * 0.5 + v
    return t


def collected(x):
    hs, h = [], 0.0
    for v in x:
        h = h * 0.5 + v
        hs.append(h)
    return np.stack(hs), sum([x[t] * x[t] for t in range(len(x))])


@pcbatch.autobatch
def shorter(x):
    if len(x) < 2 or x[0] > 4.0:
        return x
    return shorter(x[1:] * 2.0)


def picked(x):
    high = x[x > 1.0]
    return len(high), sum(high), np.where(x > 1.0, x, 0.0), tf.maximum(x, 2.0)


def under_two_names(x):
    y, z = x, x[1:]
    z[:] = 1.0
    y[0] = 7.0
    return x


def in_a_list(x):
    both = [x, x * 2.0]
    return sum(both[1]) + both[0][0]


def chosen(x):
    return x if len(x) > 2 else -x


def positive(x):
    i = 0
    while i < len(x) and x[i] > 0.0:
        i += 1
    return i, 4.0 in x


def stepped(x):
    i = len(x) // 2
    return x[::2], x[1::3], x[::-2], x[3:0:-1], x[1:][::2], x[1:-1][::-1], x[i::2], x[:i:2], x[i::-1], x[5:], x[20::3]


def stores_in_steps(x):
    y, z = x[::2], x[::-1]
    x[0] = 9.0
    x[1::2] += 1.0
    z[0] = 7.0
    return sum(y), x, z[::-1], x[::-1] + x


def in_order(x):
    low, places, whole = tf.where(x == 2.0, np.nan, x), np.argsort(x), tf.cast(x, tf.int32)
    orders = np.sort(low), np.argsort(low), np.sort(x[1:]), tf.sort(x, direction="DESCENDING"), np.sort(x > 1.0)
    wholes = np.sort(whole), tf.sort(whole, direction="DESCENDING"), np.argsort(whole)
    x[1:].sort()
    return *orders, *wholes, x[places], x[places[::-1]], x, x[np.array([0, 0])] if len(x) else x[:2]


def joined(x):
    joins = np.concatenate([x[2:], x[:2], x[::-1]]), tf.concat([x, [1.0, 2.0]], 0), np.append(x, 1.0), np.hstack([x, x])
    both = np.concatenate([x, np.ones(3, np.float32), x[:1]])
    return *joins, sum(both), len(both), np.stack([x, x * 2], axis=1), tf.stack([x, x * 2], axis=-1)


def rows_of_arrays(x):
    y = np.stack([x, x * x, -x], axis=1)
    parts = y[::2], y[::-1], y[::2, 1], y[1:, ::-1], y[y[:, 0] > 1.0], np.concatenate([y, y[:1]])
    return *parts, np.sort(y, axis=0), np.sort(y, axis=1), np.concatenate([y, y], axis=1), np.cumsum(y, axis=0)


def columns_in_steps(x):
    y = np.stack([x, -x], axis=1)
    return y[::2, 1], y[1:, 0], y[::-1, 1]


def masks_returned(x):
    m = x > 0.5
    parts = x[m], x[m][1:], x[m][::2], tf.boolean_mask(x, x > 2.0), np.sort(x[m]), tf.nn.softmax(x[m])
    return *parts, x[m] * x[m], x[m] + 1.0, x[x > 0.0] > 2.0


def made_of_others(x):
    y = np.append(x, 1.0)  # which is never empty
    spread = np.std(y), np.var(y), tf.math.reduce_std(y), np.linalg.norm(x), tf.norm(x)
    return (
        *spread,
        np.cumsum(x),
        np.diff(x),
        np.flip(x),
        tf.reverse(x, [0]),
        x.copy(),
        np.array(x),
        x.std() if len(x) else 0.0,
    )


def other_parts_by_path(x):
    y = x[x > 1.0] if len(x) > 2 else x
    z = np.concatenate([x, x]) if len(x) > 2 else x[::2]
    while len(z) > 1:
        if len(z) % 2 == 1:
            z = z[1:]
        z = z[::2] + z[1::2]
    first = x[:5]
    while len(first) > 1:
        first = first[1:]
    return y, z, first, y[0] if len(y) else 0.0


@pcbatch.autobatch
def merge_sort(x):
    if len(x) < 2:
        return x
    middle = len(x) // 2
    a, b, i, j, out = merge_sort(x[:middle]), merge_sort(x[middle:]), 0, 0, x.copy()
    for k in range(len(x)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out[k], i = a[i], i + 1
        else:
            out[k], j = b[j], j + 1
    return out


def rows_of_lists(x):
    hs, h = [], tf.zeros(2)
    for v in x:
        h = tf.tanh(0.5 * h + v)
        hs.append(h)
    back, s = [tf.ones(2) * x[t] for t in range(len(x))], tf.zeros(2)
    for h, b in zip(hs, reversed(back), strict=False):
        s = s * 0.5 + h * b
    last = sum(tf.stack(hs)[:, 1]) if len(x) else 0.0
    return s, last, tf.stack([x[t] * 2 for t in range(len(x))]), np.sort([v for v in x if v > 1.0])


PROGRAMS = [
    *[stepped, stores_in_steps, in_order, joined, rows_of_arrays, columns_in_steps, masks_returned, made_of_others],
    *[other_parts_by_path, merge_sort, rows_of_lists],
    *[total, measured, ends, scaled, means, softmax, first_changed],
    *[down, gone_through, collected, shorter, chosen, positive, picked, under_two_names, in_a_list],
]


def judge(program, rows, batch=None, **options):
    """Run a batch of rows, and compare each lane with the row alone."""
    f = program if isinstance(program, pcbatch.Batched) else pcbatch.autobatch(program).options(**options)
    run = f.run(rows if batch is None else batch)
    got = _by_lane(run.value, len(rows))
    for lane, row in enumerate(rows):
        try:
            want = tf.nest.flatten(f.single(np.asarray(row, np.float32)))
        except (IndexError, ValueError):
            assert run.status[lane] == LaneStatus.RAISED
            continue
        assert run.status[lane] == LaneStatus.OK
        for ours, theirs in zip(got[lane], want, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def _by_lane(value, lanes):
    leaves = list(value) if isinstance(value, tuple) else [value]
    return [[np.asarray(leaf[lane]) for leaf in leaves] for lane in range(lanes)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_lanes_are_what_the_function_gives_of_their_rows(program):
    judge(program, ROWS, RAGGED)


@pytest.mark.parametrize(
    "options",
    [
        {"form": "lockstep"},
        {"strategy": "local"},
        {"strategy": "hybrid"},
        {"strategy": "depth"},
        {"max_lanes": 2},
        {"backend": "reference"},
    ],
    ids=lambda each: str(next(iter(each.values()))),
)
@pytest.mark.parametrize("program", [total, scaled, down], ids=lambda each: each.__name__)
def test_every_form(program, options):
    judge(program, ROWS, RAGGED, **options)


@pytest.mark.parametrize(
    "batch",
    [
        ROWS,
        [np.array(row, np.float32) for row in ROWS],
        [tf.constant(row, tf.float32) for row in ROWS],
        pcbatch.ragged(ROWS),
        np.array([np.array(row, np.float32) for row in ROWS], dtype=object),
        [tuple(row) for row in ROWS],
    ],
    ids=["lists", "arrays", "tensors", "told", "an array of arrays", "tuples"],
)
def test_ways_to_give_rows(batch):
    judge(scaled, ROWS, batch)


@pytest.mark.parametrize("rows", [[[], []], [[1.0, 2.0]], [[1.0], [2.0]], [[]]], ids=str)
def test_few_or_empty_rows(rows):
    judge(total, rows, pcbatch.ragged(rows))
    judge(scaled, rows, tf.ragged.constant(rows, dtype=tf.float32))


def columns(x):
    return x.sum(axis=1), np.mean(x, axis=0), np.sum(x), np.max(x), np.mean(x), x[:, 1], x[0, 1], x[1:, 0], x @ x[0]


def test_rows_of_arrays():
    f = pcbatch.autobatch(columns)
    for lane, got in enumerate(_by_lane(f(KEYS), len(KEYS))):
        for ours, theirs in zip(got, f.single(KEYS[lane]), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pcbatch.autobatch
def attention(query, keys, values):
    return tf.nn.softmax(keys @ query) @ values


def test_attention():
    values = [np.repeat(np.arange(len(keys), dtype=np.float32)[:, None], 4, 1) for keys in KEYS]
    queries = np.ones((3, 3), np.float32)
    want = [attention.single(*each) for each in zip(queries, KEYS, values, strict=True)]
    np.testing.assert_allclose(attention(queries, KEYS, values), want, rtol=1e-5)


@pcbatch.autobatch
def attention_in_other_words(query, keys, values, n):
    """Example 1 of Agarwal, "Static Automatic Batching in TensorFlow", over the first `n` elements."""
    first = tf.nn.softmax(tf.linalg.matvec(keys[:n], query))
    second = tf.nn.softmax(tf.einsum("d,nd->n", query, keys[:n]))
    third = tf.nn.softmax(tf.tensordot(keys[:n], query, 1))
    fourth = tf.nn.softmax(tf.matmul(keys[:n], query[:, None]), axis=0)
    by_row = tf.stack([tf.nn.softmax(keys[:n] @ keys[i]) @ values[:n] for i in range(n)])
    return (
        tf.linalg.matvec(values[:n], first, transpose_a=True),
        tf.reduce_sum(first[:, None] * values[:n], axis=0),
        tf.einsum("n,nd->d", second, values[:n]),
        tf.tensordot(third, values[:n], 1),
        tf.matmul(fourth, values[:n], transpose_a=True),
        by_row,
        keys[:n][..., 0],
    )


def test_attention_in_other_words():
    """Elements behind a slice that are no numbers are in no result and no slope."""
    random, n = np.random.default_rng(0), [1, 6, 3]
    queries, keys, values = (random.normal(size=(3, *shape)).astype(np.float32) for shape in ((3,), (6, 3), (6, 2)))
    for lane, length in enumerate(n):
        keys[lane, length:] = values[lane, length:] = np.nan
    with tf.GradientTape() as tape:
        given = [*map(tf.constant, (queries, keys, values))]
        tape.watch(given)
        found = attention_in_other_words(*given, n)
        loss = tf.add_n([tf.reduce_sum(each**2) for each in found[:5]])
    slopes = tape.gradient(loss, given)
    for lane, length in enumerate(n):
        with tf.GradientTape() as tape:
            given = [tf.constant(each[lane]) for each in (queries, keys, values)]
            tape.watch(given)
            want = attention_in_other_words.single(*given, length)
            loss = tf.add_n([tf.reduce_sum(each**2) for each in want[:5]])
        for ours, theirs in zip([each[lane] for each in found], want, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        for ours, theirs in zip(slopes, tape.gradient(loss, given), strict=True):
            np.testing.assert_allclose(ours[lane], theirs, rtol=1e-4, atol=1e-5)


@pcbatch.autobatch(in_axes={"table": None})
def embedded(words, table):
    found = table[words]
    return found.sum(axis=0), tf.reduce_sum(tf.tanh(tf.gather(table, words)), axis=0), tf.one_hot(words, 5)


def test_rows_of_ints_are_places():
    table = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    summed, squashed, hot = embedded([[1, 2, 3], [0]], table)
    np.testing.assert_allclose(summed, [[12.0, 15.0], [0.0, 1.0]])
    np.testing.assert_allclose(squashed[0], np.tanh(table[1:4]).sum(0), rtol=1e-6)
    assert hot.row_lengths().numpy().tolist() == [3, 1]


@pcbatch.autobatch(in_axes={"table": None})
def shifted(words, k, table):
    return sum(table[words + k])


def test_what_is_behind_a_row_is_no_place():
    """The padding is 0, and 0 + 2 is no place of the table's: only places of the row's own may fail the lane."""
    run = shifted.run([[-1, -2], [-1], [0]], [2, 2, 2], np.float32([1.0, 2.0]))
    assert run.status.tolist() == [LaneStatus.OK, LaneStatus.OK, LaneStatus.INDEX]
    assert run.value.numpy()[:2].tolist() == [3.0, 2.0]


@pcbatch.autobatch
def powers(x, p):
    return sum((x - 1.0) ** p)


def test_slopes_are_those_of_the_elements_that_there_are():
    p = tf.constant([0.5, 0.3])
    with tf.GradientTape() as tape:
        tape.watch(p)
        loss = tf.reduce_sum(powers([[2.0, 3.0], [4.0]], p))
    np.testing.assert_allclose(tape.gradient(loss, p), [np.log(2.0) * 2**0.5, np.log(3.0) * 3**0.3], rtol=1e-5)


@pcbatch.autobatch
def product(x, y):
    return x * y, sum(x + y)


def test_two_rows_have_to_be_as_long():
    run = product.run([[1.0, 2.0], [3.0]], [[1.0, 3.0], [3.0, 4.0]])
    assert run.status.tolist() == [LaneStatus.OK, LaneStatus.RAISED]
    assert run.value[0][0].numpy().tolist() == [1.0, 6.0]
    assert "slices of 1 and 2 elements" in str(run.errors[0])
    assert product([[1.0, 2.0], [3.0]], [[2.0], [3.0]])[0].to_list() == [[2.0, 4.0], [9.0]]
    assert product([[1.0], [2.0, 3.0]], [[2.0], [3.0, 1.0]])[1].numpy().tolist() == [3.0, 9.0]


@pcbatch.autobatch(in_axes={"w": None})
def recurrent(x, w):
    h = tf.zeros(2)
    for v in x:
        h = tf.tanh(w * v + h)
    return tf.reduce_sum(h) + tf.reduce_sum(x * x)


def test_gradients():
    w = tf.constant([0.3, -0.2])
    rows = [tf.constant(row, tf.float32) for row in ROWS]
    with tf.GradientTape() as tape:
        tape.watch([w, RAGGED.flat_values])
        loss = tf.reduce_sum(recurrent(RAGGED, w))
    got = tape.gradient(loss, [w, RAGGED])
    with tf.GradientTape() as tape:
        tape.watch([w, *rows])
        by_hand = tf.add_n([recurrent.single(row, w) for row in rows])
    want = tape.gradient(by_hand, [w, *rows], unconnected_gradients="zero")
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    np.testing.assert_allclose(got[1].flat_values, tf.concat(want[1:], 0), rtol=1e-5)


def test_gradients_through_rows_that_come_back():
    f = pcbatch.autobatch(softmax)
    rows = [tf.constant(row, tf.float32) for row in ROWS if row]
    with tf.GradientTape() as tape:
        tape.watch(rows)
        loss = tf.reduce_sum(f(rows)[1].flat_values ** 2)
    got = tape.gradient(loss, rows)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        by_hand = tf.add_n([tf.reduce_sum(tf.nn.softmax(row) ** 2) for row in rows])
    for ours, theirs in zip(got, tape.gradient(by_hand, rows), strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(ours), theirs, atol=1e-6)


def test_other_lengths_do_not_compile_anew():
    f = pcbatch.autobatch(total).options(name="by_length")
    for lengths in itertools.permutations((8, 5, 0, 1)):
        f(pcbatch.ragged([[1.0] * n for n in lengths]))
    assert f.stats().compilations == 1
    f([[1.0] * n for n in (9, 1, 2, 3)])
    assert f.stats().compilations == 2


def test_lists_of_long_rows_have_room_at_once():
    f = pcbatch.autobatch(collected)
    found, _ = f([[1.0] * 100, [1.0] * 3])
    assert (found.row_lengths().numpy().tolist(), f.stats().compilations) == ([100, 3], 1)


@pcbatch.autobatch(in_axes={"w": None})
def moved_about(x, w):
    y = w * x
    order = np.sort(tf.concat([y[::2], y[y > 0.5], y[::-1]], 0))
    total = 0.0
    for v in order:
        total = 0.5 * total + tf.tanh(v)
    hs = [tf.sin(w * x[t]) for t in range(len(x))]
    return total + sum(np.cumsum(order * order)) + sum(tf.stack(hs) ** 2)


def test_gradients_through_what_is_moved_about():
    w, rows = tf.constant(0.7), [np.float32(row) for row in ROWS]
    with tf.GradientTape() as tape:
        tape.watch(w)
        loss = tf.reduce_sum(moved_about(ROWS, w))
    with tf.GradientTape() as by_hand:
        by_hand.watch(w)
        want = tf.add_n([moved_about.single(row, w) for row in rows])
    np.testing.assert_allclose(loss, want, rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(loss, w), by_hand.gradient(want, w), rtol=1e-5)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (lambda x: np.outer(x, x), "PCB406"),
        (lambda x: x @ tf.transpose(x), "PCB406"),
        (lambda x: tf.einsum("n,m->nm", x, x), "PCB406"),
        (lambda x: np.outer(x, x[x > 0.0]), "PCB407"),
        (lambda x: np.stack([x, x]), "PCB406"),
        (lambda x: x[::0], "PCB401"),
    ],
)
def test_what_is_no_row(program, code):
    with pytest.raises(PcbatchError, match=code):
        pcbatch.autobatch(program)(ROWS)


def test_a_copy_of_a_part_takes_no_stores():
    """In NumPy `x[::2]` shares its elements: `y[0] = 1.0` would be seen in `x`."""

    @pcbatch.autobatch
    def shared(x):
        y = x[::2]
        y[0] = 1.0
        return x

    with pytest.raises(PrimitiveError, match="PCB406"):
        shared(ROWS)


def test_on_an_executor():
    f = pcbatch.autobatch(scaled)
    rows = [np.full(n, n, np.float32) for n in (2, 9, 0, 5)]
    with ThreadPoolExecutor(2) as executor:
        assert pcbatch.shard(f, executor)(rows).to_list() == f(rows).to_list()


def test_results_as_arrays_of_numpy():
    found = pcbatch.autobatch(scaled).options(output="numpy")(RAGGED)
    assert [row.tolist() for row in found] == [[3.0, 5.0, 7.0], [9.0], [], [11.0, -1.0, 2.0, 5.0]]
    assert all(type(row) is np.ndarray for row in found)


def test_compiled_ahead():
    f = pcbatch.autobatch(total).options(name="ahead")
    f.compile(tf.RaggedTensorSpec([4, 6], tf.float32, ragged_rank=1))
    assert f(RAGGED).numpy().tolist() == [6.0, 4.0, 0.0, 6.5]
    assert f.stats().compilations == 1
    with pytest.raises(UsageError, match=r"PCB539: .*RaggedTensorSpec\(\[64, 40\], tf.float32, ragged_rank=1\)"):
        f.compile(tf.RaggedTensorSpec([4, None], tf.float32))


def test_exported(tmp_path):
    pytest.importorskip("jax", reason="JAX is not installed: the extra `jax`")
    pcbatch.autobatch(scaled).export(tmp_path / "scaled", RAGGED)
    found = pcbatch.exported.load(tmp_path / "scaled")(pcbatch.ragged(ROWS))
    assert [row.tolist() for row in map(np.asarray, found)] == [[3.0, 5.0, 7.0], [9.0], [], [11.0, -1.0, 2.0, 5.0]]


def test_slices_of_a_whole_array_come_back_as_rows():
    @pcbatch.autobatch
    def between(a, i, j):
        return a[:i], a[i:j], a[i : i + j]

    batch, i, j = np.float32([[1, 2, 3, 4], [5, 6, 7, 8]]), np.int32([1, 2]), np.int32([3, 2])
    wanted = zip(*map(between.single, batch, i, j), strict=True)
    for found, rows in zip(between(batch, i, j), wanted, strict=True):
        assert found.to_list() == [np.asarray(row).tolist() for row in rows]


def test_inside_of_a_graph():
    f = pcbatch.autobatch(scaled)

    @tf.function
    def told(values, length):
        return f(pcbatch.Ragged(values, length))

    assert told(tf.ones([2, 4]), tf.constant([3, 1])).to_list() == [[3.0] * 3, [3.0]]
    with pytest.raises(UsageError, match=r"PCB511: .*pcbatch.Ragged\(x.to_tensor"):
        tf.function(f)(RAGGED)


@pcbatch.autobatch
def in_parts(pair):
    x, k = pair["x"], pair["k"]
    return sum(x) * k, {"x": x, "n": len(x)}


def test_rows_in_a_structure():
    value, rest = in_parts({"x": ROWS, "k": np.arange(4.0, dtype=np.float32)})
    assert value.numpy().tolist() == [0.0, 4.0, 0.0, 19.5]
    assert (rest["x"].to_list(), rest["n"].numpy().tolist()) == (ROWS, [3, 1, 0, 4])


@pcbatch.autobatch
def summed(x):
    return total(x)


@pcbatch.autobatch
def calls_others(x):
    return summed(x) + summed(x[1:]), scaled(x)


def test_calls_inside():
    numbers, rows = calls_others(RAGGED)
    assert numbers.numpy().tolist() == [11.0, 4.0, 0.0, 8.0]
    assert rows.to_list() == [[3.0, 5.0, 7.0], [9.0], [], [11.0, -1.0, 2.0, 5.0]]


def test_pythons_floats_beside_wide_ones():
    found = product([[1.0, 2.0], [3.0]], [np.array([0.1, 0.2]), np.array([0.3])])[0]
    assert found.dtype == tf.float64
    np.testing.assert_array_equal(found.flat_values, np.array([0.1, 0.2, 0.3]) * [1, 2, 3])


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (tf.ragged.constant([[[1.0], [2.0, 3.0]], [[3.0]]]), "2 ragged axes"),
        ([np.ones((2, 3)), np.ones((3, 2))], "elements of several shapes"),
        ([["a", "b"], ["c"]], "text"),
        (pcbatch.Ragged(np.ones((2, 4)), np.array([1, 9])), "from 0 to its room, 4"),
        (pcbatch.Ragged(np.ones(2), np.array([1, 1])), "the room of a row"),
    ],
    ids=["deeper", "shapes", "text", "too long", "no room"],
)
def test_what_cannot_be_rows(rows, why):
    with pytest.raises(UsageError, match=f"PCB511: argument 'xs': .*{why}"):
        pcbatch.autobatch(total)(rows)


def test_what_all_lanes_share_has_one_length():
    with pytest.raises(UsageError, match=r"PCB511: argument 'w': .*what all lanes share has one length"):
        recurrent(RAGGED, RAGGED)
    with pytest.raises(UsageError, match="PCB511: rows of unequal length"):
        pcbatch.ragged([1.0, 2.0])


def test_a_list_of_arrays_for_all_lanes_stays_a_structure():
    @pcbatch.autobatch(in_axes={"layers": None})
    def through(x, layers):
        for layer in layers:
            x = x @ layer
        return x

    found = through(np.ones((2, 3), np.float32), [np.ones((3, 2), np.float32), np.ones((2, 4), np.float32)])
    assert found.shape == (2, 4)


def test_quotients_of_rows():
    """By a literal, or by a row; what is behind a row divides nothing."""

    @pcbatch.autobatch(output="numpy")
    def divided(x):
        return x // 2, x % 3, 100 // x, 100 % (x + 1)

    rows = [[5, 7, 9], [4, 2, 8, 6], []]
    for found, expected in zip(
        divided(rows), (lambda x: x // 2, lambda x: x % 3, lambda x: 100 // x, lambda x: 100 % (x + 1)), strict=True
    ):
        assert [row.tolist() for row in found] == [[expected(v) for v in row] for row in rows]


def test_gradients_of_each_example_with_rows():
    weights = tf.Variable([[1.0, 2.0], [0.5, -1.0]])

    @pcbatch.autobatch
    def read(x):
        h = tf.zeros([2])
        for v in x:
            h = tf.tanh(v + tf.linalg.matvec(weights, h))
        return tf.reduce_sum(h)

    rows = [np.float32([[1, 2]]), np.float32([[1, 0], [0, 1], [2, 2]])]
    found = pcbatch.per_example_gradients(read, weights)(rows)
    for row, gradient in zip(rows, found, strict=True):
        with tf.GradientTape() as tape:
            loss = read.single(row)
        np.testing.assert_allclose(gradient, tape.gradient(loss, weights), atol=1e-5)
