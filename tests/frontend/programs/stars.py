import pcbatch

MORE = {"more": 1}
EXAMPLES = [([1, 2, 3], 4), ([0, 0, -5], 2)]


def helper(*numbers, scale=1, **others):
    return sum(numbers) * scale + len(others)


@pcbatch.autobatch
def sub(a, b):
    return a - b


@pcbatch.autobatch
def stars(xs, n):
    first, *rest = xs
    *most, last = (n, *rest)
    options = {"scale": n, **MORE}
    total = helper(*xs, *rest, **options) + helper(*xs, sub(first, last), scale=sub(n, 1))
    (a, *_), b = most, sub(total, n)
    return [*most, total], a, b
