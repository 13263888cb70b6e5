"""The interface to an array library: the whole of it, in four parts.

`arrays` and `control` are what the machine is made of, `pieces` what it does with a user's code, `host` how a user's
values come in and go out.
"""

from __future__ import annotations

from typing import Protocol

from pcbatch.runtime.backends.arrays import Array, Arrays, State
from pcbatch.runtime.backends.control import Control, Explanation, Further, Launch, Lowering, PullBack, RunOutcome, Spec
from pcbatch.runtime.backends.host import Host
from pcbatch.runtime.backends.pieces import Pieces

__all__ = [
    "Array",
    "Arrays",
    "Backend",
    "Control",
    "Explanation",
    "Further",
    "Host",
    "Launch",
    "Lowering",
    "Pieces",
    "PullBack",
    "RunOutcome",
    "Spec",
    "State",
]


class Backend(Arrays, Control, Pieces, Host, Protocol):
    """An array library as the machine and the type inference see it."""
