import pcbatch


@pcbatch.autobatch
def f(n):
    """A loop may end."""
    while n > 0:
        n -= 1
        if n == 5:
            return n


@pcbatch.autobatch
def g(n):
    if f(n) > 0:
        return g(n - 1)
    elif n == 0:
        n = 1
