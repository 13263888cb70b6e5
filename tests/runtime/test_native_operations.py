"""Operations that are known to run in native functions: each run there once, compared with TensorFlow's kernels."""

from __future__ import annotations

import pytest

from tools.operations.trial import tried_natively

_LIST = "tf.raw_ops.TensorListReserve(element_shape=[4], num_elements=3, element_dtype=tf.float32)"
_GROWN = (
    "tf.raw_ops.TensorListPushBack(input_handle=tf.raw_ops.EmptyTensorList("
    "element_shape=[4], max_num_elements=3, element_dtype=tf.float32), tensor=x)"
)
_SET = f"tf.raw_ops.TensorListSetItem(input_handle={_LIST}, index=j, item=x)"
_POOLED = 'tf.nn.avg_pool2d(e[None], 2, 2, "SAME")'
_BATCH = "tf.space_to_batch(e[None], [2, 2], [[0, 0], [0, 0]])"

EXPRESSIONS = (
    "tf.raw_ops.StridedSliceGrad(shape=[4], begin=i[None], end=(i + 1)[None], strides=[1], dy=x[:1])",
    "tf.raw_ops.ReciprocalGrad(y=x, dy=y)",
    "tf.raw_ops.EluGrad(gradients=x, outputs=y)",
    "tf.raw_ops.SeluGrad(gradients=x, outputs=y)",
    "tf.raw_ops.Relu6Grad(gradients=x, features=y)",
    "tf.raw_ops.LeakyReluGrad(gradients=x, features=y, alpha=0.1)",
    "tf.raw_ops.SoftsignGrad(gradients=x, features=y)",
    "tf.raw_ops.IgammaGradA(a=p, x=q)",
    "tf.raw_ops.BiasAddGrad(out_backprop=m)",
    "tf.raw_ops.MirrorPadGrad(input=m, paddings=[[1, 0], [0, 1]], mode='REFLECT')",
    "tf.raw_ops.FakeQuantWithMinMaxArgsGradient(gradients=x, inputs=y)",
    "tf.raw_ops.LRNGrad(input_grads=e[None], input_image=e[None], output_image=e[None])",
    f"tf.raw_ops.AvgPoolGrad(orig_input_shape=[1, 4, 4, 2], grad={_POOLED}, ksize=[1, 2, 2, 1], "
    "strides=[1, 2, 2, 1], padding='SAME')",
    "tf.raw_ops.ConcatOffset(concat_dim=0, shape=[tf.shape(x), tf.shape(y)])[1] + i",
    f"tf.raw_ops.TensorListStack(input_handle={_SET}, element_shape=[4], element_dtype=tf.float32, num_elements=3)",
    f"tf.raw_ops.TensorListPopBack(input_handle={_GROWN}, element_shape=[4], element_dtype=tf.float32)[1]",
    f"tf.raw_ops.TensorListLength(input_handle={_SET}) + i",
    "tf.raw_ops.TensorListElementShape(input_handle=tf.raw_ops.TensorListFromTensor(tensor=m, element_shape=[4]), "
    "shape_type=tf.int32) + i",
    "tf.raw_ops.UpperBound(sorted_inputs=X[None], values=x[None])",
    "tf.raw_ops.LowerBound(sorted_inputs=tf.cumsum(p)[None], values=x[None])",
    f"tf.raw_ops.BatchToSpaceND(input={_BATCH}, block_shape=[2, 2], crops=[[0, 0], [0, 0]])",
    "tf.raw_ops.MatrixSetDiag(input=a, diagonal=a[0])",
    "tf.raw_ops.Bucketize(input=x, boundaries=[-0.5, 0.0, 0.5])",
    "tf.linalg.band_part(a, -1, 0)",
    "tf.linalg.cross(a[0], a[1])",
    "tf.linalg.set_diag(a, a[0])",
    "tf.linalg.tridiagonal_matmul(a, c, diagonals_format='compact')",
    "tf.math.angle(z)",
    "tf.math.cumulative_logsumexp(x)",
    "tf.math.in_top_k(k, tf.ones([4, 5]) * x[:, None], 2)",
    "tf.dynamic_stitch([[0, 2], [1, 3]], [x[:2], y[:2]])",
    "tf.reverse_sequence(m, [1, 2, 3], seq_axis=1)",
    "tf.pad(m, [[1, 0], [0, 2]], 'REFLECT')",
    "tf.nn.depth_to_space(tf.concat([e, e], 2)[None], 2)",
    "tf.nn.space_to_depth(e[None], 2)",
    "tf.nn.bias_add(m, y)",
    "tf.nn.local_response_normalization(e[None])",
    "tf.nn.max_pool2d(e[None], 2, 2, 'VALID')",
    "tf.nn.max_pool3d(v[None], 2, 1, 'SAME')",
    "tf.nn.avg_pool3d(v[None], 2, 1, 'SAME')",
    "tf.nn.softmax_cross_entropy_with_logits(u, x)",
    "tf.nn.sparse_softmax_cross_entropy_with_logits(k[:3], m)",
    "tf.quantization.fake_quant_with_min_max_args(x)",
    "tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0)",
    "tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0, range_given=True)",
    "tf.image.rgb_to_hsv(tf.nn.sigmoid(tf.concat([e, e], 2)[..., :3]))",
    "tf.image.hsv_to_rgb(tf.nn.sigmoid(tf.concat([e, e], 2)[..., :3]))",
    "tf.while_loop(lambda c, _: c < n, lambda c, s: (c + 1, s * 1.5), (0, x))[1]",
    "tf.map_fn(lambda row: row * 2.0, m)",
    "tf.scan(lambda total, row: total + row, m)",
    "tf.slice(X, [i], [1])",
)


@pytest.mark.parametrize(
    "expressions", [EXPRESSIONS[::2], pytest.param(EXPRESSIONS[1::2], marks=pytest.mark.slow)], ids=len
)
def test_each_kind_runs_once(expressions):
    """Every second one, the others among the slow tests."""
    found = {expression: tried_natively(expression) for expression in expressions}
    assert {expression: names for expression, names in found.items() if names} == {}


REFUSED = {
    "tf.linalg.cholesky(s)": "Cholesky",
    "tf.linalg.triangular_solve(l, c)": "MatrixTriangularSolve",
    "tf.linalg.expm(a)": "MatrixSolve",
    "tf.linalg.inv(a)": "MatrixInverse",
    "tf.sort(x)": "TopKV2",
    "tf.signal.fft(z)": "FFT",
    "tf.tensor_scatter_nd_add(x, k[:, None], y)": "TensorScatterAdd",
    f"tf.raw_ops.TensorListLength(input_handle={_GROWN}) + i": "TensorListLength",
}


def test_what_does_not_run_there_or_runs_slowly_is_named():
    assert {expression: tried_natively(expression)[0] for expression in REFUSED} == REFUSED
