import pcbatch


options = [1]


@pcbatch.autobatch
def f(xs, m):
    xs[None] = xs
    m[..., 0] = 0
    m[0, True] = 3
    x = options.pop()
    options.append(x)
    seen = {x}
    more = {y for y in xs}
    return seen, more, set(xs)
