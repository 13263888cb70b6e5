import pcbatch


@pcbatch.autobatch
def f(x):
    try:
        y = 1 / x
    except ZeroDivisionError:
        y = 0
    return y
