"""Small batched functions, one for what each pass is there to remove."""

import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def fibonacci(n):
    if n <= 1:
        return 1
    left = fibonacci(n - 2)
    right = fibonacci(n - 1)
    return left + right


@pcbatch.autobatch
def kept(n, scale):
    """`scale` is passed on unchanged, `n` is not; `rest` is needed behind both calls."""
    if n == 0:
        return scale
    rest = n * scale
    first = kept(n - 1, scale)
    second = kept(n // 2, scale)
    return first + rest - second


@pcbatch.autobatch
def up(n, step):
    if n > 5:
        return n
    return down(n + step, step) + 1


@pcbatch.autobatch
def down(m, by):
    if m > 3:
        return m
    return up(m + by, by) * 2


@pcbatch.autobatch
def swapped(a, b):
    """A tail call, one of whose arguments is computed from a parameter that the other one overwrites."""
    if b == 0:
        return a
    return swapped(b, a % b)


@pcbatch.autobatch
def traded(n, a, b):
    """Arguments that trade places."""
    if n == 0:
        return a - b
    return traded(n - 1, b, a) + a


@pcbatch.autobatch
def between(n):
    """`rest` is read between the two calls that it lives across."""
    if n <= 0:
        return 1
    rest = n * 3
    first = between(n - 1)
    second = between(n - 1 - (first + rest) % 2)
    return first + second * rest


@pcbatch.autobatch
def helper(x):
    return x * 2 + 1


@pcbatch.autobatch
def outside(x):
    """A call that cannot come back here: nothing has to be saved."""
    y = x + 3
    z = helper(x)
    return y * z


@pcbatch.autobatch
def marks(n):
    """Stores to an array, and a choice that leaves its block."""
    seen = tf.zeros([4], tf.int32)
    for i in range(n):
        previous = seen[i % 4]
        seen[i % 4] = previous + i
    return tf.reduce_sum(seen * tf.constant([1, 10, 100, 1000]))


@pcbatch.autobatch
def clamped(x, low):
    """Choices between plain operators, one inside the other; `share` is a number of the weaker type on one path."""
    share = 0
    if x < low:
        x = low
    elif x > 10:
        x, share = 10, x - 10
    else:
        share = x
    if share > 3 and divides(x, share):
        return x * 100
    return x + share


@pcbatch.autobatch
def divides(a, b):
    return a % b == 0


@pcbatch.autobatch
def either(a, b):
    """One dear function in both arms, on other operands; both arms begin alike and end with an operator."""
    if a > b:
        start = tf.abs(b)
        value = tf.minimum(a, start)
        value = value + 1
    else:
        start = tf.abs(b)
        value = tf.minimum(b, start)
        value = value - 1
    return value * start


@pcbatch.autobatch
def unread(n, k):
    """A counter that counts for nobody."""
    waste = n * k
    while n > 0 and (k > 0 or divides(n, 2)):
        n -= k + 3
        waste = waste + 1
    return n


@pcbatch.autobatch
def asked(n, k):
    """A condition that is known where it is asked again."""
    small = n < 3
    if small:
        k = tf.abs(k)
    if small:
        n = n * tf.abs(n)
    return n - k


@pcbatch.autobatch
def meeting(n):
    """A place where lanes wait for the others stays, though nothing else would begin there."""
    n = n + 1
    pcbatch.sync()
    if n > 3:
        n = n - 3
    return n


@pcbatch.autobatch
def halted(n, x):
    """A result that is handed on as it is, or taken apart: where it is known which, little of it is needed."""
    if n <= 0:
        return (x, x % 3), x % 4 == 0
    (total, last), stop = halted(n - 1, x)
    if stop:
        return (total, last), stop
    (more, last), stop = halted(n - 2, total + last)
    return (total + more, last), stop


@pcbatch.autobatch
def sums(n, x):
    """`total` is read where both arms meet, `last` in an arm of an arm only."""
    (total, last), stop = halted(n, x)
    if not stop:
        x = divided(total, x)
        if divides(total, 3):
            total = divided(x, last + 1)
    return total - x


@pcbatch.autobatch
def divided(a, b):
    return a // b


@pcbatch.autobatch
def handed(n, pair):
    """A structure that every call takes and gives back."""
    if n <= 0:
        return pair[1] + 1, pair[0] - n
    pair = handed(n - 1, pair)
    pair = handed(n - 2, pair)
    return pair[1], pair[0]


@pcbatch.autobatch
def handing(n, x):
    """`first` is a copy of what is changed while it is still needed."""
    pair = handed(n, (x, n))
    first = pair
    while n > 0:
        pair = (pair[1], pair[0] + n)
        n = n - 1
    return first[0] * 10 - pair[0]


@pcbatch.autobatch
def shares(a, b):
    """What is given and taken in parts never is a tuple, handed on (`halved`) or not."""
    q, r = quotient(a, b)
    if r > 0:
        r, q = quotient(r + 9, q + 1)
    return 10 * q + r


@pcbatch.autobatch
def quotient(a, b):
    if a < b:
        return 0, a
    if b > 5:
        return halved(a, b)
    q, r = quotient(a - b, b)
    return q + 1, r


@pcbatch.autobatch
def halved(a, b):
    return a // 2, b


@pcbatch.autobatch
def whole(a, b):
    """As `shares`, but `second` looks at what it gets as a whole, which `first` therefore has to give."""
    q, r = first(a, b)
    return 10 * q + r


@pcbatch.autobatch
def first(a, b):
    if a < b:
        return 0, a
    return second(a - b, b)


@pcbatch.autobatch
def second(a, b):
    pair = first(a, b)
    if pair[0] > b:
        return pair
    return pair[0] + 1, pair[1]


@pcbatch.autobatch
def placed(n):
    """An arm that sets a constant, opposite to one that calls."""
    if n > 3:
        k = placed(n - 2)
    else:
        k = 0
    return k + n


@pcbatch.autobatch
def filled(n, v):
    """An array that every call takes and gives back."""
    if n <= 0:
        return v
    v = filled(n - 1, v)
    v[n % 3] = n
    return v


@pcbatch.autobatch
def filling(n):
    return tf.reduce_sum(filled(n, tf.zeros([3], tf.int32)))


ENTRIES = {
    "fibonacci": (fibonacci, [(0,), (1,), (5,), (7,)]),
    "kept": (kept, [(0, 3), (3, 2), (5, -1)]),
    "up": (up, [(0, 1), (-4, 2), (7, 1)]),
    "swapped": (swapped, [(12, 18), (35, 21), (7, 0)]),
    "traded": (traded, [(0, 1, 2), (1, 5, 3), (4, 2, 9)]),
    "between": (between, [(0,), (2,), (5,)]),
    "outside": (outside, [(0,), (4,)]),
    "marks": (marks, [(0,), (3,), (9,)]),
    "clamped": (clamped, [(1, 2), (5, 2), (14, 0), (4, 1), (50, 3)]),
    "either": (either, [(1, 2), (5, -2), (-4, -9)]),
    "unread": (unread, [(0, 1), (9, 2), (12, -1), (8, -2)]),
    "asked": (asked, [(1, -2), (-2, -3), (5, -1)]),
    "meeting": (meeting, [(0,), (5,)]),
    "sums": (sums, [(0, 1), (3, 2), (4, 4), (5, 3)]),
    "handing": (handing, [(0, 1), (3, 2), (4, -4)]),
    "shares": (shares, [(3, 5), (17, 5), (20, 7), (8, 2)]),
    "whole": (whole, [(3, 5), (17, 5), (20, 7), (8, 2)]),
    "placed": (placed, [(0,), (3,), (8,)]),
    "filling": (filling, [(0,), (2,), (7,)]),
}
"""Each entry function with the examples on which its programs are compared."""


@pcbatch.autobatch
def counted(n, total):
    """A loop written as a tail call."""
    if n == 0:
        return total
    return counted(n - 1, total + n % 7)


@pcbatch.autobatch
def ping(n, total):
    """Two functions that call each other last."""
    if n == 0:
        return total
    return pong(n - 1, total + 1)


@pcbatch.autobatch
def pong(n, total):
    if n == 0:
        return -total
    return ping(n - 1, total + 2)
