"""Fewer runs than all combinations: arrays that cover the pairs of program, mode, batch size and options."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from tests.harness import Mode

Name = TypeVar("Name")
Way = TypeVar("Way")
Size = TypeVar("Size")
Setting = TypeVar("Setting", bound=Hashable)


def small_runs(
    names: Sequence[Name], costs: Mapping[Way, int], cheap: Way, sizes: Sequence[int]
) -> tuple[tuple[Name, Way, int], ...]:
    """Triples that cover every pair (name, size) once and every pair (mode, size); pairs (name, mode) run elsewhere.

    Every fourth program compiles at one size, the sizes taken in turn; else programs run in the `cheap` mode. Greedy:
    of the modes in `costs` take the one on which least has been spent at this size. So all modes come up first,
    expensive ones less often later.
    """
    spent: Counter[tuple[Way, int]] = Counter()
    runs = []
    for place, name in enumerate(names):
        for size in sizes:
            mode = cheap
            if size == sizes[place // 4 % len(sizes)] and place % 4 == 0:
                mode = min(costs, key=lambda m: (spent[m, size], costs[m]))
                spent[mode, size] += costs[mode]
            runs.append((name, mode, size))
    return tuple(runs)


def parts(setting: Any) -> tuple[tuple[Any, ...], ...]:
    """Parts that a program meets in a setting, with its place there: the engine and the schedule of a mode, a card."""
    if isinstance(setting, tuple):
        return tuple((place, *part) for place, each in enumerate(setting) for part in parts(each))
    if isinstance(setting, Mode):
        return ("engine", setting.engine), ("schedule", setting.schedule)
    return ((setting,),)


def covering(
    names: Sequence[Name],
    settings: Sequence[Setting],
    features: Mapping[Name, Collection[str]],
    known: Collection[tuple[Name, Setting]] = (),
) -> tuple[tuple[Name, Setting], ...]:
    """Pairs that, with the `known` ones, have each program once, and each feature with each option of any setting.

    A program that is not known takes the setting that has the fewest programs; of several, the one that its features
    have met least. Then, greedily, the pair in which most is new, until nothing is.
    """
    missing = {
        (part, each) for setting in settings for part in parts(setting) for name in names for each in features[name]
    }
    used = Counter(setting for _, setting in known)
    runs: list[tuple[Name, Setting]] = []

    def met(name: Name, setting: Setting) -> set[Any]:
        return {(part, each) for part in parts(setting) for each in features[name]}

    for run in known:
        missing -= met(*run)

    def take(name: Name, setting: Setting) -> None:
        nonlocal missing
        runs.append((name, setting))
        used[setting] += 1
        missing -= met(name, setting)

    run_already = {name for name, _ in known}
    for name in names:
        if name not in run_already:
            take(name, min(settings, key=lambda setting: (used[setting], -len(met(name, setting) & missing))))
    every = {(name, setting): met(name, setting) for name in names for setting in settings} if missing else {}
    while missing:
        take(*max(every, key=lambda run: len(every[run] & missing)))
    return tuple(runs)


def sized(runs: Iterable[tuple[Name, Setting]], sizes: Sequence[Size]) -> tuple[tuple[Name, Setting, Size], ...]:
    """The same runs with sizes: the runs of each setting take them in turn."""
    turns: Counter[Setting] = Counter()
    found = []
    for name, setting in runs:
        found.append((name, setting, sizes[turns[setting] % len(sizes)]))
        turns[setting] += 1
    return tuple(found)


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
