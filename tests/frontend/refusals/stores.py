import pcbatch


TABLE = [1, 2, 3]


@pcbatch.autobatch
def f(i):
    TABLE[i] = 1
    TABLE[0] += i
    return TABLE[i]
