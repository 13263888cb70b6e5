"""A function with `yield`: the body of what goes over it stands at each `yield`."""

import pcbatch

EXAMPLES = [(10,), (7,), (0,), (45,)]


def halvings(n):
    while n > 0:
        yield n
        n = n // 2


@pcbatch.autobatch
def odd_ones(n):
    found = 0
    for k in halvings(n):
        if k % 2 == 0:
            continue
        found += k
        if found > 20:
            break
    return found
