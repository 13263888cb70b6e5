"""Draws of random numbers in operations: fine if nothing depends on them, refused where something does, even later."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import PieceRefusalError
from pcbatch.ir.types import TensorType
from pcbatch.nuts.kernel.dynamics import value_and_gradient
from pcbatch.runtime.backends.tensorflow.symbols import Symbols


def draw():
    return tf.random.stateless_truncated_normal([3], [1, 2])


def symbol(symbols):
    return symbols.symbol(TensorType("float32", ()))


def test_draws_of_which_nothing_is_made_are_fine():
    symbols = Symbols()
    x = symbol(symbols)
    found, _ = symbols.called(lambda: {"x": x * float(draw().shape[0]), "none": None, "n": 2})
    assert found["n"] == 2


@pytest.mark.parametrize("found", [lambda: draw(), lambda: [1.0, (draw() * 2.0,)], lambda: Box(draw())])
def test_draws_that_may_be_used_are_refused(found):
    with pytest.raises(PieceRefusalError, match="Stateless"):
        Symbols().called(found)


class Box:
    """A class of somebody's, in which a draw may be."""

    def __init__(self, content):
        self.content = content


def test_a_draw_that_was_put_aside_is_refused_where_it_is_used():
    symbols, aside = Symbols(), []
    x = symbol(symbols)
    symbols.called(lambda: (aside.append(draw()), x)[1])
    symbols.called(lambda: x + 1.0)
    with pytest.raises(PieceRefusalError, match="Stateless"):
        symbols.called(lambda: x + aside[0])


def slope_of(density):
    @pcbatch.autobatch(in_axes=(0, None))
    def slope(q, data):
        return value_and_gradient(density, q, data)

    return slope


def test_a_density_may_draw_to_learn_shapes():
    values, gradients = slope_of(lambda q, data: -(q**2) * float(draw().shape[0]))([1.0, 2.0], 0.0)
    np.testing.assert_allclose(values, [-3.0, -12.0])
    np.testing.assert_allclose(gradients, [-6.0, -12.0])
    with pytest.raises(pcbatch.CompileError, match="PCB118"):
        slope_of(lambda q, data: -(q**2) + draw()[0])([1.0, 2.0], 0.0)
