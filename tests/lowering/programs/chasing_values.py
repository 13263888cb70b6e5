"""A loop whose only turn is known as long as its counter is, and the counter as long as there is only one turn.

Found by the generator; whether the two chase each other depends on the rounds that each step takes.
"""

import collections
import math

import numpy as np

import pcbatch

Pair = collections.namedtuple("Pair", "low high")
ARRAY = np.arange(8, dtype=np.int32).reshape(2, 4)
BATCH = (*np.arange(6, dtype=np.int32).reshape(3, 2), np.array([0.5, 1.5], np.float32), ARRAY)


@pcbatch.autobatch
def turns(n, a, b):
    t0 = 2
    x = 0.5
    result = 0.5
    p = Pair(2, 0.5)
    d = {"count": 1, "on": True}
    for i1 in range(1, turns(n - 1, -5 % 29, p.low % 13 - 6)[0] % 4):
        for _ in (b, turns(n - 1, (a | i1) % 13 - 6, (a | d["count"]) % 13 - 6)[0], b):
            if p.low in range(4):
                break
            p = Pair((t0 << d["count"] % 3) % 29, abs(result) % 8.0)
        x = result = min(max((result - x) % 4.0, -16.0), 16.0)
        if not math.copysign(3.5, 0.0) < float(i1):
            break
    return ((t0 or t0) % 13 - 6, (d["count"] if d["on"] else 9) % 13 - 6)


@pcbatch.autobatch
def chasing_values(n, a, b, x, xs):
    t0 = 2
    result = 0.5
    p = Pair(2, 0.5)
    d = {"count": 1, "on": True}
    for _ in range(
        turns(
            b=chasing_values(n - 1, t0 % 29, a % 13 - 6, min(max(result, -16.0), 16.0), xs)[1] % 29,
            a=turns(b=len(xs) % 13 - 6, a=p.low % 13 - 6, n=n - 1)[0] % 29,
            n=n - 1,
        )[0]
        % 4
    ):
        t0 = int(result) % 29
    return ((3.0 + result) % 8.0, d["count"] % 13 - 6)
