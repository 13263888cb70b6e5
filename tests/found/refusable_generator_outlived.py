"""A generator reads what variables hold when it is used; its first sequence is evaluated at once. In: graph."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    g = (a * q for q in (b, 1))
    a = a + 3
    b = 7
    return sum(g) + b
