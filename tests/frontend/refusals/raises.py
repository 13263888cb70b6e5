import pcbatch


error = ValueError("bad")


@pcbatch.autobatch
def f(x):
    if x == 1:
        raise
    if x == 2:
        raise ValueError("bad", x)
    if x == 3:
        raise ValueError("bad") from error
    problem = x
    if x == 4:
        raise problem
    raise error or ValueError
