import pcbatch


@pcbatch.autobatch
def f(x):
    def helper(y):
        return y + 1

    class Pair:
        pass

    async def later():
        pass

    return helper(x)
