"""Tests that the installed TensorFlow has the internals that `private` uses, and the loss where it has not.

Each file tries what the file of the same name in `private/` uses.

>>> [probe.name for probe in probes() if not probe.works]
[]
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.runtime.probes import calls, ffi, graphs, tapes, values, vectoriser, xla
from tests.runtime.probes.use import Use

USES: tuple[Use, ...] = (
    *graphs.USES,
    *calls.USES,
    *values.USES,
    *xla.USES,
    *ffi.USES,
    *tapes.USES,
    *vectoriser.USES,
)


@dataclass(frozen=True)
class Probe:
    """A use of TensorFlow's insides: whether it works as we rely on, and pcbatch's fallback where not."""

    name: str
    works: bool
    lost: str


def probes() -> tuple[Probe, ...]:
    """Every use, tried now, in graphs of its own: takes about a second."""
    return tuple(Probe(use.name, works(use), use.lost) for use in USES)


def works(use: Use) -> bool:
    """Try the use now: return whether it behaves as we rely on."""
    try:
        return bool(use.check())
    except Exception:  # a version without it may raise anything
        return False
