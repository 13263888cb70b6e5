"""Keras models with a batched function in a layer or in the loss, and the same model written for a padded batch."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

import pcbatch

WORDS, UNITS, LENGTH, EXAMPLES = 11, 4, 4, 12
_rng = np.random.default_rng(0)
TOKENS = _rng.integers(0, WORDS, (EXAMPLES, LENGTH)).astype("int32")
LENGTHS = _rng.integers(1, LENGTH + 1, EXAMPLES).astype("int32")
HAS_THREE = np.array([[3 in row[:length]] for row, length in zip(TOKENS, LENGTHS, strict=True)], "float32")


class Reader(keras.layers.Layer):
    """From tokens `[batch, LENGTH]` and lengths `[batch]` to the last state of a recurrent cell, `[batch, UNITS]`."""

    def build(self, shape: Any) -> None:
        """The weights of the cell."""
        self.matrix = self.add_weight(shape=(UNITS, UNITS), initializer="orthogonal", name="matrix")
        self.embedding = keras.layers.Embedding(WORDS, UNITS)
        self.embedding.build(None)

    def compute_output_shape(self, shapes: Any) -> Any:
        """Of the states."""
        return (shapes[0][0], UNITS)


class Batched(Reader):
    """By a batched function, each example for as long as it is."""

    def __init__(self, jit: bool = False, **named: Any):
        super().__init__(**named)
        self.jit = jit

    def build(self, shape: Any) -> None:
        """The weights of the cell, and the function that reads them."""
        super().build(shape)
        matrix, embedding = self.matrix, self.embedding

        @pcbatch.autobatch(jit=self.jit)
        def read(tokens, n):
            state = tf.zeros([UNITS])
            for i in range(n):
                state = tf.tanh(tf.linalg.matvec(matrix, state) + embedding(tokens[i]))
            return state

        self.read = read

    def call(self, inputs: Any) -> Any:
        """The states."""
        return self.read(*inputs)


class Padded(Reader):
    """By hand: every example to the end, and what is too much is thrown away."""

    def call(self, inputs: Any) -> Any:
        """The states."""
        tokens, lengths = inputs
        state = tf.zeros([tf.shape(tokens)[0], UNITS])
        for i in range(LENGTH):
            # Not by `self.embedding`: of a word that is looked up twice Keras's optimizers square both parts.
            word = tf.one_hot(tokens[:, i], WORDS) @ self.embedding.embeddings
            new = tf.tanh(tf.linalg.matvec(self.matrix, state) + word)
            state = tf.where((i < lengths)[:, None], new, state)
        return state


def model(layer: Any) -> keras.Model:
    """A classifier of sequences, the same weights every time."""
    keras.utils.set_random_seed(1)
    inputs = [keras.Input((LENGTH,), dtype="int32"), keras.Input((), dtype="int32")]
    return keras.Model(inputs, keras.layers.Dense(1)(layer(inputs)))


def fitted(layer: Any, optimizer: Any, **how: Any) -> tuple[list[float], list[np.ndarray]]:
    """The losses of two epochs, and the weights after them; the last batch is a smaller one."""
    trained = model(layer)
    trained.compile(optimizer, keras.losses.BinaryCrossentropy(from_logits=True), **how)
    history = trained.fit([TOKENS, LENGTHS], HAS_THREE, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"], trained.get_weights()


@pcbatch.autobatch(jit=False)
def halvings(truth, guess):
    """A loss that loops for as long as an example wants."""
    error = tf.reduce_sum((truth - guess) ** 2)
    weight = 1.0
    while weight * error > 0.1:
        weight = weight * 0.5
    return weight * error
