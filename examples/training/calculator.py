"""A calculator: trees of digits and operators, of which a network with a cell for each operator learns the value.

The first example of TensorFlow Fold (Looks et al., "Deep Learning with Dynamic Computation Graphs", ICLR 2017). What a
node does depends on its operator; with the trees' shapes, no two examples make the same computation.

    python examples/training/calculator.py [--steps 300]
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch

OPERATORS = (operator.add, operator.sub, max)


@dataclass
class Expression:
    """A digit, or an operator by its number with two operands."""

    symbol: int
    children: list[Expression] = field(default_factory=list)

    @property
    def value(self) -> float:
        """What it comes to."""
        return OPERATORS[self.symbol](*(child.value for child in self.children)) if self.children else self.symbol


def expression(random: np.random.Generator, operators: int) -> Expression:
    """A random one with so many operators."""
    if not operators:
        return Expression(int(random.integers(10)))
    first = int(random.integers(operators))
    below = [expression(random, first), expression(random, operators - 1 - first)]
    return Expression(int(random.integers(len(OPERATORS))), below)


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Expressions, and a tenth of their values."""
    made = [expression(random, int(random.integers(6))) for _ in range(count)]
    return pcbatch.pack(made, value=lambda node: node.symbol), np.array([each.value / 10 for each in made], np.float32)


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The squared error of one expression, batched, and the weights."""
    digits, cells, bias, output = variables = running.weights(
        [10, width], [len(OPERATORS), width, 2 * width], [width], [1, width]
    )

    @pcbatch.autobatch
    def read(tree):
        if len(tree.children) == 0:
            return tf.gather(digits, tree.value)
        operands = tf.concat([read(tree.children[0]), read(tree.children[1])], 0)
        match tree.value:
            case 0:
                return tf.linalg.matvec(cells[0], operands)
            case 1:
                return tf.linalg.matvec(cells[1], operands)
            case _:
                return tf.nn.leaky_relu(tf.linalg.matvec(cells[2], operands) + bias)

    @pcbatch.autobatch
    def loss(tree, value):
        return tf.square(tf.linalg.matvec(output, read(tree))[0] - value)

    return loss, variables


if __name__ == "__main__":
    running.main("calculator", model, examples)
