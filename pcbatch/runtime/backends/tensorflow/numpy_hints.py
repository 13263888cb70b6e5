"""Replacements of methods and attributes of NumPy's arrays that a lane's arrays lack."""

from __future__ import annotations

from pcbatch.ir.array_members import MEMBERS

_TWINS = {
    "argpartition": "np.argsort(x)",
    "flat": "x.ravel()",
    "nbytes": "x.size",
    "partition": "x = np.sort(x)",
    "ptp": "x.max() - x.min()",
    "put": "x[i] = value",
    "resize": "x = x.reshape(..)",
    "take": "np.take(x, places)",
    "view": "tf.bitcast(x, ..)",
}


def instead_of(attribute: str) -> str:
    """Return a help text that names the replacement of an attribute."""
    if attribute in _TWINS:
        return f"write `{_TWINS[attribute]}`"
    has = ", ".join(sorted(MEMBERS))
    return f"arrays of lanes have {has}; what has no such method is a function of np or tf, or a loop"
