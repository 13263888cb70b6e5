"""Rules for convolutions in every combination of shared and per-lane images and kernels, and for their gradients.

Where the kernel is shared, the lanes become a part of the batch. Where each lane has its own, the window at every
place is laid out and one batched matrix product does the rest; gradients are the derivatives of exactly that.

pfor has a rule for the gradient with respect to a shared kernel: a loop over the lanes, in which XLA runs convolutions
badly. There it is a batched product, too (64 lanes, 32 channels, 28 x 28 places: 56 ms instead of 717). For kernels of
TensorFlow the loop is the faster one, by half.

In operations on batches of images the lanes become a part of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs
from pcbatch.runtime.backends.tensorflow.rules.family import (
    Applies,
    Rule,
    attributes,
    merge,
    part,
    stacked,
    with_leading_axes,
    with_merged_lanes,
)

Convolve = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def _convolution(inputs: Any, image_has_lanes: bool, depthwise: bool) -> Convolve:
    """The convolution that the operation does, or is a gradient of.

    It takes `[lanes, N, .., C]` (lanes only if `image_has_lanes`) and kernels `[lanes, .., C, outputs]`, and gives
    `[lanes, N, .., outputs]`.
    """
    strides, dilations = inputs.get_attr("strides"), inputs.get_attr("dilations")
    if inputs.get_attr("data_format").decode() not in ("NHWC", "NDHWC"):
        raise ValueError("kernels that differ by lane need the channels last, data_format='NHWC' or 'NDHWC'")
    spatial = range(1, len(strides) - 1)

    def convolve(image: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        window = kernel.shape[1 : 1 + len(spatial)].as_list()
        leading = 2 if image_has_lanes else 1
        sizes = image.shape[leading:-1].as_list()
        steps = [strides[axis] for axis in spatial]
        gaps = [dilations[axis] for axis in spatial]
        before_after = _padding(inputs, sizes, window, steps, gaps)
        padded = tf.pad(image, [[0, 0]] * leading + before_after + [[0, 0]])
        patches = _patches(padded, leading, window, steps, gaps)
        return (_by_channel if depthwise else _over_channels)(patches, kernel, len(spatial))

    return convolve


def _over_channels(patches: tf.Tensor, kernel: tf.Tensor, spatial: int) -> tf.Tensor:
    """Each output channel from all channels: one product of `[lanes, places, taps * C]` and `[lanes, taps * C, O]`."""
    outputs = kernel.shape[-1]
    width = math.prod(kernel.shape[1:-1])
    kernel = tf.reshape(kernel, [-1, width, outputs])
    shape = tf.shape(patches)
    if patches.shape.rank == spatial + 4:
        found = tf.matmul(tf.reshape(patches, [shape[0], -1, width]), kernel)
    else:
        found = tf.matmul(tf.reshape(patches, [-1, width]), kernel)  # of an image that all lanes share
    places = shape[-spatial - 3 : -2]
    return tf.reshape(found, tf.concat([tf.shape(kernel)[:1], places, [outputs]], axis=0))


def _by_channel(patches: tf.Tensor, kernel: tf.Tensor, spatial: int) -> tf.Tensor:
    """Convolve each channel alone to some output channels."""
    channels, multiplier = kernel.shape[-2:]
    lanes = tf.shape(kernel)[0]
    taps = tf.reshape(kernel, [lanes, *[1] * (spatial + 1), -1, channels, multiplier])
    found = tf.reduce_sum(patches[..., None] * taps, axis=-3)
    return tf.reshape(found, tf.concat([tf.shape(found)[:-2], [channels * multiplier]], axis=0))


def _padding(
    inputs: Any, sizes: Sequence[int], window: Sequence[int], steps: Sequence[int], gaps: Sequence[int]
) -> list[list[int]]:
    """Zeros before and after along each spatial axis, as the attribute `padding` says."""
    kind = inputs.get_attr("padding").decode()
    if kind == "VALID":
        return [[0, 0] for _ in sizes]
    if kind == "EXPLICIT":
        flat = inputs.get_attr("explicit_paddings")
        return [list(flat[2 * axis : 2 * axis + 2]) for axis in range(1, len(sizes) + 1)]
    found = []
    for size, width, step, gap in zip(sizes, window, steps, gaps, strict=True):
        total = max((-(-size // step) - 1) * step + (width - 1) * gap + 1 - size, 0)
        found.append([total // 2, total - total // 2])
    return found


def _patches(
    image: tf.Tensor, leading: int, window: Sequence[int], steps: Sequence[int], gaps: Sequence[int]
) -> tf.Tensor:
    """Return the contents of the window at each place: `[.., places.., taps, C]`."""
    sizes = image.shape[leading:-1].as_list()
    shifts: list[tuple[int, ...]] = [()]
    for width in window:
        shifts = [(*shift, tap) for shift in shifts for tap in range(width)]
    spans = [(w - 1) * gap + 1 for w, gap in zip(window, gaps, strict=True)]
    seen = []
    for shift in shifts:
        cut = [
            slice(tap * gap, tap * gap + size - span + 1, step)
            for tap, gap, size, span, step in zip(shift, gaps, sizes, spans, steps, strict=True)
        ]
        seen.append(image[(slice(None),) * leading + tuple(cut)])
    return tf.stack(seen, axis=-2)


# -- rules for kernels that differ by lane -----------------------------------------------------------------------------


def _forward(depthwise: bool) -> Rule:
    def rule(inputs: Any) -> tf.Tensor:
        return _convolution(inputs, stacked(inputs, 0), depthwise)(inputs.input(0).t, inputs.stacked_input(1))

    return rule


def _to_image(depthwise: bool) -> Rule:
    """Return the gradient with respect to the image: a transposed convolution."""

    def rule(inputs: Any) -> tf.Tensor:
        inputs.stack_inputs(stack_indices=[1, 2])
        kernel, upstream = inputs.stacked_input(1), inputs.stacked_input(2)
        image = _zeros_for_result(inputs, kernel)
        return _derivative(lambda x: _convolution(inputs, True, depthwise)(x, kernel), image, upstream)

    return rule


def _to_kernel(depthwise: bool) -> Rule:
    """The gradient with respect to the kernel: of each lane its own, the kernel being shared or not."""

    def rule(inputs: Any) -> tf.Tensor:
        inputs.stack_inputs(stack_indices=[0, 2])
        image, upstream = inputs.stacked_input(0), inputs.stacked_input(2)
        kernel = _zeros_for_result(inputs, image)
        return _derivative(lambda w: _convolution(inputs, True, depthwise)(image, w), kernel, upstream)

    return rule


def _zeros_for_result(inputs: Any, like: tf.Tensor) -> tf.Tensor:
    """Zeros of the shape of the operation's result, for as many lanes as `like` has, and of its dtype."""
    size = inputs.op.outputs[0].shape.as_list()
    return tf.ensure_shape(tf.zeros(tf.concat([tf.shape(like)[:1], size], axis=0), like.dtype), [None, *size])


def _derivative(function: Callable[[tf.Tensor], tf.Tensor], at: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(at)
        value = function(at)
    return tape.gradient(value, at, upstream)


# -- rules for kernels that all lanes share ----------------------------------------------------------------------------

_DEPTHWISE = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
_THREE = ("strides", "padding", "data_format", "dilations")


def _shared_to_image(raw: Callable[..., tf.Tensor], keep: tuple[str, ...]) -> Rule:
    """The lanes become a part of the batch, in the size of the result as well."""

    def rule(inputs: Any) -> tf.Tensor:
        size, kernel, upstream = inputs.unstacked_input(0), inputs.unstacked_input(1), inputs.stacked_input(2)
        lanes = tf.shape(upstream)[:1]
        total = tf.concat([size[:1] * tf.cast(lanes, size.dtype), size[1:]], axis=0)
        merged = raw(input_sizes=total, filter=kernel, out_backprop=merge(upstream), **attributes(inputs, *keep))
        return part(merged, lanes)

    return rule


def _either(shared: Rule, own: Rule) -> Rule:
    return lambda inputs: own(inputs) if stacked(inputs, 1) else shared(inputs)


def _is_a_product_in_xla(inputs: Any) -> bool:
    """Return whether a gradient with respect to a kernel is better computed as a product with the windows' contents."""
    image, kernel = inputs.op.inputs[0].shape, inputs.op.outputs[0].shape
    is_last = inputs.get_attr("data_format").decode() == "NHWC"
    return is_last and graphs.may_be_in_xla() and bool(image[-1] == kernel[-2])


# -- images ------------------------------------------------------------------------------------------------------------


_RESIZE = ("align_corners", "half_pixel_centers")


def _crop_and_resize(inputs: Any) -> tf.Tensor:
    """Boxes name the image that they cut from: the images of lane after lane are numbered on."""
    inputs.stack_inputs(stack_indices=[0, 1, 2])
    images, boxes, of_image = (inputs.stacked_input(place) for place in range(3))
    lanes, count = tf.shape(images)[:1], tf.shape(images)[1]
    numbered = of_image + (tf.range(lanes[0]) * count)[:, None]
    cut = tf.raw_ops.CropAndResize(
        image=merge(images),
        boxes=merge(boxes),
        box_ind=merge(numbered),
        crop_size=inputs.unstacked_input(3),
        **attributes(inputs, "method", "extrapolation_value"),
    )
    return part(cut, lanes)


RULES: dict[str, Rule] = {
    "Conv3D": _either(with_merged_lanes(tf.raw_ops.Conv3D, "input", "filter", keep=_THREE), _forward(depthwise=False)),
    "Conv3DBackpropInputV2": _either(
        _shared_to_image(tf.raw_ops.Conv3DBackpropInputV2, _THREE), _to_image(depthwise=False)
    ),
    "Conv3DBackpropFilterV2": _to_kernel(depthwise=False),
    "CropAndResize": _crop_and_resize,
    "Dilation2D": with_merged_lanes(tf.raw_ops.Dilation2D, "input", "filter", keep=("strides", "rates", "padding")),
    "ExtractImagePatches": with_merged_lanes(
        tf.raw_ops.ExtractImagePatches, "images", keep=("ksizes", "strides", "rates", "padding")
    ),
    "HSVToRGB": with_leading_axes(tf.raw_ops.HSVToRGB, "images"),
    "LRN": with_merged_lanes(tf.raw_ops.LRN, "input", keep=("depth_radius", "bias", "alpha", "beta")),
    "LRNGrad": with_merged_lanes(
        tf.raw_ops.LRNGrad,
        "input_grads",
        "input_image",
        "output_image",
        keep=("depth_radius", "bias", "alpha", "beta"),
        merged=(0, 1, 2),
    ),
    "RGBToHSV": with_leading_axes(tf.raw_ops.RGBToHSV, "images"),
    "ResizeBicubic": with_merged_lanes(tf.raw_ops.ResizeBicubic, "images", "size", keep=_RESIZE),
    "ResizeBilinear": with_merged_lanes(tf.raw_ops.ResizeBilinear, "images", "size", keep=_RESIZE),
    "ResizeBilinearGrad": with_merged_lanes(
        tf.raw_ops.ResizeBilinearGrad, "grads", "original_image", keep=_RESIZE, merged=(0, 1)
    ),
    "ResizeNearestNeighbor": with_merged_lanes(tf.raw_ops.ResizeNearestNeighbor, "images", "size", keep=_RESIZE),
}


CORRECTIONS: dict[str, tuple[Applies, Rule]] = {
    "Conv2D": (lambda inputs: stacked(inputs, 1), _forward(depthwise=False)),
    "Conv2DBackpropInput": (lambda inputs: stacked(inputs, 1), _to_image(depthwise=False)),
    "Conv2DBackpropFilter": (_is_a_product_in_xla, _to_kernel(depthwise=False)),
    "DepthwiseConv2dNative": (
        lambda inputs: True,
        _either(
            with_merged_lanes(tf.raw_ops.DepthwiseConv2dNative, "input", "filter", keep=_DEPTHWISE),
            _forward(depthwise=True),
        ),
    ),
    "DepthwiseConv2dNativeBackpropInput": (
        lambda inputs: True,
        _either(_shared_to_image(tf.raw_ops.DepthwiseConv2dNativeBackpropInput, _DEPTHWISE), _to_image(depthwise=True)),
    ),
    "DepthwiseConv2dNativeBackpropFilter": (lambda inputs: True, _to_kernel(depthwise=True)),
}
