"""Noughts and crosses, played out: minimax with alpha-beta pruning, from many positions at once.

Look at: recursion inside a loop over the moves, with `continue` and `break`. Each lane prunes other branches, which a
batch made by hand could hardly keep track of. Each level has a board of its own, so that its caller still has the
old one after the call. Some lanes look at sixty times as many positions as others.
"""

import itertools

import numpy as np
import tensorflow as tf

import pcbatch

LINES = tf.constant([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])


def has_won(board, player):
    """Whether `player` (1 or -1) has three in a row."""
    return tf.reduce_any(tf.reduce_all(tf.gather(board, LINES) == player, axis=1))


@pcbatch.autobatch
def value(board, player, alpha, beta):
    """What the position is worth to `player`, whose turn it is: 1 won, 0 drawn, -1 lost; positions looked at."""
    if has_won(board, -player):
        return -1, 1
    if tf.reduce_all(board != 0):
        return 0, 1
    seen = 1
    for move in range(9):
        if board[move] != 0:
            continue
        after = tf.identity(board)  # as board.copy() for a NumPy array
        after[move] = player
        worth, looked_at = value(after, -player, -beta, -alpha)
        seen += looked_at
        alpha = max(alpha, -worth)
        if alpha >= beta:
            break
    return alpha, seen


@pcbatch.autobatch
def play_out(board, player):
    """The value of a position to `player`, and how many positions were looked at."""
    return value(board, player, -1, 1)


def main():
    """Every position after one cross and one nought."""
    moves = list(itertools.permutations(range(9), 2))
    boards = np.zeros([len(moves), 9], np.int32)
    for board, (cross, nought) in zip(boards, moves, strict=True):
        board[cross], board[nought] = 1, -1
    run = play_out.run(boards, np.ones(len(moves), np.int32))
    worth, seen = (np.asarray(each) for each in run.value)
    print("answers that lose, by the first move:")
    for first in (0, 1, 4):
        answers = {nought: worth[lane] for lane, (cross, nought) in enumerate(moves) if cross == first}
        print(f"  {first}: {[nought for nought, won in answers.items() if won == 1]}")
    print(f"\npositions looked at: {seen.min()} to {seen.max()}, {seen.sum()} in all")
    print(f"{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
