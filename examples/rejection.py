"""Gamma variates by rejection: a loop that ends by chance, and a branch that tries again under other parameters.

Look at: `while True` with a `return` inside, as the paper's algorithm is written down. `vmap` would draw for all lanes
until the unluckiest one is done, with a mask; here a lane that is done is done. A lane's draws depend on its key
alone: the first ten lanes draw the same numbers in a batch of ten.

Method: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); shapes below 1
as in its section 6.
"""

import math

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def gamma(key, shape):
    """A draw from the gamma distribution of this shape (scale 1), and the number of proposals it took."""
    if shape < 1.0:
        key, now = pcbatch.random.split(key)
        draw, proposals = gamma(key, shape + 1.0)
        return draw * pcbatch.random.uniform(now) ** (1.0 / shape), proposals
    d = shape - 1.0 / 3.0
    c = 1.0 / tf.sqrt(9.0 * d)
    proposals = 0
    while True:
        key, for_normal, for_uniform = pcbatch.random.split(key, 3)
        proposals += 1
        x = pcbatch.random.normal(for_normal)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(1.0 - pcbatch.random.uniform(for_uniform)) < 0.5 * x**2 + d - d * v + d * math.log(v):
            return d * v, proposals


def main():
    """4,000 draws for each of four shapes; mean and variance of a gamma variate both are its shape."""
    shapes, draws = (0.5, 1.0, 2.5, 10.0), 4000
    keys = pcbatch.random.keys(seed=2000, lanes=draws * len(shapes))
    run = gamma.run(keys, tf.repeat(tf.constant(shapes), draws))
    values, proposals = (np.asarray(each).reshape(len(shapes), draws) for each in run.value)
    print(f"{'shape':>6} {'mean':>7} {'variance':>9} {'proposals':>10}")
    for shape, row, tries in zip(shapes, values, proposals, strict=True):
        print(f"{shape:6} {row.mean():7.3f} {row.var():9.3f} {tries.mean():10.3f}")
    few, _ = gamma(keys[:10], tf.fill([10], shapes[0]))
    print(f"\nlargest difference to a batch of ten: {np.abs(few.numpy() - values[0, :10]).max()}")
    print(f"{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
