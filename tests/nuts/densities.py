"""Densities with known moments, and how far a mean over chains may be from the truth."""

import numpy as np
import tensorflow as tf

MEAN = np.array([1.0, -2.0])
COVARIANCE = np.array([[1.0, 0.8], [0.8, 2.0]])
QUIET = {"progress": False}


def gaussian(q, data):
    mean, precision = data
    centred = q - mean
    return -0.5 * tf.reduce_sum(centred * tf.linalg.matvec(precision, centred))


def gaussian_data(mean=MEAN, covariance=COVARIANCE):
    return mean, np.linalg.inv(covariance)


def exact_draws(chains, seed):
    return np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, size=chains)


def assert_near(per_chain, expected):
    """The mean over independent chains is within 4 of its own standard errors of the truth."""
    error = per_chain.std(axis=0, ddof=1) / np.sqrt(len(per_chain))
    np.testing.assert_array_less(np.abs(per_chain.mean(axis=0) - expected), 4 * error)
