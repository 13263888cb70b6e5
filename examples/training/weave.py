"""The weave module: features of atoms and of pairs of atoms, woven, for molecules of any size.

Kearnes, McCloskey, Berndl, Pande, Riley, "Molecular graph convolutions", J. Computer-Aided Molecular Design 2016, which
Fold's paper times. Atoms hear from their pairs, pairs from their atoms. The molecules are made up: rings and chains of
three kinds of atoms. The network learns how many bonds join a carbon and an oxygen.

    python examples/training/weave.py [--steps 200]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch

KINDS, ROUNDS = 3, 2


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Kinds of atoms and bonds (from, to, both ways) of each molecule, and how many bonds join kinds 0 and 1."""
    molecules, bonds, labels = [], [], []
    for size in random.integers(3, 8, count):
        atoms = random.integers(KINDS, size=size)
        ends = [(at, (at + 1) % size) for at in range(size - int(random.integers(2)))]
        molecules.append(atoms.astype(np.int32))
        bonds.append(np.array([*ends, *((b, a) for a, b in ends)], np.int32))
        labels.append(sum({atoms[a], atoms[b]} == {0, 1} for a, b in ends))
    return pcbatch.ragged(molecules), pcbatch.ragged(bonds), np.array(labels, np.float32)


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The squared error of one molecule, batched, and the weights."""
    shapes = [KINDS, width], [width, 2 * width], [width, 2 * width], [width, 3 * width], [2, width]
    kinds, to_atom, of_atom, to_pair, output = variables = running.weights(*shapes)

    @pcbatch.autobatch
    def loss(atoms, bonds, label):
        states = [tf.gather(kinds, atom) for atom in atoms]
        pairs = [tf.zeros([width]) for _ in bonds]
        for _ in range(ROUNDS):
            woven = []
            for i in range(len(atoms)):
                heard = tf.zeros([width])
                for k in range(len(bonds)):
                    if bonds[k, 0] == i:
                        both = tf.concat([states[bonds[k, 1]], pairs[k]], 0)
                        heard += tf.nn.relu(tf.linalg.matvec(to_atom, both))
                woven.append(tf.tanh(tf.linalg.matvec(of_atom, tf.concat([states[i], heard], 0))))
            pairs = [
                tf.nn.relu(
                    tf.linalg.matvec(
                        to_pair, tf.concat([states[bonds[k, 0]] + states[bonds[k, 1]], woven[bonds[k, 0]], pairs[k]], 0)
                    )
                )
                for k in range(len(bonds))
            ]
            states = woven
        total = 0.0
        for pair in pairs:
            total += tf.sigmoid(tf.linalg.matvec(output, pair)[0]) * 0.5
        return tf.square(total - label)

    return loss, variables


if __name__ == "__main__":
    running.main("weave", model, examples)
