"""Defaults of functions inside functions are evaluated around them, where names mean something else. In: reference, graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    LIMIT = a + 1

    def f(k):
        def g(j, LIMIT=LIMIT * 3):
            return j * LIMIT

        return g(k) + (lambda k, b=k + b: k * b)(2)

    def deep(a):
        def mid(b, *, a=a + 1):
            def low(n, a=a * 2, b=b):
                return a + b + n

            return low(a) + a

        return mid(a) + a

    use = lambda g, z: g(z)
    two = lambda g, h, z: g(z) + 10 * h(z)
    t0 = (lambda m, u=2: (lambda k, v=u * 3: k * v)(m))(n) + two(lambda k, v=a: k * v, lambda k, v=b: k * v, m)
    for i in range(3):
        t0 = (t0 + use(lambda k, i=i: k + i, a)) % 29
    return t0 + f(n) + deep(b)
