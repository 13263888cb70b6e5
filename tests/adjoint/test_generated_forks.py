"""Generated programs with many groups of calls that may be forked: plain and under a tape, judged by `f.single`."""

from __future__ import annotations

import pytest

from pcbatch.errors import CompileError
from pcbatch.function import executing
from pcbatch.runtime.adjoint import forked_reverse
from pcbatch.runtime.adjoint import tape as tapes
from pcbatch.runtime.adjoint.reverse import Forks
from pcbatch.runtime.machine.pool_sizing import ForkFeedback
from tests.forked_runs import KEPT, REFUSABLE, batch, check_plain, check_taped, module, size
from tests.generator_of_forks import program_of

slow = pytest.mark.slow
SEGMENTS = tapes.Sizes(bytes=1, log=7)
"""Many segments: a tape has room for two chunks of rows, the log for few entries."""
WAYS = {
    "usual": ({}, None, None),
    "growing, in segments": ({}, SEGMENTS, (1, 2**28)),
    "again, in segments": ({"tape": "replay"}, SEGMENTS, (2, 2**28)),
    "no lanes": ({}, None, (1, 1)),
    "of shared arguments": ({"shared": KEPT}, None, (2, 2**28)),
}
"""Options, sizes of tapes, and how many lanes for each example and bytes of lanes there are at first."""
SEEDS = range(40)


def judged(source, check, *given, **options):
    """Check a program, which may be refused for what it stores to."""
    try:
        check(source, *given, **options)
    except CompileError as error:
        if not {each.code for each in error.diagnostics} <= REFUSABLE:
            raise


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=slow) for seed in SEEDS[::2]])
def test_plain(seed):
    judged(program_of(seed), check_plain, batch(seed))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=slow) for seed in SEEDS[1::8]])
def test_taped(seed, monkeypatch):
    way = [*WAYS][seed % len(WAYS)]
    options, sizes, forks = WAYS[way]
    if sizes is not None:
        monkeypatch.setattr(tapes, "Sizes", lambda: sizes)
    if forks is not None:
        spread, limit = forks
        monkeypatch.setattr(executing, "Forks", lambda *_: Forks(ForkFeedback(spread), limit))
        monkeypatch.setattr(forked_reverse, "TRIES", 1)  # gradients go through runs that have grown
    judged(program_of(seed), check_taped, batch(seed), **options)


@slow
def test_the_programs_have_groups_of_calls():
    """In a row, of more than two calls, and many in one program."""
    found = []
    for seed in SEEDS:
        try:
            found.append(size(module(program_of(seed))["main"], batch(seed)))
        except CompileError:
            continue
    assert len(found) > 0.9 * len(SEEDS)
    assert sum(len(each) >= 1 for each in found) > 0.6 * len(SEEDS)
    assert sum(len(each) >= 2 for each in found) > 0.2 * len(SEEDS)
    assert sum(max(each, default=0) > 2 for each in found) > 0.15 * len(SEEDS)
