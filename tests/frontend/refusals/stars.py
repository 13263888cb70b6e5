import pcbatch


@pcbatch.autobatch
def f(x, *rest, **options):
    x[0], *others = x
    return x
