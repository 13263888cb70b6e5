"""Edit distances between words of different lengths: a table in each lane, filled by two nested loops.

Look at: `row[j] = ..` is a store to an array of the lane, and costs one element. The loops run to each lane's own
lengths, so short words do not pay for long ones. No code has to mask what stands behind the end of a word.
"""

import numpy as np
import tensorflow as tf

import pcbatch

LONGEST = 12


@pcbatch.autobatch
def edit_distance(a, length_a, b, length_b):
    """How many insertions, deletions and replacements turn the first `length_a` elements of `a` into those of `b`."""
    row = tf.range(LONGEST + 1)  # from nothing to the first j elements of b
    for i in range(length_a):
        diagonal = row[0]
        row[0] = i + 1
        for j in range(length_b):
            replaced = diagonal + (0 if a[i] == b[j] else 1)
            diagonal = row[j + 1]
            row[j + 1] = min(replaced, diagonal + 1, row[j] + 1)
    return row[length_b]


def encoded(words):
    """Words as arrays of character codes, and their lengths."""
    codes = np.zeros([len(words), LONGEST], np.int32)
    for row, word in zip(codes, words, strict=True):
        row[: len(word)] = [ord(character) for character in word]
    return codes, np.array([len(word) for word in words], np.int32)


def main():
    """Five pairs of words, each also by plain Python."""
    words = [("kitten", "sitting"), ("flaw", "lawn"), ("", "abc"), ("intention", "execution"), ("same", "same")]
    (a, length_a), (b, length_b) = encoded([pair[0] for pair in words]), encoded([pair[1] for pair in words])
    run = edit_distance.run(a, length_a, b, length_b)
    print(f"{'from':>10} {'to':>10} {'distance':>9} {'singly':>7}")
    for lane, (first, second) in enumerate(words):
        singly = edit_distance.single(a[lane], length_a[lane], b[lane], length_b[lane])
        print(f"{first:>10} {second:>10} {run.value[lane]:9} {singly:7}")
    print(f"\n{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
