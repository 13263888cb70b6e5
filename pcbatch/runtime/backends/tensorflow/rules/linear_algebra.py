"""Rules for matrices: decompositions, solvers, determinants."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule, with_leading_axes
from pcbatch.runtime.backends.tensorflow.xla_cpu import gathering


def _svd(inputs: Any) -> tuple[tf.Tensor, ...]:
    full, vectors = inputs.get_attr("full_matrices"), inputs.get_attr("compute_uv")
    s, u, v = tf.raw_ops.Svd(input=inputs.stacked_input(0), full_matrices=full, compute_uv=vectors)
    if not vectors:  # both empty vectors, whatever the batch
        u = v = tf.zeros([tf.shape(s)[0], 0], s.dtype)
    return s, u, v


def _eig(inputs: Any) -> tuple[tf.Tensor, ...]:
    vectors, dtype = inputs.get_attr("compute_v"), inputs.get_attr("Tout")
    e, v = tf.raw_ops.Eig(input=inputs.stacked_input(0), compute_v=vectors, Tout=dtype)
    return e, v if vectors else tf.zeros([tf.shape(e)[0], 0], e.dtype)


def _solve_least_squares(inputs: Any) -> tf.Tensor:
    inputs.stack_inputs(stack_indices=[0, 1])
    matrix, rhs, l2 = inputs.stacked_input(0), inputs.stacked_input(1), inputs.unstacked_input(2)
    return tf.raw_ops.MatrixSolveLs(matrix=matrix, rhs=rhs, l2_regularizer=l2, fast=inputs.get_attr("fast"))


def _times_one_matrix(inputs: Any) -> bool:
    """Return whether matrices that differ by lane are multiplied by one that all lanes share."""
    x, y = inputs.input(0), inputs.input(1)
    if not x.is_stacked or y.is_stacked or inputs.get_attr("adj_x"):
        return False
    return None not in y.t.shape.as_list() and all(size == 1 for size in y.t.shape[:-2])


def _one_product(inputs: Any) -> tf.Tensor:
    """Multiply all rows at once. TensorFlow 2.21 on CPUs reads beyond its memory for `[n, 1, a, b] @ [b, c]`."""
    x, y = inputs.stacked_input(0), inputs.unstacked_input(1)
    rows = tf.reshape(x, [-1, x.shape[-1]])
    matrix = tf.reshape(y, y.shape[-2:])
    found = tf.matmul(rows, matrix, adjoint_b=inputs.get_attr("adj_y"))
    missing = max(y.shape.rank - (x.shape.rank - 1), 0)
    axes = tf.concat([tf.shape(x)[:1], [1] * missing, tf.shape(x)[1:-1], found.shape[-1:]], axis=0)
    return tf.reshape(found, axes)


def _has_one_matrix(inputs: Any) -> bool:
    """Return whether a shared matrix is multiplied by rows of each lane, or by a vector of each lane."""
    x, y = inputs.input(0), inputs.input(1)
    if x.is_stacked or not y.is_stacked:
        return x.is_stacked and not y.is_stacked and None not in [*x.t.shape[1:], *y.t.shape]
    columns = 1 if inputs.get_attr("transpose_b") else 2
    return bool(y.t.shape[columns] == 1)


def _rows_and_one_matrix(inputs: Any) -> tf.Tensor:
    """All lanes' rows, or vectors, as the rows of one matrix.

    Vectors as columns, TensorFlow's own rule, would give columns. To turn these costs a kernel without vectors of
    numbers wherever they are used: twice the time of a logistic regression's gradient.
    """
    turn_x, turn_y = inputs.get_attr("transpose_a"), inputs.get_attr("transpose_b")
    if inputs.input(0).is_stacked:
        x = inputs.stacked_input(0)
        x = tf.linalg.matrix_transpose(x) if turn_x else x
        lanes = tf.shape(x)[0] if x.shape[0] is None else x.shape[0]
        _, count, length = x.shape
        found = _times(tf.reshape(x, [lanes * count, length]), inputs.unstacked_input(1), turn_y)
        return tf.reshape(found, [lanes, count, *found.shape[1:]])
    rows = tf.squeeze(inputs.stacked_input(1), axis=1 if turn_y else 2)
    return _times(rows, inputs.unstacked_input(0), not turn_x)[..., tf.newaxis]


def _times(rows: tf.Tensor, matrix: tf.Tensor, transposed: bool) -> tf.Tensor:
    return gathering.times_transposed(rows, matrix) if transposed else tf.matmul(rows, matrix)


RULES: dict[str, Rule] = {
    "BandedTriangularSolve": with_leading_axes(
        tf.raw_ops.BandedTriangularSolve, "matrix", "rhs", keep=("lower", "adjoint")
    ),
    "Eig": _eig,
    "Lu": with_leading_axes(tf.raw_ops.Lu, "input", keep=("output_idx_type",)),
    "MatrixDeterminant": with_leading_axes(tf.raw_ops.MatrixDeterminant, "input"),
    "MatrixLogarithm": with_leading_axes(tf.raw_ops.MatrixLogarithm, "input"),
    "MatrixSolveLs": _solve_least_squares,
    "MatrixSquareRoot": with_leading_axes(tf.raw_ops.MatrixSquareRoot, "input"),
    "Qr": with_leading_axes(tf.raw_ops.Qr, "input", keep=("full_matrices",)),
    "Svd": _svd,
    "TridiagonalMatMul": with_leading_axes(tf.raw_ops.TridiagonalMatMul, "superdiag", "maindiag", "subdiag", "rhs"),
    "TridiagonalSolve": with_leading_axes(
        tf.raw_ops.TridiagonalSolve, "diagonals", "rhs", keep=("partial_pivoting", "perturb_singular")
    ),
}

CORRECTIONS: dict[str, tuple[Applies, Rule]] = {
    "BatchMatMulV2": (_times_one_matrix, _one_product),
    "MatMul": (_has_one_matrix, _rows_and_one_matrix),
}
