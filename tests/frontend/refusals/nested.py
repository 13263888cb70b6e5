import pcbatch


@pcbatch.autobatch
def f(x, flag):
    if flag:

        def sign(v):
            return v
    else:

        def sign(v):
            return -v

    if x > 0.0:

        def late(v):
            return v

    a = [x, x]

    def put(v):
        a[0] = v
        return v

    def long(v):
        while v > 1.0:
            v = v / 2.0
        return v

    def empty(v):
        v = v + 1.0

    return late(x) + put(x) + sum(map(long, a)) + empty(x)
