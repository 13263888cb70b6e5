"""An adaptive Runge-Kutta solver: every lane chooses its own steps, the stiff one thousands, the smooth one a few.

Look at: the solver is written for one initial value, with its step control as an `if`. A solver batched by hand makes
all lanes take the smallest step that any of them needs. The last column says how many steps each lane takes here.

Method: Dormand and Prince, "A family of embedded Runge-Kutta formulae", J. Comp. Appl. Math. 6 (1980): order 5, error
estimated by order 4. The problem is Prothero and Robinson's: y' = -k (y - cos t) - sin t, with y = cos t + exp(-k t).
"""

import math

import numpy as np
import tensorflow as tf

import pcbatch


def slope(t, y, k):
    """The right-hand side."""
    return -k * (y - tf.cos(t)) - tf.sin(t)


def step(t, y, h, k):
    """One step of size `h` from `y` at `t`: the new value, and an estimate of its error."""
    k1 = slope(t, y, k)
    k2 = slope(t + h / 5, y + h * (k1 / 5), k)
    k3 = slope(t + h * 3 / 10, y + h * (k1 * 3 / 40 + k2 * 9 / 40), k)
    k4 = slope(t + h * 4 / 5, y + h * (k1 * 44 / 45 - k2 * 56 / 15 + k3 * 32 / 9), k)
    k5 = slope(t + h * 8 / 9, y + h * (k1 * 19372 / 6561 - k2 * 25360 / 2187 + k3 * 64448 / 6561 - k4 * 212 / 729), k)
    k6 = slope(
        t + h, y + h * (k1 * 9017 / 3168 - k2 * 355 / 33 + k3 * 46732 / 5247 + k4 * 49 / 176 - k5 * 5103 / 18656), k
    )
    new = y + h * (k1 * 35 / 384 + k3 * 500 / 1113 + k4 * 125 / 192 - k5 * 2187 / 6784 + k6 * 11 / 84)
    k7 = slope(t + h, new, k)
    error = h * (k1 * 71 / 57600 - k3 * 71 / 16695 + k4 * 71 / 1920 - k5 * 17253 / 339200 + k6 * 22 / 525 - k7 / 40)
    return new, error


@pcbatch.autobatch
def solve(y, end, k, tolerance):
    """The solution at `end` that begins with `y` at 0; how many steps were accepted, and how many were tried."""
    t, h = tf.zeros_like(end), 0.1 * end
    accepted = tried = 0
    while t < end:
        h = min(h, end - t)
        new, error = step(t, y, h, k)
        ratio = abs(error) / (tolerance * max(1.0, abs(y)))
        if ratio <= 1.0:
            t += h
            y = new
            accepted += 1
        tried += 1
        h *= min(5.0, max(0.2, 0.9 * max(ratio, 1e-10) ** -0.2))
    return y, accepted, tried


def main():
    """Decay rates from 1 to 1,000, to t = 10, by a tolerance of 1e-8 per step."""
    k = np.geomspace(1.0, 1000.0, 16)
    end = np.full(16, 10.0)
    run = solve.run(np.full(16, 2.0), end, k, np.full(16, 1e-8))
    values, accepted, tried = (np.asarray(each) for each in run.value)
    print(f"{'k':>8} {'y(10)':>12} {'error':>9} {'accepted':>9} {'tried':>6}")
    for lane in range(0, 16, 3):
        error = values[lane] - (math.cos(10.0) + math.exp(-10.0 * k[lane]))
        print(f"{k[lane]:8.1f} {values[lane]:12.9f} {error:9.1e} {accepted[lane]:9} {tried[lane]:6}")
    print(f"\n{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
