"""Loops whose variables are read behind them: the first turn is not tested, or by what the types will tell."""

import pcbatch

STEPS = 3
EXAMPLES = [(0, (1, 2)), (9, (3,)), (2, (-1, 0, 4))]


@pcbatch.autobatch
def first_turns(x, xs):
    for i in range(5):
        if x > i:
            break
    for each in xs:
        x += each
    for step in range(STEPS):
        y = x * step
    return i + each + y
