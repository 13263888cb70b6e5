"""The U-turn criterion, and what it asks of a stretch of trajectory: `momenta [3, d]`.

Its rows are the `SUM` of the momenta of all points, that of the `FIRST` point in the order of travel, and that of the
`LAST`. One array and not three: code then has loops over three vectors where it would have three loops, and LLVM, which
writes out loops over fewer than about 60 numbers one by one, compiles a sampler of 30 dimensions in three quarters of
the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.nuts.kernel.metrics import velocities

Tensor = Any  # TensorFlow carries no types; a tf.Tensor of one example

SUM, FIRST, LAST = range(3)


def momenta_at(p: Tensor) -> Tensor:
    """The momenta of one point."""
    return tf.broadcast_to(p, (3, *p.shape))


def joined(before: Tensor, after: Tensor) -> Tensor:
    """The momenta of two adjacent stretches as one."""
    row = np.arange(3)[:, np.newaxis]
    return tf.where(row == SUM, before + after, tf.where(row == FIRST, before, after))


def reversed_if(condition: Tensor, momenta: Tensor) -> Tensor:
    """The momenta, those of the way back if a scalar bool says so."""
    return tf.where(condition, tf.gather(momenta, (SUM, LAST, FIRST)), momenta)


def left_out(end_weight: float, leapfrogs: int) -> float:
    """The share of the momentum of each end that `turning_by` leaves out of a sum, for the option `end_weight`.

    The sum stands for the distance travelled, which the trapezoidal rule gives: there both ends count by half. Stan
    counts them in full, so half a step too much. Where points are several steps apart, the same excess is a smaller
    part of a point. Left as they are, trajectories of four steps a point were 20 times as long.
    """
    return 0.5 - (end_weight - 0.5) / leapfrogs


def turning_by(ends: float, inverse_mass: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Tell whether the ends of two adjacent stretches have begun to approach each other; NaN counts as yes.

    For a stretch the criterion to go on is `p_sharp . rho > 0` at both ends, `rho` being the sum of its momenta and
    `p_sharp` the velocity of an end (Betancourt 2017, appendix A.4.2). The inverse mass matrix is symmetric, so
    `p . drift` is the same, `drift` being the velocity of `rho`. It is asked of both stretches together, and of each
    with the nearest point of the other: without these checks across the seam, trajectories of half a period go on for
    a whole one (Stan, 2019).

    `ends` of the momentum of both ends is left out of `rho`, to which an end is never opposed: see `left_out`.
    """
    firsts, lasts = tf.gather(before, (FIRST, FIRST, LAST)), tf.gather(after, (LAST, FIRST, LAST))
    sums = tf.gather(before, (SUM, SUM, LAST)) + tf.gather(after, (SUM, FIRST, SUM))
    if ends:
        sums -= ends * (firsts + lasts)
    drifts = velocities(inverse_mass, sums)
    first, last = firsts * drifts, lasts * drifts
    # As a matrix product: XLA's CPU compiler adds up the elements of a plain sum one after the other.
    products = tf.linalg.matvec(tf.concat([first, last], axis=0), tf.ones_like(first[0]))
    return tf.logical_not(tf.reduce_all(products > 0))
