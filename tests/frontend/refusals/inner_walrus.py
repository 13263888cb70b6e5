import pcbatch


@pcbatch.autobatch
def f(x):
    a = [h for g in (1, 2) if (h := g)]
    b = (lambda y: (z := y) + z)(x)
    return a, b
