"""Targets are assigned from left to right, and an index among them may be one that stands before. In: single, reference."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    row = xs + 0
    i = 0
    i, row[i] = 2, n
    row[i], i = i, 1
    (row[0], j), [i, row[i]] = (i, 3), (2, row[1] + n)
    i = row[i] = 1
    row[i] = j = i = j - 1
    row[i], i, row[i] = 5, 1, 6
    return row[0], row[1], row[2], row[3], i, j
