import pcbatch


@pcbatch.autobatch
def f(x):
    if x > 0:
        return
    if x < -1:
        return None
    return x
