import pcbatch

EXAMPLES = [(0,), (1,), (6,)]


@pcbatch.autobatch
def parity(n):
    return 2 * is_even(n) + is_odd(n)


@pcbatch.autobatch
def is_even(n):
    return 1 if n == 0 else is_odd(n - 1)


@pcbatch.autobatch
def is_odd(n):
    if n == 0:
        return 0
    else:
        return is_even(n - 1)
