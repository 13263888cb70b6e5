"""An index of an augmented assignment that does something is evaluated once, ahead of the rest. In: single, reference."""


class Box:
    def __init__(self, x):
        self.x = x


def f0(k):
    return k % 3 + 1


@pcbatch.autobatch
def f1(k):
    return (k + 1) % 4


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    row = xs + 0
    i = 0
    row[(i := i + 1)] += (i := i + 1)
    row[(i := i - 2)] *= 3
    row[f0(n)] -= row[(i := i + 1)]
    row[f1(i)] += f1(n)
    row[i] += (i := i + 2)
    boxes = [Box(n), Box(n + 10), Box(n + 20)]
    j = 0
    boxes[j].x += (j := j + 1)
    boxes[(j := j + 1)].x *= (j := j - 1)
    return boxes[0].x, boxes[1].x, boxes[2].x, j, row[0], row[1], row[2], row[3], i
