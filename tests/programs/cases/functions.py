"""Views that functions and methods of NumPy make."""

import numpy as np

from tests.programs.table import A, K, M, Table, X

program = Table()


def flip(a):
    return np.flip(a)


def sq(a):
    return np.squeeze(a[None])


def row(m, i):
    return m[i]


def col(m, i):
    return m[:, i]


def rows2(m):
    return m[:2]


@program(A, X)
def flip_store(a, x):
    b = flip(a)
    a[0] = x
    return b[3]


@program(A, X)
def np_flip_store(a, x):
    b = np.flip(a)
    a[0] = x
    return b[3]


@program(A, X)
def sq_store(a, x):
    b = sq(a)
    a[0] = x
    return b[0]


@program(A, X)
def np_squeeze_store(a, x):
    b = np.squeeze(a[None])
    a[0] = x
    return b[0]


@program(A, X)
def atl_store(a, x):
    b = np.atleast_1d(a)
    a[0] = x
    return b[0]


@program(A, X)
def expa_store(a, x):
    b = np.expand_dims(a, 0)
    a[0] = x
    return b[0, 0]


@program(M, X)
def diag_store(m, x):
    b = np.diag(m)
    m[1, 1] = x
    return b[1]


@program(M, X)
def diag_m_store(m, x):
    b = m.diagonal()
    m[1, 1] = x
    return b[1]


@program(A, X)
def bro_store(a, x):
    b = np.broadcast_to(a, (2, 4))
    a[1] = x
    return b[1, 1]


@program(M, X)
def swp_store(m, x):
    b = np.swapaxes(m, 0, 1)
    m[1, 0] = x
    return b[0, 1]


@program(M, X)
def swp_m_store(m, x):
    b = m.swapaxes(0, 1)
    m[1, 0] = x
    return b[0, 1]


@program(M, X)
def moveaxis_store(m, x):
    b = np.moveaxis(m, 0, 1)
    m[1, 0] = x
    return b[0, 1]


@program(M, X)
def transpose_store(m, x):
    b = m.transpose()
    b[0, 1] = x
    return m[1, 0]


@program(M, X)
def np_transpose_store(m, x):
    b = np.transpose(m)
    b[0, 1] = x
    return m[1, 0]


@program(M, K, X)
def row_store(m, i, x):  # documented: rows are values -> store into row while m still read is refused
    r = row(m, i)
    r[0] = x
    return m[i, 0] + r[0]


@program(M, K, X)
def col_store(m, i, x):
    r = m[:, 1]
    m[0, 1] = x
    return r[0]


@program(M, K, X)
def colh_store(m, i, x):
    r = col(m, 1)
    m[0, 1] = x
    return r[0]


@program(M, X)
def rows2_store(m, x):
    r = rows2(m)
    m[0, 0] = x
    return r[0, 0]


@program(M, X)
def rows2_store2(m, x):
    r = rows2(m)
    r[0, 0] = x
    return m[0, 0]


@program(A, X)
def fliplr_store(a, x):
    m = a.reshape(2, 2)
    b = np.fliplr(m)
    m[0, 0] = x
    return b[0, 1] + a[0]


@program(A, X)
def real_store(a, x):
    b = np.real(a)
    a[0] = x
    return b[0]


@program(A, X)
def real_attr_store(a, x):
    b = a.real
    a[0] = x
    return b[0]


@program(A, X)
def nan_to_num_store(a, x):
    b = np.nan_to_num(a, copy=False)
    a[0] = x
    return b[0]


@program(A, X)
def astype_nocopy(a, x):
    b = a.astype(np.float32, copy=False)
    a[0] = x
    return b[0]


@program(A, X)
def asarray_store(a, x):
    b = np.asarray(a)
    a[0] = x
    return b[0]


@program(A, X)
def array_store(a, x):
    b = np.array(a)
    a[0] = x
    return b[0]


@program(A, X)
def array_nocopy_store(a, x):
    b = np.array(a, copy=False)
    a[0] = x
    return b[0]


@program(A, X)
def newaxis_store(a, x):
    b = a[None]
    a[0] = x
    return b[0, 0]


@program(A, X)
def ellipsis_store(a, x):
    b = a[...]
    a[0] = x
    return b[0]


@program(A, X)
def full_slice_store(a, x):
    b = a[:]
    a[0] = x
    return b[0]


@program(A, X)
def full_slice_assign(a, x):
    b = a[:]
    b[0] = x
    return a[0]


@program(A, X)
def slice_slice(a, x):
    b = a[1:][1:]
    a[2] = x
    return b[0]
