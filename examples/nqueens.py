"""The n queens, by backtracking: one big search, cut into lanes that share every step.

Look at: a recursive call inside a loop, with sets kept as bits of ints. Lane `i` has its first queen in column `i`, so
that each board is searched by as many lanes as it has columns. Their searches have different sizes and shapes, still
together they take a small part of the steps that they take one after the other.
"""

import numpy as np

import pcbatch


@pcbatch.autobatch
def placements(columns, rising, falling, full):
    """How many ways there are to place the remaining queens, one per row.

    Each argument is a set of columns, as bits: those that are taken, those that the diagonals attack in this row, and
    all there are.
    """
    if columns == full:
        return 1
    found = 0
    free = full & ~(columns | rising | falling)
    while free != 0:
        queen = free & -free  # the lowest bit
        free ^= queen
        found += placements(columns | queen, (rising | queen) << 1, (falling | queen) >> 1, full)
    return found


@pcbatch.autobatch(form="lockstep")  # to count block runs; by itself it would run lane after lane
def with_first_queen(column, size):
    """How many ways there are to place `size` queens, the first of which stands in `column`."""
    queen = 1 << column
    return placements(queen, queen << 1, queen >> 1, (1 << size) - 1)


def main():
    """Boards of 4 to 8 rows, against the known numbers."""
    known = {4: 2, 5: 10, 6: 4, 7: 40, 8: 92}
    column, size = (np.array(each) for each in zip(*((c, s) for s in known for c in range(s)), strict=True))
    run = with_first_queen.run(column, size)
    found = np.asarray(run.value)
    print(f"{'size':>5} {'found':>6} {'known':>6}  by column of the first queen")
    for each, truth in known.items():
        print(f"{each:5} {found[size == each].sum():6} {truth:6}  {found[size == each]}")
    alone = sum(with_first_queen.run([c], [s]).block_runs for c, s in zip(column, size, strict=True))
    print(f"\n{run.block_runs} block runs for {len(size)} lanes together, {alone} one after the other")
    print(f"{run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
