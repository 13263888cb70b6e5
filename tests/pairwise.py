"""Which program runs in which mode at which of the small batch sizes: a covering array of pairs, of bounded cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

Name = TypeVar("Name")
Mode = TypeVar("Mode")


def small_runs(
    names: Sequence[Name], costs: Mapping[Mode, int], sizes: Sequence[int]
) -> tuple[tuple[Name, Mode, int], ...]:
    """Triples that cover every pair (name, size) once and every pair (mode, size); pairs (name, mode) run elsewhere.

    Greedy: of the modes that have not met this program (there are more modes than sizes), take the one on which least
    has been spent at this size. So all modes come up first, dear ones by `costs` less often later.
    """
    spent: Counter[tuple[Mode, int]] = Counter()
    runs = []
    for name in names:
        met: set[Mode] = set()
        for size in sizes:
            mode = min(costs, key=lambda m: (m in met, spent[m, size], costs[m]))
            spent[mode, size] += costs[mode]
            met.add(mode)
            runs.append((name, mode, size))
    return tuple(runs)
