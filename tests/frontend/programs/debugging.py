import pcbatch

EXAMPLES = [(1.0, 2), (-1.0, 3), (2.0, 0)]


@pcbatch.autobatch
def shown(x, n):
    pcbatch.debug("x = {}", x)
    while n > 0:
        pcbatch.debug("here", n, shown(x, n - 1) if x > 0 else x)
        n -= 1
    return x
