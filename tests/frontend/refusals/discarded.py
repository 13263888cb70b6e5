import pcbatch


@pcbatch.autobatch
def f(xs, x):
    f(xs, x)
    x + 1
    xs.append(x)
    print(x)
    return x
