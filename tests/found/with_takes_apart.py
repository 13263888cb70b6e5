"""A name given by a block's own manager, by one of its tuples or by an exchange inside is read inside. In: reference, graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    result = 0.5
    with contextlib.nullcontext((a + 1, x * 2.0)) as (a, x):
        with contextlib.nullcontext(a) as b:
            result = result + x
            pair = (b, x)
            (b, result), a = pair, a
            a = a + b
    with contextlib.nullcontext(b) as t0, contextlib.nullcontext(t0 + 1) as q:
        q = q * t0
    return result, a + q
