"""The operations that are tried, as expressions on values of one example, by family.

A letter stands for a lane's value of a certain type, drawn by `examples`; capitals are the same for all lanes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

LANES = 5

NAMES = """
x y       float32[4]            p q       positive float32[4]    u         float32[4] between 0 and 1
t r       float32[], r positive a c       float32[3, 3]          s         positive definite float32[3, 3]
l         lower triangular      m         float32[3, 4]          w         float32[4, 2]
b d       bool[4]               k g       int32[4] from 0 to 3   i j       int32[], i from 0 to 3, j from 0 to 2
n         int32[] from 1 to 3   o         a permutation          z         complex64[4]
e         float32[4, 4, 2]      f         float32[2, 2, 2, 3]    h         float32[2, 2, 2]
v         float32[3, 4, 4, 2]   key       int32[2]
A         float32[4, 4]         B         float32[3, 3]          F         float32[2, 2, 2, 3]
V         tf.Variable([6, 2])   X         float32[4], sorted
LSTM GRU RNN                    recurrent layers of Keras, 3 units, for arrays [1, 3, 4]
"""


@cache
def examples() -> dict[str, np.ndarray]:
    """Arrays `[LANES, ...]` by letter."""
    rng = np.random.default_rng(7)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=(LANES, *shape)).astype(np.float32)

    def ints(high: int, *shape: int) -> np.ndarray:
        return rng.integers(0, high, (LANES, *shape), dtype=np.int32)

    square = normal(3, 3)
    return {
        **{name: normal(4) for name in "xy"},
        **{name: rng.uniform(0.5, 2, (LANES, 4)).astype(np.float32) for name in "pq"},
        "u": rng.uniform(0.05, 0.95, (LANES, 4)).astype(np.float32),
        "t": normal(),
        "r": rng.uniform(0.5, 2, LANES).astype(np.float32),
        **{name: normal(3, 3) + 2 * np.eye(3, dtype=np.float32) for name in "ac"},
        "s": square @ square.transpose(0, 2, 1) + np.eye(3, dtype=np.float32),
        "l": np.tril(normal(3, 3)) + 3 * np.eye(3, dtype=np.float32),
        "m": normal(3, 4),
        "w": normal(4, 2),
        **{name: ints(2, 4) == 1 for name in "bd"},
        **{name: ints(4, 4) for name in "kg"},
        "i": ints(4),
        "j": ints(3),
        "n": 1 + ints(3),
        "o": np.stack([rng.permutation(4) for _ in range(LANES)]).astype(np.int32),
        "z": (normal(4) + 1j * normal(4)).astype(np.complex64),
        "e": normal(4, 4, 2),
        "f": normal(2, 2, 2, 3),
        "h": normal(2, 2, 2),
        "v": normal(3, 4, 4, 2),
        "key": ints(1000, 2),
    }


@cache
def shared() -> dict[str, Any]:
    """Values that are the same for all lanes, by name."""
    rng = np.random.default_rng(8)
    with tf.init_scope():  # not inside whichever graph happens to ask first
        return {
            "A": tf.constant(rng.normal(size=(4, 4)), tf.float32),
            "B": tf.constant(rng.normal(size=(3, 3)), tf.float32),
            "F": tf.constant(rng.normal(size=(2, 2, 2, 3)), tf.float32),
            "V": tf.Variable(rng.normal(size=(6, 2)), dtype=tf.float32),
            "X": tf.constant([-1.0, 0.0, 0.5, 2.0]),
        }


@cache
def layers() -> dict[str, Any]:
    """Layers of Keras, by name."""
    from keras import layers as keras

    with tf.init_scope():
        made = {"LSTM": keras.LSTM(3, seed=1), "GRU": keras.GRU(3, seed=2), "RNN": keras.SimpleRNN(3, seed=3)}
        for layer in made.values():
            layer.build((1, 3, 4))
    return made


FAMILIES = {
    "Arithmetic": """
        x + y
        x - t
        x * y
        x / p
        k // 2
        k % 3
        x // p
        x % p
        x ** 2
        p ** x
        -x
        abs(x)
        tf.add_n([x, y, p])
        tf.math.accumulate_n([x, y])
        tf.math.divide_no_nan(x, y)
        tf.math.multiply_no_nan(x, y)
        tf.math.floormod(x, p)
        tf.math.squared_difference(x, y)
        tf.maximum(x, t)
        tf.minimum(x, y)
        tf.math.sign(x)
        tf.math.reciprocal(p)
        tf.math.reciprocal_no_nan(x)
        tf.math.round(x)
        tf.math.rint(x)
        tf.math.floor(x)
        tf.math.ceil(x)
        tf.truncatediv(k, 2)
        tf.truncatemod(k, 3)
        tf.clip_by_value(x, -0.5, 0.5)
        tf.clip_by_value(x, -r, r)
        tf.clip_by_norm(x, 1.0)
        tf.clip_by_global_norm([x, y], 1.0)[0]
        tf.math.nextafter(x, y)
    """,
    "Elementary and special functions": """
        tf.exp(x)
        tf.math.expm1(x)
        tf.math.log(p)
        tf.math.log1p(p)
        tf.sqrt(p)
        tf.math.rsqrt(p)
        tf.square(x)
        tf.math.pow(p, y)
        tf.sin(x)
        tf.cos(x)
        tf.tan(u)
        tf.asin(u)
        tf.acos(u)
        tf.atan(x)
        tf.atan2(x, y)
        tf.sinh(x)
        tf.cosh(x)
        tf.tanh(x)
        tf.asinh(x)
        tf.acosh(1.0 + p)
        tf.atanh(u)
        tf.math.sigmoid(x)
        tf.math.log_sigmoid(x)
        tf.math.softplus(x)
        tf.math.erf(x)
        tf.math.erfc(x)
        tf.math.erfinv(u)
        tf.math.erfcinv(u)
        tf.math.ndtri(u)
        tf.math.lgamma(p)
        tf.math.digamma(p)
        tf.math.polygamma(1.0 + p * 0.0, p)
        tf.math.zeta(1.0 + p, q)
        tf.math.lbeta(p)
        tf.math.igamma(p, q)
        tf.math.igammac(p, q)
        tf.math.betainc(p, q, u)
        tf.math.betainc(p, 2.0 + 0.0 * q, r / (1.0 + r))
        tf.math.xlogy(p, q)
        tf.math.xlog1py(p, q)
        tf.math.xdivy(x, p)
        tf.math.bessel_i0(x)
        tf.math.bessel_i0e(x)
        tf.math.bessel_i1(x)
        tf.math.bessel_i1e(x)
        tf.math.special.bessel_j0(p)
        tf.math.special.bessel_k0(p)
        tf.math.special.dawsn(x)
        tf.math.special.expint(p)
        tf.math.special.fresnel_cos(x)
        tf.math.special.spence(p)
        tf.math.sobol_sample(2, 4)
        tf.sinc(x) if hasattr(tf, "sinc") else tf.experimental.numpy.sinc(x)
    """,
    "Comparison and logic": """
        x < y
        x <= y
        x > y
        x >= y
        k == g
        k != g
        tf.math.logical_and(b, d)
        tf.math.logical_or(b, d)
        tf.math.logical_not(b)
        tf.math.logical_xor(b, d)
        tf.math.is_nan(x)
        tf.math.is_inf(x)
        tf.math.is_finite(x)
        tf.where(b, x, y)
        tf.where(b, x, 0.0)
        tf.where(t > 0.0, x, y)
        tf.bitwise.bitwise_and(k, g)
        tf.bitwise.bitwise_or(k, g)
        tf.bitwise.bitwise_xor(k, g)
        tf.bitwise.invert(k)
        tf.bitwise.left_shift(k, g)
        tf.bitwise.right_shift(k, g)
        tf.raw_ops.PopulationCount(x=k)
        tf.math.in_top_k(k, tf.ones([4, 5]) * x[:, None], 2)
    """,
    "Reductions and scans": """
        tf.reduce_sum(x)
        tf.reduce_sum(m, axis=0)
        tf.reduce_sum(m, axis=-1, keepdims=True)
        tf.reduce_mean(m, axis=1)
        tf.reduce_max(m, axis=0)
        tf.reduce_min(m)
        tf.reduce_prod(x)
        tf.reduce_any(b)
        tf.reduce_all(b)
        tf.math.reduce_logsumexp(m, axis=1)
        tf.math.reduce_variance(x)
        tf.math.reduce_std(m, axis=0)
        tf.math.reduce_euclidean_norm(m, axis=1)
        tf.math.count_nonzero(k)
        tf.norm(x)
        tf.norm(m, ord=1, axis=0)
        tf.math.l2_normalize(x)
        tf.nn.l2_loss(x)
        tf.nn.moments(m, axes=[0])
        tf.math.argmax(x)
        tf.math.argmin(m, axis=1)
        tf.cumsum(x)
        tf.cumsum(m, axis=1, exclusive=True, reverse=True)
        tf.math.cumprod(x)
        tf.math.cumulative_logsumexp(x)
        tf.math.cumulative_logsumexp(m, axis=-1, reverse=True)
        tf.math.bincount(k, minlength=4, maxlength=4)
        tf.histogram_fixed_width(x, [-1.0, 1.0], 5)
        tf.math.confusion_matrix(k, g, 4)
    """,
    "Segments": """
        tf.math.unsorted_segment_sum(x, k, 4)
        tf.math.unsorted_segment_sum(m, j + tf.constant([0, -1, -1]), 4)
        tf.math.unsorted_segment_prod(x, k, 4)
        tf.math.unsorted_segment_max(x, k, 4)
        tf.math.unsorted_segment_min(x, k, 4)
        tf.math.unsorted_segment_mean(x, k, 4)
        tf.math.unsorted_segment_sqrt_n(x, k, 4)
        tf.math.unsorted_segment_sum(x, [0, 1, 0, 1], 2)
        tf.math.unsorted_segment_sum(X, k, 4)
        tf.math.segment_sum(x, [0, 0, 1, 2])
        tf.ensure_shape(tf.math.segment_sum(x, tf.sort(k)), [4])
        tf.ensure_shape(tf.math.segment_sum(x, [0, 0, 1, 2]), [3])
        tf.ensure_shape(tf.math.segment_mean(m, [0, 0, 1]), [2, 4])
        tf.ensure_shape(tf.math.segment_max(x, [0, 0, 2, 2]), [3])
        tf.ensure_shape(tf.math.segment_min(x, [0, 0, 2, 2]), [3])
        tf.ensure_shape(tf.math.segment_prod(x, [0, 0, 2, 2]), [3])
        tf.sparse.segment_sum(m, [0, 2, 1], [0, 0, 1])
    """,
    "Reading and writing elements": """
        x[i]
        x[-1 - i]
        m[j]
        m[j, i]
        x[1:3]
        m[..., 0]
        m[:, None, ::2]
        x[::-1]
        x[i : i + 2]
        tf.gather(x, i)
        tf.gather(x, k)
        tf.gather(X, k)
        tf.gather(m, i, axis=1)
        tf.gather(m, k, axis=1)
        tf.gather(m, [2, 0])
        tf.gather(w, o[:3], axis=0)
        tf.gather(m, tf.stack([k, g, k]), batch_dims=1)
        tf.gather(x, i + tf.range(2) - tf.minimum(i, 2))
        tf.gather_nd(m, tf.stack([j, i]))
        tf.gather_nd(m, [[0, 1], [2, 3]])
        tf.gather_nd(A, tf.stack([k, g], axis=1))
        tf.gather(V, i)
        tf.gather(V, k)
        tf.gather_nd(V, tf.stack([i, j % 2]))
        V[i]
        tf.nn.embedding_lookup(V, k)
        tf.slice(x, [i], [1])
        tf.slice(m, [0, 1], [2, 2])
        tf.strided_slice(x, [0], [4], [2])
        tf.boolean_mask(x, b)
        tf.where(b)
        tf.scatter_nd(k[:, None], x, [4])
        tf.scatter_nd(tf.stack([k, g], axis=1), x, [4, 4])
        tf.scatter_nd([[0], [2]], x[:2], [5])
        tf.tensor_scatter_nd_update(x, i[None, None], r[None])
        tf.tensor_scatter_nd_update(A, o[:, None], w @ tf.ones([2, 4]))
        tf.tensor_scatter_nd_add(x, k[:, None], y)
        tf.tensor_scatter_nd_add(X, k[:, None], y)
        tf.tensor_scatter_nd_add(m, [[0, 1]], r[None])
        tf.tensor_scatter_nd_sub(x, k[:, None], y)
        tf.tensor_scatter_nd_max(x, k[:, None], y)
        tf.tensor_scatter_nd_min(x, k[:, None], y)
        tf.dynamic_stitch([[0, 2], [1, 3]], [x[:2], y[:2]])
        tf.dynamic_partition(x, k, 4)[0]
        tf.unravel_index(i, [2, 2])
        tf.math.invert_permutation(o)
        tf.one_hot(i, 4)
        tf.one_hot(k, 4, on_value=r, off_value=0.0)
        tf.sequence_mask(n, 4)
    """,
    "Shapes": """
        tf.reshape(m, [4, 3])
        tf.reshape(m, [-1])
        tf.transpose(m)
        tf.transpose(e, [2, 0, 1])
        tf.expand_dims(x, 1)
        tf.squeeze(x[None])
        tf.concat([x, y], 0)
        tf.concat([m, tf.ones([3, 1])], 1)
        tf.stack([x, y], axis=1)
        tf.unstack(m, axis=1)
        tf.split(x, 2)
        tf.split(m, [1, 3], axis=1)
        tf.tile(x, [3])
        tf.repeat(x, 2)
        tf.repeat(m, [1, 2, 1], axis=0)
        tf.broadcast_to(x, [3, 4])
        tf.pad(x, [[1, 2]])
        tf.pad(m, [[1, 0], [0, 2]], constant_values=7.0)
        tf.pad(m, [[1, 0], [0, 2]], constant_values=r)
        tf.pad(m, [[1, 0], [0, 2]], "REFLECT")
        tf.pad(m, [[1, 0], [0, 2]], "SYMMETRIC")
        tf.reverse(m, [1])
        tf.reverse_sequence(m, [1, 2, 3], seq_axis=1)
        tf.roll(x, 1, 0)
        tf.roll(m, [1, 2], [0, 1])
        tf.roll(x, i, 0)
        tf.meshgrid(x, y)
        tf.shape(m)
        tf.size(m)
        tf.rank(m)
        tf.zeros_like(x)
        tf.ones_like(m)
        tf.fill([2, 3], r)
        tf.identity(x)
        tf.ensure_shape(x, [4])
        tf.cast(k, tf.float64)
        tf.saturate_cast(x, tf.uint8)
        tf.bitcast(x, tf.int32)
        tf.complex(x, y)
        tf.eye(3) * r
        tf.linspace(t, r, 5)
        tf.range(4)
        tf.range(n)
        tf.stop_gradient(x)
        tf.meshgrid(x, y, indexing="ij")
        tf.image.extract_patches(e[None], [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
        tf.nn.space_to_depth(e[None], 2)
        tf.nn.depth_to_space(tf.concat([e, e], 2)[None], 2)
        tf.space_to_batch(e[None], [2, 2], [[0, 0], [0, 0]])
    """,
    "Sorting and searching": """
        tf.sort(x)
        tf.sort(m, axis=0, direction="DESCENDING")
        tf.argsort(x)
        tf.argsort(m, axis=1, direction="DESCENDING")
        tf.math.top_k(x, 2)
        tf.math.top_k(m, 2)
        tf.searchsorted(X, x)
        tf.searchsorted(tf.sort(x), y)
        tf.searchsorted(tf.sort(x), y, side="right")
        tf.searchsorted(tf.sort(x), X)
        tf.raw_ops.Bucketize(input=x, boundaries=[-0.5, 0.0, 0.5])
        tf.math.approx_max_k(x, 2)
        tf.unique(k)
        tf.unique_with_counts(k)
        tf.sets.size(tf.sparse.from_dense(k[None]))
        tf.image.non_max_suppression(tf.concat([w, w], 1), x, 2)
    """,
    "Linear algebra": """
        a @ c
        tf.matmul(a, B)
        tf.matmul(B, a)
        tf.matmul(a, c, transpose_a=True)
        tf.matmul(a, c, adjoint_b=True)
        w[None] @ tf.ones([2, 3])
        tf.linalg.matvec(m, x)
        tf.linalg.matvec(A, x)
        tf.tensordot(x, y, 1)
        tf.tensordot(m, w, [[1], [0]])
        tf.einsum("ij,jk->ik", a, c)
        tf.einsum("i,ij->j", x, A)
        tf.linalg.cross(a[0], a[1])
        tf.linalg.trace(a)
        tf.linalg.diag(x)
        tf.linalg.diag_part(a)
        tf.linalg.set_diag(a, a[0])
        tf.linalg.tensor_diag(x)
        tf.linalg.tensor_diag_part(a)
        tf.linalg.band_part(a, -1, 0)
        tf.linalg.adjoint(a)
        tf.linalg.inv(a)
        tf.linalg.pinv(m)
        tf.linalg.solve(a, c)
        tf.linalg.solve(a, B)
        tf.linalg.solve(B, a)
        tf.linalg.triangular_solve(l, c)
        tf.linalg.cholesky(s)
        tf.linalg.cholesky_solve(tf.linalg.cholesky(s), c)
        tf.linalg.lstsq(a, c)
        tf.linalg.lstsq(a, c, fast=False)
        tf.linalg.tridiagonal_solve(a + 4.0, c[0], diagonals_format="compact")
        tf.linalg.tridiagonal_matmul(a, c, diagonals_format="compact")
        tf.linalg.banded_triangular_solve(a[:2] + 4.0, c)
        tf.linalg.det(a)
        tf.linalg.slogdet(a)
        tf.linalg.logdet(s)
        tf.linalg.eigvalsh(s)
        tf.abs(tf.linalg.eigh(s)[1])
        tf.linalg.eigvals(a)
        tf.linalg.svd(a, compute_uv=False)
        tf.abs(tf.linalg.svd(m)[1])
        tf.linalg.svd(m, full_matrices=True)[0]
        tf.matmul(*tf.linalg.qr(m))
        tf.abs(tf.linalg.qr(m, full_matrices=True).r)
        tf.linalg.lu(a)
        tf.linalg.expm(a)
        tf.linalg.logm(tf.cast(s, tf.complex64))
        tf.linalg.sqrtm(s)
        tf.linalg.global_norm([a, c])
        tf.linalg.normalize(x)[0]
    """,
    "Complex numbers and transforms": """
        tf.abs(z)
        tf.math.angle(z)
        tf.math.real(z)
        tf.math.imag(z)
        tf.math.conj(z)
        z * tf.reverse(z, [0])
        tf.signal.fft(z)
        tf.signal.ifft(z)
        tf.signal.rfft(x)
        tf.signal.irfft(z)
        tf.signal.fft2d(tf.cast(m, tf.complex64))
        tf.signal.rfft2d(m)
        tf.signal.fft3d(tf.cast(e, tf.complex64))
        tf.signal.dct(x)
        tf.signal.fftshift(x)
        tf.signal.frame(x, 2, 1)
        tf.signal.hann_window(4) * x
        tf.signal.stft(x, 4, 2)
    """,
    "Neural networks": """
        tf.nn.relu(x)
        tf.nn.relu6(x)
        tf.nn.leaky_relu(x)
        tf.nn.elu(x)
        tf.nn.selu(x)
        tf.nn.gelu(x)
        tf.nn.silu(x)
        tf.nn.softsign(x)
        tf.nn.softmax(m)
        tf.nn.log_softmax(m, axis=0)
        tf.nn.crelu(x)
        tf.nn.bias_add(m, y)
        tf.nn.bias_add(m, X)
        tf.nn.dropout(x, 0.5)
        tf.nn.softmax_cross_entropy_with_logits(u, x)
        tf.nn.sparse_softmax_cross_entropy_with_logits(k[:3], m)
        tf.nn.sigmoid_cross_entropy_with_logits(u, x)
        tf.nn.weighted_cross_entropy_with_logits(u, x, 2.0)
        tf.nn.conv1d(m[None], w[None] @ tf.ones([2, 3]), 1, "SAME")
        tf.nn.conv1d(m[None], A[None], 1, "SAME")
        tf.nn.conv2d(e[None], F, 1, "SAME")
        tf.nn.conv2d(e[None], f, 1, "SAME")
        tf.nn.conv2d(e[None], f, 2, "VALID")
        tf.nn.conv2d(tf.ones([2, 4, 4, 2]), f, 1, "SAME", dilations=2)
        tf.nn.conv2d(v, F, 1, "VALID")
        tf.nn.conv2d_transpose(e[None], tf.transpose(f, [0, 1, 3, 2]), [1, 4, 4, 3], 1)
        tf.nn.conv2d_transpose(e[None], tf.transpose(F, [0, 1, 3, 2]), [1, 8, 8, 3], 2)
        tf.nn.depthwise_conv2d(e[None], f, [1, 1, 1, 1], "SAME")
        tf.nn.depthwise_conv2d(e[None], F, [1, 1, 1, 1], "SAME")
        tf.nn.separable_conv2d(e[None], F, tf.ones([1, 1, 6, 2]), [1, 1, 1, 1], "SAME")
        tf.nn.conv3d(v[None], F[None], [1, 1, 1, 1, 1], "SAME")
        tf.nn.conv3d(v[None], f[None], [1, 1, 1, 1, 1], "SAME")
        tf.nn.dilation2d(e[None], h, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])
        tf.nn.erosion2d(e[None], h, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])
        tf.nn.max_pool2d(e[None], 2, 2, "VALID")
        tf.nn.avg_pool2d(e[None], 2, 2, "SAME")
        tf.nn.max_pool1d(m[None], 2, 1, "VALID")
        tf.nn.max_pool3d(v[None], 2, 1, "SAME")
        tf.nn.avg_pool3d(v[None], 2, 1, "SAME")
        tf.nn.max_pool_with_argmax(e[None], 2, 2, "SAME")[0]
        tf.nn.fractional_max_pool(e[None], [1.0, 1.4, 1.4, 1.0])[0]
        tf.nn.local_response_normalization(e[None])
        tf.nn.batch_normalization(m, x, p, y, q, 0.001)
        tf.nn.ctc_loss(k[None, :2] + 1, tf.stack([m, m, m, m])[:, :1], [2], [4], blank_index=0)
        tf.nn.embedding_lookup(A, k)
        tf.nn.in_top_k(k[:3], m, 2)
    """,
    "Images": """
        tf.image.flip_left_right(e)
        tf.image.rot90(e)
        tf.image.adjust_brightness(e, 0.5)
        tf.image.adjust_contrast(e, 2.0)
        tf.image.adjust_hue(tf.nn.sigmoid(tf.concat([e, e], 2)[..., :3]), 0.1)
        tf.image.adjust_saturation(tf.abs(tf.concat([e, e], 2)[..., :3]), 0.5)
        tf.image.rgb_to_grayscale(tf.concat([e, e], 2)[..., :3])
        tf.image.rgb_to_hsv(tf.nn.sigmoid(tf.concat([e, e], 2)[..., :3]))
        tf.image.hsv_to_rgb(tf.nn.sigmoid(tf.concat([e, e], 2)[..., :3]))
        tf.image.resize(e, [8, 8])
        tf.image.resize(e, [2, 2], "nearest")
        tf.image.resize(e, [6, 6], "bicubic")
        tf.image.crop_to_bounding_box(e, 0, 1, 2, 2)
        tf.image.crop_and_resize(e[None], [[0.0, 0.0, 0.5, 0.5]], [0], [2, 2])
        tf.image.total_variation(e)
        tf.image.sobel_edges(e[None])
        tf.image.psnr(e, e * 0.5, 1.0)
    """,
    "Control flow and functions": """
        tf.cond(t > 0.0, lambda: x, lambda: y)
        tf.switch_case(j, [lambda: x, lambda: y, lambda: x + y])
        tf.while_loop(lambda c, _: c < 3, lambda c, s: (c + 1, s * 1.5), (0, x))[1]
        tf.while_loop(lambda c, _: c < n, lambda c, s: (c + 1, s * 1.5), (0, x))[1]
        tf.map_fn(lambda row: row * 2.0, m)
        tf.scan(lambda total, row: total + row, m)
        tf.foldl(lambda total, row: total + row, m)
        tf.vectorized_map(lambda row: row * t, m)
        tf.function(lambda vector: vector * t)(x)
        tf.recompute_grad(tf.sin)(x)
        tf.grad_pass_through(tf.round)(x)
        tf.nest.map_structure(tf.square, (x, y))
        tf.ensure_shape(tf.numpy_function(np.sin, [x], tf.float32), [4])
        tf.ensure_shape(tf.py_function(tf.sin, [x], tf.float32), [4])
    """,
    "Layers of Keras": """
        LSTM(m[None])[0]
        GRU(m[None])[0]
        RNN(m[None])[0]
        LSTM(m[None], mask=b[None, :3])[0]
    """,
    "Quantisation": """
        tf.quantization.fake_quant_with_min_max_args(x)
        tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0)
        tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0, range_given=True)
    """,
    "Randomness, state and the world outside": """
        pcbatch.random.normal(tf.cast(key, tf.uint32), [3])
        pcbatch.random.uniform(tf.cast(key, tf.uint32), [3])
        pcbatch.random.split(tf.cast(key, tf.uint32))
        tf.random.normal([3])
        tf.random.uniform([3])
        tf.random.truncated_normal([3])
        tf.random.categorical(m, 2)
        tf.random.shuffle(x)
        tf.random.gamma([3], p)
        tf.random.poisson([3], p)
        tf.random.stateless_normal([3], key)
        tf.random.stateless_uniform([3], key)
        tf.random.stateless_uniform([3], [1, 2])
        tf.random.stateless_uniform([3], key, 0, 100, tf.int32)
        tf.random.split(key)
        tf.nn.experimental.stateless_dropout(x, 0.5, key)
        tf.random.stateless_truncated_normal([3], key)
        tf.random.stateless_categorical(m, 2, key)
        tf.random.stateless_gamma([4], key, p)
        tf.random.experimental.stateless_shuffle(x, key)
        tf.image.random_flip_left_right(e)
        V.assign(V * 2.0)
        V.assign_add(tf.ones([6, 2]) * t)
        V * t
        tf.debugging.assert_positive(p)
        tf.debugging.check_numerics(x, "bad")
        tf.print(x)
        tf.timestamp()
        tf.strings.as_string(x)
        tf.io.read_file("numbers.txt")
    """,
}


def cases() -> dict[str, str]:
    """Every expression and its family, in order."""
    return {line.strip(): family for family, lines in FAMILIES.items() for line in lines.splitlines() if line.strip()}
