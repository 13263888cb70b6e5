import pcbatch

EXAMPLES = [(1, [1, 2]), (3, [0]), (8, [8, 9])]
NOTHING = None


@pcbatch.autobatch
def membership(n, xs):
    if n in (1, 2) or n in range(3, 7, 2):
        n += 10
    while n not in xs and n < 9 and NOTHING is None:
        n += 1
    return n, xs[0] in [n], NOTHING is not None, 0 < n in xs
