import pcbatch


@pcbatch.autobatch
def f(n, *rest):
    """Every fault of a function is told at once, in the order of the source."""
    global m

    while n is not None:
        try:
            n = n - 1
        finally:
            print(n, 1e3j)
    return
