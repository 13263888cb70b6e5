"""An index of an augmented assignment that does something is evaluated once, before the old value is read. In: single, reference."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    row = xs + 0
    i = 0
    row[(i := i + 1)] += (i := i + 1) * 1
    row[(i := i - 2)] *= 2
    return row, a + i
