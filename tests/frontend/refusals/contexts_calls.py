import pcbatch


def helper(x):
    return x


@pcbatch.autobatch
def g(x):
    return x


@pcbatch.autobatch
def f(x, lock):
    with lock as held:
        y = x + g(x)
        z = x if x > 0 else helper(x)
        with lock:
            z += (y or g(y)) + (lambda a: a or helper(a))(y)
    return y + z
