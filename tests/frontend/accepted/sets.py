"""Sets and dicts of what is known."""

import numpy as np

import pcbatch

SEEN = {1, 2}


@pcbatch.autobatch
def s1(x):
    return 1.0 if {y for y in [1, 2, 2]} == {1, 2} else 0.0


@pcbatch.autobatch
def s2(x):
    return 1.0 if {1} | {2} == SEEN else 0.0


@pcbatch.autobatch
def s3(x):
    return 1.0 if {1} < SEEN and {1} != SEEN and {1}.issubset(SEEN) else 0.0


@pcbatch.autobatch
def s4(x):
    return x + len({1, 2} - {2}) + len({1, 2} & {2}) + len({1, 2} ^ {2, 3})


@pcbatch.autobatch
def s5(x):
    s = {1}
    s |= {2}
    s.update([3, 4])
    s.discard(1)
    return x + len(s)


@pcbatch.autobatch
def s6(x):
    return 1.0 if int(x) in SEEN else 0.0


@pcbatch.autobatch
def s7(x):
    return 1.0 if int(x) in {1, 2} else 0.0


@pcbatch.autobatch
def s8(x):
    return sum(y for y in {3, 1})


@pcbatch.autobatch
def s9(x):
    d = {"a": 1}
    return x + (1 if d == {"a": 1} else 0) + (1 if [1, x] == [1, x] else 0) + (1 if "a" in d else 0)


@pcbatch.autobatch
def s10(x):
    return x + len(frozenset([1, 2])) + (1 if 1 in frozenset([1, 2]) else 0)


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10"], X)
