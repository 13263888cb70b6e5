import pcbatch


@pcbatch.autobatch
def f(xs, n):
    for i, x in enumerate(xs):
        xs[i] = x + n
    for row in (m := xs):
        row[0] = n
    match (xs, n):
        case whole, _:
            whole[0] = n
    return xs, m
