import pcbatch


@pcbatch.autobatch
def f(x, *rest, **options):
    first, *others = x
    y = max(*others, **options)
    return {**options}, [*others], y, first
