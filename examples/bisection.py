"""Bisection of any function: a function as an argument, and each lane as accurate as it asks.

Look at: `function` is a *static* argument. One program is compiled for each function, and inside it the call is
an ordinary call of that function. The loop ends in each lane when its own tolerance is reached.
"""

import math

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch(static_argnames="function")
def root(function, low, high, tolerance, parameter):
    """A zero of `function(x, parameter)` between `low` and `high`, and the number of halvings it took."""
    assert function(low, parameter) * function(high, parameter) <= 0.0, f"no change of sign from {low} to {high}"
    rising = function(high, parameter) > 0.0
    halvings = 0
    while high - low > tolerance:
        middle = (low + high) / 2.0
        if (function(middle, parameter) > 0.0) == rising:
            high = middle
        else:
            low = middle
        halvings += 1
    return (low + high) / 2.0, halvings


def cube(x, volume):
    """Zero where a cube of side `x` has this volume."""
    return x**3 - volume


def kepler(x, eccentricity):
    """Kepler's equation, for a mean anomaly of 1."""
    return x - eccentricity * tf.sin(x) - 1.0


def main():
    """Cube roots, and Kepler's equation for several orbits, each by tolerances from 0.1 to 1e-12."""
    tolerance = np.geomspace(1e-1, 1e-12, 12)
    low = np.zeros(12)
    for function, high, parameters in (
        (cube, 10.0, np.arange(12.0) ** 2),
        (kepler, math.pi, np.linspace(0.0, 0.99, 12)),
    ):
        run = root.run(function, low, np.full(12, high), tolerance, parameters)
        found, halvings = (np.asarray(each) for each in run.value)
        print(f"{function.__name__:>10} {'tolerance':>10} {'halvings':>9} {'root':>16} {'remainder':>10}")
        for lane in range(0, 12, 3):
            print(f"{parameters[lane]:10.2f} {tolerance[lane]:10.0e} {halvings[lane]:9} {found[lane]:16.12f}", end="")
            print(f" {function(found[lane], parameters[lane]):10.0e}")
        print(f"{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use\n")


if __name__ == "__main__":
    main()
