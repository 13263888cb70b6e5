"""Tuning to XLA's CPU compiler, each file with its measured reason, and the switch that turns all of it off.

With the switch off every operation takes its plain form, as it does on a GPU and outside of XLA. The results are the
same bits but for products, long sums and softplus, which then round otherwise. The environment variable
PCBATCH_XLA_CPU=0, set before pcbatch is imported, switches it off for a process: to see what it is worth, or whether it
is to blame.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pcbatch.runtime.backends.tensorflow import graphs


@dataclass
class _Switch:
    on: bool


def wanted(environment: Mapping[str, str]) -> bool:
    """Return the setting in the environment."""
    return environment.get("PCBATCH_XLA_CPU") != "0"


switch = _Switch(wanted(os.environ))


def is_on() -> bool:
    """Return whether programs that are traced now may be tuned: they are for a CPU."""
    return switch.on and not graphs.on_gpu()


def applies() -> bool:
    """Return whether the present trace may be tuned, and XLA compiles it."""
    return is_on() and graphs.in_outer_xla()


@contextlib.contextmanager
def switched(on: bool) -> Iterator[None]:
    """Programs that are traced inside, in any thread, may be tuned or not; compiled ones are kept apart."""
    before, switch.on = switch.on, on
    try:
        yield
    finally:
        switch.on = before
