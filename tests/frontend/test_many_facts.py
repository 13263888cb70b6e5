"""Programs whose stores would have very many consequences if all were into lists: types are asked sooner."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch.frontend.translate import aliases, same_objects


@pcbatch.autobatch
def arrays(points, i, n):
    table = points * np.zeros((3, 1), np.float32)
    k = 0
    while k < n:
        table[k % 3] = points + 1.0
        points[i] = table[k % 3, 1]
        table[0] = points * 2.0
        points[1], points[2] = points[2] + table[0, 0], points[1]
        table[2, i], table[i % 3, 0] = table[i % 3, 0], points[1] + table[2, i]
        k = k + 1
    return points, table


@pcbatch.autobatch
def lists(p, i, n):
    """The same of lists, with an element that is stored at two places and changed at one."""
    points = [[p, p + 1.0], [p, 1.0], [2.0, p], [p, p]]
    table = [[[p, 1.0], [2.0, p]], [[p, p], [p, 3.0]], [[4.0, p], [p, p]]]
    k = 0
    while k < n:
        table[k % 3] = [points[0], points[1]]
        points[i] = table[k % 3][1]
        table[0] = points[:2]
        points[1], points[2] = points[2], points[1]
        table[2][i], table[i % 3][0] = table[i % 3][0], points[1]
        points[0][0] = points[0][0] + 1.0
        k = k + 1
    return table[0][0][0]


def test_stores_into_arrays_have_few_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists would have 100,000 in place of these arrays, in a minute: they may be inside one another."""
    most = 0

    def counted(*given: object) -> same_objects.Facts:
        nonlocal most
        facts = same_objects.facts_after(*given)  # type: ignore[arg-type]
        most = max(most, len(facts))
        return facts

    monkeypatch.setattr(aliases, "facts_after", counted)
    points = np.arange(12, dtype=np.float32).reshape(3, 4)
    i, n = np.array([0, 3, 1]), np.array([2, 4, 0])
    value = arrays(points, i, n)
    assert 0 < most < 2 * same_objects.MOST
    for lane in range(3):
        for found, wanted in zip(value, arrays.single(points[lane], i[lane], n[lane]), strict=True):
            np.testing.assert_array_equal(np.asarray(found)[lane], wanted)


def test_lists_that_share_an_element_are_refused() -> None:
    with pytest.raises(pcbatch.CompileError) as caught:
        lists([1.0, 2.0], [0, 3], [2, 4])
    assert caught.value.diagnostics[0].code == "PCB205"
    assert "points[0]" in str(caught.value)
