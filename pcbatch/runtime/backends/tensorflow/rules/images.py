"""Rules for operations on batches of images: the lanes become a part of the batch."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.rules.family import (
    Rule,
    attributes,
    merge,
    part,
    with_leading_axes,
    with_merged_lanes,
)

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
