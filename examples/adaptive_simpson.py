"""Adaptive integration by recursive halving: each lane refines where its own integrand is steep.

Look at: two recursive calls in one expression. The compiler finds out which values must be kept across them. The body
calls an ordinary helper function, and all is float64 because the arguments are. The narrow peak needs hundreds of
intervals, the wide one a few. No lane waits for a grid made for another.

Method: Kuncir, "Algorithm 103: Simpson's rule integrator", CACM 1962, with Richardson's correction (Lyness 1969).
"""

import numpy as np
import tensorflow as tf

import pcbatch


def peak(x, width):
    """The integrand: a peak at 0.3."""
    return 1.0 / ((x - 0.3) ** 2 + width**2)


@pcbatch.autobatch
def refine(a, b, fa, fm, fb, whole, tolerance, width):
    """The integral from `a` to `b`, given values at the ends and the middle, and the estimate `whole` from these."""
    m = (a + b) / 2.0
    left_value, right_value = peak((a + m) / 2.0, width), peak((m + b) / 2.0, width)
    left = (m - a) / 6.0 * (fa + 4.0 * left_value + fm)
    right = (b - m) / 6.0 * (fm + 4.0 * right_value + fb)
    error = left + right - whole
    if abs(error) <= 15.0 * tolerance:
        return left + right + error / 15.0
    return refine(a, m, fa, left_value, fm, left, tolerance / 2.0, width) + refine(
        m, b, fm, right_value, fb, right, tolerance / 2.0, width
    )


@pcbatch.autobatch
def integrate(width, tolerance):
    """The integral of `peak` from 0 to 1."""
    a, b = tf.zeros_like(width), tf.ones_like(width)
    fa, fm, fb = peak(a, width), peak((a + b) / 2.0, width), peak(b, width)
    return refine(a, b, fa, fm, fb, (b - a) / 6.0 * (fa + 4.0 * fm + fb), tolerance, width)


def main():
    """Widths from 0.001 to 1, against the closed form."""
    widths = np.geomspace(1e-3, 1.0, 16)
    run = integrate.run(tf.constant(widths), tf.fill([16], tf.constant(1e-7, tf.float64)))
    exact = (np.arctan(0.7 / widths) + np.arctan(0.3 / widths)) / widths
    print(f"{'width':>8} {'integral':>16} {'error':>9}")
    for width, value, truth in zip(widths, np.asarray(run.value), exact, strict=True):
        print(f"{width:8.4f} {value:16.9f} {value - truth:9.1e}")
    print(f"\n{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
