"""Fewer runs than all combinations: arrays that cover the pairs of program, mode, batch size and options."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

Name = TypeVar("Name")
Mode = TypeVar("Mode")


def small_runs(
    names: Sequence[Name], costs: Mapping[Mode, int], cheap: Mode, sizes: Sequence[int]
) -> tuple[tuple[Name, Mode, int], ...]:
    """Triples that cover every pair (name, size) once and every pair (mode, size); pairs (name, mode) run elsewhere.

    Every fourth program compiles at one size, the sizes taken in turn; else programs run in the `cheap` mode. Greedy:
    of the modes in `costs` take the one on which least has been spent at this size. So all modes come up first,
    expensive ones less often later.
    """
    spent: Counter[tuple[Mode, int]] = Counter()
    runs = []
    for place, name in enumerate(names):
        for size in sizes:
            mode = cheap
            if size == sizes[place // 4 % len(sizes)] and place % 4 == 0:
                mode = min(costs, key=lambda m: (spent[m, size], costs[m]))
                spent[mode, size] += costs[mode]
            runs.append((name, mode, size))
    return tuple(runs)


def in_turn(names: Sequence[Name], modes: Sequence[Mode], sizes: Sequence[int]) -> tuple[tuple[Name, Mode, int], ...]:
    """Every pair (name, mode) once, the sizes taken in turn: with as many modes as sizes all pairs come up."""
    return tuple(
        (name, mode, sizes[(place + turn) % len(sizes)])
        for place, name in enumerate(names)
        for turn, mode in enumerate(modes)
    )


def every_second(*options: Iterable[Any]) -> list[Any]:
    """The combinations of some options, for `parametrize`: every second one, and the others as slow tests.

    A chessboard: those for which the places of the values add up to an even number. Of two options each value comes
    up; of three or more, with two values each or more, every pair of values of different options.
    """
    return [
        combination if sum(places) % 2 == 0 else pytest.param(*combination, marks=pytest.mark.slow)
        for places, combination in (
            tuple(zip(*pairs, strict=True)) for pairs in itertools.product(*map(enumerate, options))
        )
    ]
