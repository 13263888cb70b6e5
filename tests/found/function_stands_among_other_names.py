"""What stands for a call has scopes inside that bind the caller's names, or reads what the caller hides. In: reference, graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    inner = lambda k: (lambda a: a * k)(2) + sum([a * k for a in (k, 1)])

    def swapped(k, a):
        t = k * a
        return sum([t * k * a for t, k in ((1, 2), (t, a))])

    by_module = lambda k: k * LIMIT

    def hides(f, LIMIT):
        return f(1) + LIMIT

    def hides_by_local(f):
        LIMIT = b + 1
        return f(2) + LIMIT

    t0 = 0
    for f in (lambda k: k * a, lambda k: k + a):
        t0 += sum([f(a) for a in (1, b)])
    return (t0 + inner(a) + swapped(a, n) + swapped(m, t0) + hides(by_module, a) + hides_by_local(by_module)) % 97
