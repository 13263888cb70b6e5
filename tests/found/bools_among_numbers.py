"""A bool is looked for among numbers, and numbers among bools, as Python has it. In: single, reference."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    flag = n > 2
    found = 0
    if flag in (1, 3):
        found = found + 1
    if flag not in (0, 2):
        found = found + 10
    if n in (True, 4) and 0 <= a in (False, a):
        found = found + 100
    if (n > 1) in [flag, 5]:
        found = found + 1000
    return found, (flag in [n, 1.0]) + 0
