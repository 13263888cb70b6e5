"""Hidden draws from a key: dropout, and the layers of Keras that draw."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from pcbatch.random.draws import uniform
from pcbatch.random.keys import fold_in
from pcbatch.runtime.backends.tensorflow import equivalents


@contextlib.contextmanager
def seeded(key: Any) -> Iterator[None]:
    """A context in which dropout draws from `key` instead of hidden state: each lane from its own.

    It is for `tf.nn.dropout` in a batched function, and in its `f.single`; and everywhere for the layers of Keras that
    draw from a seed generator: `Dropout`, `GaussianNoise`, the dropout of `LSTM` and of `MultiHeadAttention`. Draw
    number i inside has the key `fold_in(key, i)`, so two layers, or two calls of one layer, have draws of their own. A
    seed generator keeps its state. In a loop write `with seeded(fold_in(key, i)):`, since each turn enters anew.

    Raises TypeError for what is no key. Other variables that change inside, such as the averages of
    `BatchNormalization` in training, are refused in a batched function (PCB112), as without `seeded`.

    >>> import keras
    >>> from pcbatch.random import key
    >>> with seeded(key(42)):
    ...     here = keras.layers.Dropout(0.5)(tf.ones([4]), training=True)
    >>> with seeded(key(42)):
    ...     there = keras.layers.Dropout(0.5)(tf.ones([4]), training=True)
    >>> bool(tf.reduce_all(here == there))
    True
    """
    count = 0

    def following() -> tf.Tensor:
        nonlocal count
        count += 1
        return fold_in(key, count - 1)

    def drawn(shape: Any, dtype: tf.DType) -> tf.Tensor:
        return uniform(following(), tuple(tf.get_static_value(shape)), dtype)

    fold_in(key, 0)  # an error for what is no key belongs to this line
    keras = sys.modules.get("keras")
    scope = contextlib.nullcontext() if keras is None else _scope(keras, following)
    with equivalents.drawing(drawn), scope:
        yield


def _scope(keras: Any, following: Any) -> Any:
    """A scope in which the seed generators of Keras begin with keys."""

    class Scope(keras.StatelessScope):  # type: ignore[misc]
        def get_current_value(self, variable: Any) -> Any:
            found = super().get_current_value(variable)
            if found is None and variable.name == "seed_generator_state":
                found = self.state_mapping[id(variable)] = tf.cast(following(), variable.dtype)
            if found is None and self.original_scope is not None:
                found = self.original_scope.get_current_value(variable)
            return found

        def add_update(self, update: Any) -> None:
            variable, value = update
            if variable.name == "seed_generator_state":
                super().add_update(update)
                return
            self.__exit__()  # what does not draw changes as outside, or is refused
            try:
                variable.assign(value)
            finally:
                self.__enter__()

    return Scope(initialize_variables=False)
