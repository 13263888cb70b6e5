"""None is a structure without leaves: a field that is None on every path costs nothing."""

from typing import Any, NamedTuple

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))


class State(NamedTuple):
    """What a loop carries."""

    x: Any
    cache: Any
    rest: Any


@pcbatch.autobatch
def nothing(x, n):
    state = State(x, None, ())
    for i in range(n):
        state = state._replace(x=state.x + i)
    return state
