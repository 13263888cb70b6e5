"""Parts of arrays whose length differs by lane, judged by Python: stores, sums and extremes, loops, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

ROWS = np.arange(12.0).reshape(2, 6) - 4.0
COUNTS = np.array([2, 5])


def stored_behind(x, n):
    y = x.copy()
    y[n:] = 0.0
    return y


def stored_before(x, n):
    y = x.copy()
    y[:n] = x[0]
    return y


def stored_between(x, n):
    y = x.copy()
    y[n - 1 : n + 1] = 7
    return y


def counted_from_the_end(x, n):
    y = x.copy()
    y[-n:] = 1.0
    y[: 1 - n] += 2.0
    return y


def added_in_place(x, n):
    y = x.copy()
    y[:n] += 1.0
    y[n:] *= x[n:]
    return y


def crossed_over(x, n):
    y = x[::-1].copy()
    y[n:] = x[n:]
    return y


def turned_round(x, n):
    y = x.copy()
    y[n:] = x[n:][::-1]
    y[:n] = y[:n][::-1]
    return y, sum(x[1:n][::-1]), x[n - 1 :][::-1][0]


def moved_along(x, n):
    y = np.zeros(6)
    y[: 6 - n] = x[n:]
    return y


def stored_in_a_row(x, n):
    y = np.zeros((3, 6))
    y[1, n:] = x[n:]
    y[n - 2 :, 0] = 5.0
    y[2, :n] -= 1.0
    return y


def stored_rows(x, n):
    y = np.zeros((6, 2))
    y[:n] = x[0]
    y[-n:] += x[:n]
    y[n:, 1] = 3.0
    return y


def seen_by_other_names(x, n):
    y = x.copy()
    view = y[1:5]
    view[n - 1 :] = 9.0
    return y, view


def an_array_of_the_length(x, n):
    y = x.copy()
    y[n - 2 : n - 1] = np.array([1.0])
    y[n - 1 : max(n + 1, 0)] = np.array([1.0, 2.0])
    return y


def taken_together(x, n):
    return np.sum(x[:n]), x[:n].mean(), np.max(x[n - 1 :]), x[:n].min(), np.prod(x[:n]), np.any(x[:n] > 0.0), len(x[n:])


def by_builtins(x, n):
    return sum(x[:n]), max(x[:n]), min(x[n:], default=0.0), any(x[:n] > 0), all(x[:n] < 0)


def computed(x, n):
    return np.sum(np.exp(x[:n]) * 2.0 - x[0]), np.log(np.sum(np.exp(x[n:] - np.max(x[n:])))), np.sum(-x[:n] / x[:n])


def gone_over(x, n):
    total = 0.0
    for k, v in enumerate(x[:n]):
        total += k * v
    for a, b in zip(x[:n], x[n:], strict=False):
        total -= a * b
    return total, sum(v * v for v in x[1:n])


def an_element(x, n):
    part = x[1:n]
    return part[0], part[-1], part.shape[0]


def of_ints(n):
    numbers = np.arange(6)
    return np.sum(numbers[:n]), np.max(numbers[:n]), np.min(numbers[n:]), numbers[:n].mean()


def by_a_mask(x, n):
    high = x > n - 3
    return np.sum(x[high]), x[high].mean(), np.max(x[x > -9.0]), len(x[high]), x[high].shape[0], np.any(x[high] > 2.0)


def computed_by_a_mask(x, n):
    high = x > 0.5
    return np.sum(np.log(x[high])), np.sum(x[high] * (x + n)[high] / x[high]), sum(v * v for v in x[x < n])


def changed_by_a_mask(x, n):
    y = x.copy()
    y[y < 0.0] += n
    y[x > 1.0] *= 2.0
    kept = y[y > 0.5]
    y[y > 0.5] = 0.0
    return y, np.sum(kept), kept[0], kept[-1]


def of_a_matrix(x, n):
    m = x.reshape(2, 3) * n
    rows = np.array([1.0, n - 4.0]) > 0.0
    return np.sum(m[m > 1.0]), np.sum(m[rows], axis=0), m[rows].shape[1], len(m[rows])


def stored_through_a_name(x, n):
    y = x.copy()
    part = y[n - 1 :]
    part[0] = 8.0
    part[-1] = 9.0
    return y, part[0] + part[-1]


def two_slices_at_once(x, n):
    return np.sum(np.maximum(x[:n], x[6 - n :])), np.sum(x[:n] * x[6 - n :])


def kept_of_a_list(x, n):
    places = [i for i in range(6) if x[i] > n - 4]
    high = [v * 2 for v in x if v > -2.0 if n / (v + 3.0) > 0.5]
    total = 0.0
    for v in high:
        total += v
    some = 1 if places else 0
    twice = [i * 2 for i in places if i != n]
    total += sum(twice) + len(twice) + sum([v * v for v in x[:n]])
    return len(places), sum(places), max(high, default=0.0), total, places[0], 5 in places, some, high[-1]


def places(x, n):
    (up,) = np.where(x > n - 3)
    return np.sum(up), len(up), up[0], np.max(np.nonzero(x)[0]), np.flatnonzero(x > 0.0)[-1], sum(x[k] for k in up)


def taken_by_places(x, n):
    (up,) = np.where(x > n - 3)
    order = np.argsort(x)
    return x[up].sum(), np.max(x[up] * 2), x[order[:n]].sum(), np.dot(x[:n], x[:n]), x[:n] @ x[:n]


def stored_whole(x, n):
    part = x[1:n]
    part[:] = 0.5
    x[:n] = [7.0]
    return x, part.sum()


def seen_later(x, n):
    part, kept, values = x[:n], x[x > -3.0], [v for v in x if v > -3.0]
    x[0] = 99.0
    x[5] = 98.0
    return sum(part), np.max(part), sum(kept), len(kept), sum(values)


def of_their_sizes(x, n):
    first, chosen, grid = x[:n], x[x > -2.0], x.reshape(3, 2)
    sizes = (
        first.size,
        chosen.size,
        chosen.shape[0],
        grid[: n - 1].size,
        grid[grid > 0.0].size,
        np.flatnonzero(x < 0.0).size,
    )
    ranks = first.ndim, chosen.ndim, grid[: n - 1].ndim, grid[grid > 0.0].ndim
    return *sizes, *ranks, grid[: n - 1].shape[0] * grid[: n - 1].shape[1], chosen.dtype == x.dtype


def in_loops(x, n):
    total, part = 0.0, x[:1]
    for k in range(3):
        total += sum(part)
        part = x[: k + n]
    while n > 0:
        total = max(total, max(x[:n]))
        n -= 1
    return total + sum(part)


PROGRAMS = [
    of_their_sizes,
    taken_by_places,
    stored_whole,
    seen_later,
    in_loops,
    kept_of_a_list,
    places,
    by_a_mask,
    computed_by_a_mask,
    changed_by_a_mask,
    of_a_matrix,
    stored_through_a_name,
    two_slices_at_once,
    stored_behind,
    stored_before,
    stored_between,
    counted_from_the_end,
    added_in_place,
    crossed_over,
    moved_along,
    turned_round,
    stored_in_a_row,
    stored_rows,
    seen_by_other_names,
    an_array_of_the_length,
    taken_together,
    by_builtins,
    computed,
    gone_over,
    an_element,
]


def of_python(function, *batch):
    rows = [function(*(each[k] for each in batch)) for k in range(len(COUNTS))]
    if not isinstance(rows[0], tuple):
        return np.stack(rows)
    return tuple(np.stack(column) for column in zip(*rows, strict=True))


@pytest.mark.parametrize("form", ["native", "lockstep"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_as_python_has_it(program, form):
    rows = ROWS[:, :, None].repeat(2, 2) if program is stored_rows else ROWS
    wanted = of_python(program, rows.copy(), COUNTS)
    found = pcbatch.autobatch(program, form=form)(rows, COUNTS)
    for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (found, wanted)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_ints():
    wanted = of_python(of_ints, COUNTS)
    for one, other in zip(pcbatch.autobatch(of_ints)(COUNTS), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_an_empty_slice_fails_its_lane_as_in_python():
    def largest(x, n):
        return np.max(x[:n])

    run = pcbatch.autobatch(largest).run(ROWS, np.array([0, 3]))
    assert [each.lane for each in run.errors] == [0]
    assert run.result(1) == ROWS[1, :3].max()


def test_another_length_fails_its_lane_as_in_python():
    def copied(x, n):
        y = x.copy()
        y[n:] = x[:n]
        return y

    run = pcbatch.autobatch(copied).run(ROWS, np.array([3, 2]))
    np.testing.assert_array_equal(run.result(0), [*ROWS[0, :3], *ROWS[0, :3]])
    with pytest.raises(ValueError, match="broadcast"):
        copied(ROWS[1], 2)
    assert [each.lane for each in run.errors] == [1]


def test_slices_in_steps_in_order_and_joined():
    def moved(x, n):
        masked = x[x > n]
        return np.sort(x[:n]), x[n::2], np.concatenate([x[:n], x[n:]]), np.sort(masked), masked, masked + x[x > n + 0.0]

    f = pcbatch.autobatch(moved)
    x, n = np.float32([[3, 1, 2, 5], [0, 9, 4, 1]]), np.int32([2, 3])
    found = f(x, n)
    for lane in range(2):
        for ours, theirs in zip(found, f.single(x[lane], int(n[lane])), strict=True):
            np.testing.assert_array_equal(ours[lane], theirs)


@pytest.mark.parametrize(
    "program", [lambda x, n: np.outer(x, x[:n]), lambda x, n: np.outer(x, x[x > n])], ids=["a slice", "a mask"]
)
def test_what_is_refused(program):
    def wrapped(x, n):
        return program(x, n)

    with pytest.raises(pcbatch.PcbatchError, match=r"differs? (from lane to lane|by lane)"):
        pcbatch.autobatch(wrapped)(ROWS, COUNTS)
