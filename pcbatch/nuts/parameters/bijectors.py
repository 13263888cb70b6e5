"""Bijectors from the whole of R^n to constrained values, each with its inverse and the logarithm of its Jacobian.

If y has a density on R^n and x = forward(y), the density of y is that of x times |det dx/dy|. The maps are those of the
Stan Reference Manual, "Constraint Transforms" (mc-stan.org/docs/reference-manual/transforms.html). Vectors lie along
the last axis and matrices along the last two; the axes before them count independent ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError

Shape = tuple[int, ...]


class Bijector(Protocol):
    """A map of one parameter, with any number of leading axes in `forward`; frozen, so that it can be a key."""

    def free_shape(self, shape: Shape) -> Shape:
        """The shape of the unconstrained values, from that of the parameter; ValueError where it can have none."""

    def forward(self, y: Any) -> Any:
        """The constrained values: tensor in, tensor out."""

    def log_jacobian(self, y: Any) -> Any:
        """The logarithm of |det d forward(y) / dy| of one example, a scalar."""

    def values(self, y: np.ndarray) -> np.ndarray:
        """Compute `forward` by NumPy: TensorFlow's last bits depend on where in an array a number stands."""

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """The unconstrained values; where `x` is not strictly inside, no finite ones or those of something else."""


class _Elementwise:
    """A bijector of single numbers."""

    def free_shape(self, shape: Shape) -> Shape:
        return shape


class _OfVectors:
    """A bijector of vectors, which has as many free numbers as they have, less some."""

    fewer = 0
    kind: str

    def free_shape(self, shape: Shape) -> Shape:
        if not shape:
            raise ValueError(f"is a single number, so it cannot be {self.kind}")
        if shape[-1] <= self.fewer:
            raise ValueError(f"has vectors of {shape[-1]} numbers, so it cannot be {self.kind}")
        return (*shape[:-1], shape[-1] - self.fewer)


@dataclass(frozen=True)
class Lower(_Elementwise):
    """Each number above `low`: x = low + exp(y)."""

    low: float

    def __post_init__(self) -> None:
        _check_bound(self.low)

    def forward(self, y: Any) -> Any:
        return self.low + tf.exp(y) if self.low else tf.exp(y)

    def log_jacobian(self, y: Any) -> Any:
        return tf.reduce_sum(y)

    def values(self, y: np.ndarray) -> np.ndarray:
        return self.low + np.exp(y)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return np.log(x - self.low)


@dataclass(frozen=True)
class Upper(_Elementwise):
    """Each number below `high`: x = high - exp(y)."""

    high: float

    def __post_init__(self) -> None:
        _check_bound(self.high)

    def forward(self, y: Any) -> Any:
        return self.high - tf.exp(y)

    def log_jacobian(self, y: Any) -> Any:
        return tf.reduce_sum(y)

    def values(self, y: np.ndarray) -> np.ndarray:
        return self.high - np.exp(y)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return np.log(self.high - x)


@dataclass(frozen=True)
class Interval(_Elementwise):
    """Each number between `low` and `high`: x = low + (high - low) / (1 + exp(-y))."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise UsageError("PCB558", f"an interval is between two finite numbers, not {self.low} and {self.high}")

    def forward(self, y: Any) -> Any:
        return self.low + (self.high - self.low) * tf.sigmoid(y)

    def log_jacobian(self, y: Any) -> Any:
        # log of sigmoid(y) sigmoid(-y), written so that neither end underflows
        return tf.reduce_sum(math.log(self.high - self.low) - tf.math.softplus(y) - tf.math.softplus(-y))

    def values(self, y: np.ndarray) -> np.ndarray:
        return self.low + (self.high - self.low) / (1 + np.exp(-y))

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return np.log(x - self.low) - np.log(self.high - x)


@dataclass(frozen=True)
class Ordered(_OfVectors):
    """Numbers that rise along the last axis: x[0] = y[0], x[k] = x[k - 1] + exp(y[k])."""

    kind = "ordered"

    def forward(self, y: Any) -> Any:
        return tf.cumsum(tf.concat([y[..., :1], tf.exp(y[..., 1:])], axis=-1), axis=-1)

    def log_jacobian(self, y: Any) -> Any:
        return tf.reduce_sum(y[..., 1:])

    def values(self, y: np.ndarray) -> np.ndarray:
        return np.cumsum(np.concatenate([y[..., :1], np.exp(y[..., 1:])], axis=-1), axis=-1)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([x[..., :1], np.log(np.diff(x, axis=-1))], axis=-1)


@dataclass(frozen=True)
class ZeroSum(_OfVectors):
    """Vectors of n numbers whose sum is zero, from n - 1 numbers, by a matrix of orthonormal columns.

    Each column k has 1 / sqrt(k (k + 1)) in its first k rows and -k times that in the next ("Sum-to-zero vector" in
    Stan). Lengths and volumes stay, so the Jacobian is 1, and normal y give the normal density on the subspace.
    """

    fewer = 1
    kind = "zero_sum"

    def forward(self, y: Any) -> Any:
        k = np.arange(1, y.shape[-1] + 1)
        scaled = y / tf.constant(np.sqrt(k * (k + 1)), y.dtype)
        zero = tf.zeros_like(y[..., :1])
        sums = tf.cumsum(scaled, axis=-1, reverse=True)
        return tf.concat([sums, zero], -1) - tf.concat([zero, scaled * tf.constant(k, y.dtype)], -1)

    def log_jacobian(self, y: Any) -> Any:
        return tf.zeros((), y.dtype)

    def values(self, y: np.ndarray) -> np.ndarray:
        k = np.arange(1, y.shape[-1] + 1, dtype=y.dtype)
        scaled, zero = y / np.sqrt(k * (k + 1)), np.zeros((*y.shape[:-1], 1), y.dtype)
        sums = np.cumsum(scaled[..., ::-1], axis=-1)[..., ::-1]
        return np.concatenate([sums, zero], -1) - np.concatenate([zero, scaled * k], -1)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        k = np.arange(1, x.shape[-1], dtype=x.dtype)
        return (np.cumsum(x, axis=-1)[..., :-1] - k * x[..., 1:]) / np.sqrt(k * (k + 1))


@dataclass(frozen=True)
class Simplex(_OfVectors):
    """Vectors of n positive numbers whose sum is one, from n - 1 numbers: x = softmax(z), z the zero-sum vector of y.

    The isometric log-ratio transform ("Unit simplex" in Stan). The Jacobian is that of the first n - 1 numbers, in
    which densities such as Dirichlet's are written: sqrt(n) times the product of all.
    """

    fewer = 1
    kind = "a simplex"

    def forward(self, y: Any) -> Any:
        return tf.exp(self._logarithms(y))

    def log_jacobian(self, y: Any) -> Any:
        logs = self._logarithms(y)
        vectors = math.prod(logs.shape[:-1])
        return tf.reduce_sum(logs) + 0.5 * vectors * math.log(logs.shape[-1])

    def _logarithms(self, y: Any) -> Any:
        z = zero_sum.forward(y)
        return z - tf.reduce_logsumexp(z, axis=-1, keepdims=True)

    def values(self, y: np.ndarray) -> np.ndarray:
        z = zero_sum.values(y)
        weights = np.exp(z - z.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        logs = np.log(x)
        return zero_sum.inverse(logs - logs.mean(axis=-1, keepdims=True))


@dataclass(frozen=True)
class UnitVector(_OfVectors):
    """Vectors of length one, from as many numbers: x = y / |y|.

    The length of y is one number too many. It gets a density of its own, that of normal numbers ("Unit vector" in
    Stan), by which x is uniform on the sphere where the density says nothing else.
    """

    kind = "a unit vector"

    def forward(self, y: Any) -> Any:
        return y / tf.sqrt(tf.reduce_sum(y * y, axis=-1, keepdims=True))

    def log_jacobian(self, y: Any) -> Any:
        return -0.5 * tf.reduce_sum(y * y)

    def values(self, y: np.ndarray) -> np.ndarray:
        return y / np.sqrt(np.sum(y * y, axis=-1, keepdims=True))

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return x


class _Factor:
    """Lower triangular matrices [n, n] with positive diagonals, from vectors of the numbers that they have, by rows."""

    diagonal: int
    """1 if the numbers on the diagonal are free, too."""
    kind: str

    def free_shape(self, shape: Shape) -> Shape:
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] + self.diagonal < 2:
            least = f"a square matrix, {2 - self.diagonal} by {2 - self.diagonal} or larger"
            raise ValueError(f"has the shape {list(shape)}, so it cannot be {self.kind}: {least}")
        size = shape[-1]
        return (*shape[:-2], size * (size - 1) // 2 + self.diagonal * size)

    def _matrix(self, y: Any, library: Any) -> Any:
        """The numbers of y at their places; zeros elsewhere."""
        size = self._size(y)
        lengths = [row + self.diagonal for row in range(size)]
        lead, ends = [(0, 0)] * (len(y.shape) - 1), np.cumsum(lengths)
        cut = [y[..., end - length : end] for end, length in zip(ends, lengths, strict=True)]
        return library.stack([library.pad(row, [*lead, (0, size - row.shape[-1])]) for row in cut], -2)

    def _size(self, y: Any) -> int:
        return (math.isqrt(8 * int(y.shape[-1]) + 1) + 1) // 2 - self.diagonal

    def _vector(self, matrix: np.ndarray) -> np.ndarray:
        """The numbers at those places, by rows."""
        rows, columns = np.tril_indices(matrix.shape[-1], self.diagonal - 1)
        return matrix[..., rows, columns]


@dataclass(frozen=True)
class CholeskyCorr(_Factor):
    """The Cholesky factors of correlation matrices: rows of length one, x[i, j] = tanh(y[i, j]) times what is left.

    The length that the numbers before it leave of a row is the product of their 1 / cosh(y[i, k]), and x[i, i] is what
    is left at the end ("Cholesky factors of correlation matrices" in Stan). The Jacobian is that of the numbers below
    the diagonal; the logarithm of 1 / cosh(y[i, k]) is counted i + 1 - k times in it.
    """

    diagonal = 0
    kind = "cholesky_corr"

    def forward(self, y: Any) -> Any:
        matrix = self._matrix(y, tf)
        left = tf.cumsum(_log_sech(matrix), axis=-1, exclusive=True)
        return (tf.tanh(matrix) + tf.eye(matrix.shape[-1], dtype=y.dtype)) * tf.exp(left)

    def log_jacobian(self, y: Any) -> Any:
        rows, columns = np.tril_indices(self._size(y), -1)
        return tf.reduce_sum(_log_sech(y) * tf.constant(rows + 1 - columns, y.dtype))

    def values(self, y: np.ndarray) -> np.ndarray:
        matrix = self._matrix(y, np)
        logs = np.log(matrix.dtype.type(2)) - np.abs(matrix) - np.log1p(np.exp(-2 * np.abs(matrix)))
        before = np.concatenate([np.zeros_like(logs[..., :1]), np.cumsum(logs, axis=-1)[..., :-1]], axis=-1)
        return (np.tanh(matrix) + np.eye(matrix.shape[-1], dtype=y.dtype)) * np.exp(before)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        # sinh(y[i, j]) is x[i, j] over the length of the rest of the row, which nothing is subtracted for.
        squares = np.cumsum((x * x)[..., ::-1], axis=-1)[..., ::-1]
        rest = np.sqrt(np.concatenate([squares[..., 1:], np.ones_like(squares[..., :1])], axis=-1))
        return np.arcsinh(self._vector(x) / self._vector(rest))


@dataclass(frozen=True)
class CholeskyCov(_Factor):
    """The Cholesky factors of covariance matrices: y below the diagonal, exp(y) on it.

    "Cholesky factors of covariance matrices" in Stan. The Jacobian is that of the lower triangle.
    """

    diagonal = 1
    kind = "cholesky_cov"

    def forward(self, y: Any) -> Any:
        matrix = self._matrix(y, tf)
        on = tf.eye(matrix.shape[-1], dtype=y.dtype)
        return matrix * (1 - on) + tf.exp(matrix * on) * on  # exp(0) off it, whose gradient is no NaN

    def log_jacobian(self, y: Any) -> Any:
        return tf.reduce_sum(tf.gather(y, np.cumsum(np.arange(1, self._size(y) + 1)) - 1, axis=-1))

    def values(self, y: np.ndarray) -> np.ndarray:
        matrix = self._matrix(y, np)
        return np.where(np.eye(matrix.shape[-1], dtype=bool), np.exp(matrix), matrix)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        diagonal = np.eye(x.shape[-1], dtype=bool)
        return self._vector(np.where(diagonal, np.log(np.where(diagonal, x, 1)), x))


def _log_sech(y: Any) -> Any:
    """The logarithm of 1 / cosh(y), which underflows nowhere and has a gradient at 0."""
    return math.log(2.0) + y - tf.math.softplus(2.0 * y)


def _check_bound(bound: float) -> None:
    if not math.isfinite(bound):
        raise UsageError("PCB558", f"a bound is a finite number, not {bound}: leave out one that is infinite")


BUILT_IN = (Lower, Upper, Interval, Ordered, ZeroSum, Simplex, UnitVector, CholeskyCorr, CholeskyCov)
"""The bijectors that files name."""

positive = Lower(0.0)
"""The bijector of numbers above zero."""
ordered = Ordered()
"""The bijector of numbers that rise along the last axis."""
zero_sum = ZeroSum()
"""The bijector of vectors whose sum is zero, along the last axis."""
simplex = Simplex()
"""The bijector of vectors of positive numbers whose sum is one, along the last axis."""
unit_vector = UnitVector()
"""The bijector of vectors of length one, along the last axis."""
cholesky_corr = CholeskyCorr()
"""The bijector of Cholesky factors of correlation matrices, along the last two axes."""
cholesky_cov = CholeskyCov()
"""The bijector of Cholesky factors of covariance matrices, along the last two axes."""


def interval(low: float, high: float) -> Interval:
    """The bijector of numbers between `low` and `high`."""
    return Interval(float(low), float(high))


def lower(low: float) -> Lower:
    """The bijector of numbers above `low`."""
    return Lower(float(low))


def upper(high: float) -> Upper:
    """The bijector of numbers below `high`."""
    return Upper(float(high))
