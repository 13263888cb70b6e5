import contextlib

import pcbatch

EXAMPLES = [(3,), (-2,)]


@pcbatch.autobatch
def contexts(x):
    y = 1
    with contextlib.nullcontext(x) as held, contextlib.nullcontext((x, [y])) as (first, rest):
        """A docstring."""
        y = held + first
        y += len(rest)
        z: int = y * 2
        with contextlib.nullcontext():
            z, y = (y if z > 0 else -y), z
        held.bit_length()
    with contextlib.nullcontext():
        pass
    if y > z:
        y = z
    return y, z, (held and first) // 2
