import math

import pcbatch as pb

EXAMPLES = [(n, x) for n in (0, 1, 2, 5) for x in (-1.0, 0.0, 0.5, 3.0)]


@pb.autobatch(strategy="pc")
def inner(n):
    return n - 1


@pb.autobatch
def conditions(n, x):
    flag = n > 1
    count = 0
    if flag and x > 0 and not n == 3:  # operators alone stay one expression
        count += 1
    if n:
        count += 2
    if n > 0 and inner(n) > 0 or x < 0:
        count += 4
    if not (n > 0 and math.sin(x) > 0.1):
        count += 8
    if 0 < inner(n) < math.exp(x) <= 50:
        count += 16
    if inner(n) if x > 0 else math.cos(x) > 2:
        count += 32
    value = n and inner(n)
    other = x > 100 or inner(n) or 77
    truth = n > 1 and inner(n) > 1
    if truth:
        count += 64
    n = n and inner(n) and n  # reads its own target after the first operand
    chain = 1 + (n > 0 and inner(n) and inner(n) > 3)
    link = 0 <= inner(value) < math.exp(x)
    return count, value, other, truth, n, chain, link
