"""TensorFlow's type of arrays, for annotations; type checkers without stubs for TensorFlow take it for `Any`."""

from __future__ import annotations

import tensorflow as tf

Tensor = tf.Tensor
