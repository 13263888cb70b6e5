"""Which program runs in which mode at which of the small batch sizes: a covering array of pairs, of bounded cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

Name = TypeVar("Name")
Mode = TypeVar("Mode")


def small_runs(
    names: Sequence[Name], costs: Mapping[Mode, float], sizes: Sequence[int]
) -> tuple[tuple[Name, Mode, int], ...]:
    """Triples that cover every pair (name, size) once and every pair (mode, size); pairs (name, mode) run elsewhere.

    Greedy: take a mode that has not met this size, else one that has not met this program, else the one on which
    least has been spent by `costs`, so that dear modes come up less often.
    """
    spent: Counter[Mode] = Counter()
    met_size: set[tuple[Mode, int]] = set()
    met_name: set[tuple[Mode, Name]] = set()
    runs = []
    for name in names:
        for size in sizes:
            mode = min(costs, key=lambda m: ((m, size) in met_size, (m, name) in met_name, spent[m], costs[m]))  # noqa: B023
            spent[mode] += costs[mode]
            met_size.add((mode, size))
            met_name.add((mode, name))
            runs.append((name, mode, size))
    return tuple(runs)
