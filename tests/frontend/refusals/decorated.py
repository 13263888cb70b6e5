import pcbatch


@pcbatch.autobatch
def f(x):
    @pcbatch.autobatch
    def g(v):
        return v

    return g(x)
