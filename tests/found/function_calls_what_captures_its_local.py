"""A function's parameter or local has the name of what a function captures that it calls. In: reference, graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    def times(k):
        return k * a + m

    def halved(k):
        return halved(k // 2) if k > 60 else k * a + b

    def by_parameter(a):
        return times(a) + a

    def in_a_loop(k):
        a, b = k + 1, 1
        for _ in range(2):
            a = (a + times(a) + halved(b)) % 29

        def low(b):
            return (a * b + times(b)) % 29

        return low(2) + times(a) + b

    def handed(f, a):
        return f(a) + times(a)

    t0 = by_parameter(n) + in_a_loop(b) + handed(times, 3) + handed(lambda m: halved(m) + a, m)
    return t0 + sum([by_parameter(a) for a in (b, 2)])
