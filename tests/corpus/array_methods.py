"""Methods, attributes and `@` of NumPy's arrays, in the function and in a helper; a step of Gauss and Newton."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "int64", "float32", "bool", "float32", "float64", "float32", "float32")


def batch(rng, lanes):
    return rng.normal(size=(lanes, 4, 3)).astype(np.float32), rng.normal(size=(lanes, 4)).astype(np.float32)


def spread(x):
    return (x - x.mean()).reshape(2, 2).T.flatten()


@pcbatch.autobatch
def array_methods(jacobian, residual):
    normal = jacobian.T @ jacobian + np.eye(3, dtype=np.float32)
    step = np.linalg.solve(normal, jacobian.T @ residual)
    count = 0.0
    while residual.max() > 0.5 and count < 3.0:
        residual = residual * residual.clip(0.0, 0.5)
        count += 1.0
    table = jacobian.copy()
    table[0, 1] = residual @ residual
    rows = table.shape[0] * table.size * table.ndim
    return (
        step,
        table.sum(axis=1),
        jacobian.argmax(),
        step @ jacobian.T @ residual,
        (jacobian > 1.0).any(),
        spread(residual),
        residual.astype(np.float64).mean(),
        jacobian.transpose().dot(residual) / rows,
        sum(residual.tolist()) + count,
    )


def twin(jacobian, residual):
    step = np.linalg.inv(jacobian.T.dot(jacobian) + np.eye(3)).dot(np.einsum("ij,i->j", jacobian, residual))
    count = 0
    while max(residual) > 0.5 and count < 3:
        residual = residual * np.minimum(np.maximum(residual, 0), 0.5)
        count += 1
    table = np.array(jacobian)
    table[0][1] = sum(r * r for r in residual)
    deviations = residual - sum(residual) / 4
    return (
        step,
        np.array([sum(row) for row in table]),
        max(range(12), key=lambda i: jacobian[i // 3][i % 3]),
        sum(step[j] * jacobian[i][j] * residual[i] for i in range(4) for j in range(3)),
        max(max(row) for row in jacobian) > 1,
        deviations[[0, 2, 1, 3]],
        sum(residual) / 4,
        np.einsum("ij,i->j", jacobian, residual) / 96,
        sum(residual) + count,
    )
