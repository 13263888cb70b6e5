"""Blocks that rebind what they read, before and after loops and calls, in a function that is called. In: reference, graph."""


@pcbatch.autobatch
def f0(n, a, x):
    if n <= 0:
        return a, x
    with tf.name_scope("one"):
        x = x + 0.5
        a = (a + 1) % 29
        x = x * 2.0
    a, result = f0(n - 1, a, x % 8.0)
    with tf.name_scope("two"):
        result = result + x
        result = result % 8.0
        x = result + 0.25
    return a, x + result


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t0 = 0
    while t0 < 3:
        with tf.name_scope("one"):
            t0 = t0 + 1
            b = b + t0
            b = b % 29
            a = (a + b) % 29
    a, result = f0(n, a, x)
    with tf.name_scope("two"):
        a = a + t0
        a = a % 29
        t0 = a * 2
    return result, t0 + a
