"""What is wrong behind a statement that is refused is told with it; what only depends on that statement is not."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def in_a_row(a, x):
    b = tf.matmul(a, a)
    c = b + 1
    if c[0] > 0:
        c = c + "text"
    d = a[0, 0]
    return x + "text"


@pcbatch.autobatch
def in_a_loop(x):
    total, last = 0.0, None
    while x > 0:
        step = wrong
        total += step
        last = total
        x = x - "text"
    return last


@pcbatch.autobatch
def in_arms(x):
    if x > 0:
        y = wrong
    else:
        y = unknown
    return y + x, x + None


@pcbatch.autobatch
def of_a_list(x):
    xs = [x]
    ys = xs
    xs.append(wrong)
    y = ys[1]
    x = x + None
    return y


@pcbatch.autobatch
def in_a_closure(x):
    best = None

    def better(y):
        nonlocal best
        best = y

    better(wrong)
    x = x + None
    return best + 1


def helper(x):
    return x + wrong


@pcbatch.autobatch
def in_a_helper(x):
    y = helper(x)
    z = helper(x + 1)
    return y + z, x + None


@pcbatch.autobatch
def down(x):
    if x <= 0:
        return x + wrong
    y = down(x - 1)
    return y + None


@pcbatch.autobatch
def in_what_is_called(x):
    y = down(x)
    z = y.imaginary.part
    return z, x + None


@pcbatch.autobatch
def in_the_only_ways(x):
    while True:
        x = x - 1
        if x < wrong:
            break
    return x


@pcbatch.autobatch
def in_known_turns(x):
    for i in range(3):
        if i == 0:
            y = x
        y = y + i
        x = wrong
    return y


def counted(xs, k):
    total = 0.0
    if k < len(xs):
        total = xs[k] + counted(xs, k + 1)
    return total + wrong


@pcbatch.autobatch
def in_recursion_over_constants(x):
    return counted([x, x], 0)


A = np.zeros((1, 3), np.float32)
X = np.zeros(1, np.float32)
ARGUMENTS = {
    "in_a_row": (A, X),
    "in_a_loop": (X,),
    "in_arms": (X,),
    "of_a_list": (X,),
    "in_a_closure": (X,),
    "in_a_helper": (X,),
    "in_what_is_called": (X,),
    "in_the_only_ways": (X,),
    "in_known_turns": (X,),
    "in_recursion_over_constants": (X,),
}
