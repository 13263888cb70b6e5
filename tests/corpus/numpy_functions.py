"""NumPy's functions that have an equivalent in TensorFlow, with NumPy's names, axes and dtypes."""

import numpy as n
import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "float32", "float64", "int64", "float32", "bool", "float32", "float32", "float64")


@pcbatch.autobatch
def numpy_functions(v, m, k):
    half = np.float32(0.5)
    norm = np.linalg.norm(v) + half
    best = np.argmax(v)
    return (
        np.sum(m, axis=0) * n.sqrt(2.0),
        np.dot(m, v) + np.maximum(v[:2], 0),
        np.where(v > 0, v, 0.5),
        np.sqrt(k),
        best,
        norm,
        np.any(np.isnan(v)),
        np.clip(v, -half, 0.25) + np.concatenate([v[1:], v[:1]]),
        np.outer(v, v) @ np.transpose(m),
        np.zeros(2) + np.exp(np.arange(2.0)),
    )


def batch(rng, lanes):
    vectors, matrices = rng.normal(size=(lanes, 3)), rng.normal(size=(lanes, 2, 3))
    return vectors.astype(np.float32), matrices.astype(np.float32), rng.integers(0, 9, lanes, dtype=np.int32)


def twin(v, m, k):
    return (
        (m[0] + m[1]) * 2**0.5,
        m @ v + np.where(v[:2] > 0, v[:2], 0),
        np.array([x if x > 0 else 0.5 for x in v]),
        k**0.5,
        sorted(range(3), key=lambda i: v[i])[-1],
        float(np.sqrt((v * v).sum())) + 0.5,
        False,
        np.array([min(max(x, -0.5), 0.25) for x in v]) + np.roll(v, -1),
        np.einsum("i,j,kj->ik", v, v, m),
        np.array([1.0, np.e]),
    )
