"""Corpus programs through a cache on disk: as they are traced, and as another process finds them; both as `f.single`.

A function under a name of its own starts with nothing that was compiled before, so its second call is from disk.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.store import cache_session
from tests.harness import AUTO, BATCH, EITHER, NAMES, PLAIN, XLA, Mode, assert_same, expected, load, run_lanes
from tests.pairwise import covering
from tests.program_features import of_corpus

LOCKSTEP = XLA[0]
numbers = itertools.count()
NEVER_KEPT = frozenset(["own_primitive"])
"""Programs with a batched form of the user's own, which is in no trace."""
PARTLY_KEPT = frozenset(["looped_call"])
"""Programs with an operation that native code and XLA have no code of: what is tried in vain is never found."""
FEW = (
    ("fibonacci", AUTO),
    ("fibonacci", LOCKSTEP),
    ("assignment_forms", AUTO),
    ("assignment_forms", PLAIN),
    ("rounding", EITHER),
    ("index_out_of_range", AUTO),
)
"""Native, in lockstep with stacks that grow, straight with each `jit`, and lanes that fail."""
ALL = covering(NAMES, (AUTO, LOCKSTEP, PLAIN), of_corpus(), FEW)
"""Each other program in one of these modes, each construct in each."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(cache_session.Store, "miss_compiled", lambda store: None)  # XLA has read its flags long ago
    pcbatch.cache(tmp_path / "cache")
    yield tmp_path / "cache"
    pcbatch.cache(None)


def lanes_and_leaves(name: str, mode: Mode) -> tuple[list[Any], list[np.ndarray], Any]:
    """What a function gives that nothing has been compiled for, and its statistics."""
    program = load(name)
    fresh = program.function.options(name=f"{name}_{next(numbers)}")
    lanes, leaves = run_lanes(fresh, mode, program.arguments(BATCH), BATCH)
    return lanes, leaves, fresh.options(**mode.options).stats()


def twice(name: str, mode: Mode) -> None:
    """Both runs, each lane compared with `f.single`, and the bits of the two."""
    first, bits, stats = lanes_and_leaves(name, mode)
    assert stats.hits == 0
    again, same_bits, stats_again = lanes_and_leaves(name, mode)
    if name in NEVER_KEPT or not stats.misses:
        assert not stats_again.hits
    else:
        assert stats_again.hits > 0
        assert stats_again.misses == 0 or name in PARTLY_KEPT
        assert stats_again.forms == stats.forms
        assert stats_again.notes == stats.notes
    for lanes in (first, again):
        for lane, wanted in zip(lanes, expected(name, BATCH), strict=True):
            assert_same(lane, wanted, load(name).dtypes)
    for one, other in zip(bits, same_bits, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(("name", "mode"), FEW, ids=str)
def test_a_program_from_disk_is_the_program(name: str, mode: Mode, folder: Path) -> None:
    twice(name, mode)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), ALL, ids=str)
def test_every_program_from_disk_is_the_program(name: str, mode: Mode, folder: Path) -> None:
    twice(name, mode)
