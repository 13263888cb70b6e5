"""What to write for a method or an attribute of NumPy's arrays that TensorFlow's tensors lack."""

from __future__ import annotations

_TWINS = {
    "T": "tf.transpose(x)",
    "all": "tf.reduce_all(x)",
    "any": "tf.reduce_any(x)",
    "argmax": "tf.argmax(x)",
    "argmin": "tf.argmin(x)",
    "argsort": "tf.argsort(x)",
    "astype": "tf.cast(x, tf.float32)",
    "clip": "tf.clip_by_value(x, low, high)",
    "copy": "y = tf.identity(x)",
    "cumsum": "tf.cumsum(x)",
    "dot": "tf.tensordot(x, y, 1)",
    "flatten": "tf.reshape(x, [-1])",
    "max": "tf.reduce_max(x)",
    "mean": "tf.reduce_mean(x)",
    "min": "tf.reduce_min(x)",
    "prod": "tf.reduce_prod(x)",
    "ravel": "tf.reshape(x, [-1])",
    "reshape": "tf.reshape(x, [..])",
    "size": "len(x)",
    "sort": "x = tf.sort(x)",
    "std": "tf.math.reduce_std(x)",
    "sum": "tf.reduce_sum(x)",
    "transpose": "tf.transpose(x)",
    "var": "tf.math.reduce_variance(x)",
}


def instead_of(attribute: str) -> str:
    """What to write for an attribute, as a help."""
    told = "values of lanes are TensorFlow's tensors"
    if attribute in _TWINS:
        return f"{told}: write `{_TWINS[attribute]}`"
    return f"{told}: write tf.reduce_sum(x), tf.reshape(x, ..) and the like; what has no such function is a loop"
