import pcbatch


class Options:
    rate = 1


options = Options()


@pcbatch.autobatch
def f(xs, m, d):
    options.rate = 2
    options.rate += 1
    xs[None] = xs
    m[..., 0] = 0
    m[0][1] = 2
    d["key"] = 1
    m[0, True] = 3
    x = xs.pop()
    seen = {x}
    more = {y for y in xs}
    return seen, more, set(xs)
