"""The attributes and methods of NumPy's arrays that values of a lane have, whatever their library's arrays have."""

ATTRIBUTES = frozenset({"T", "imag", "ndim", "real", "size"})
METHODS = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "copy", "cumprod", "cumsum", "diagonal"}
    | {"dot", "flatten", "item", "max", "mean", "min", "prod", "ravel", "repeat", "reshape", "round", "searchsorted"}
    | {"squeeze", "std", "sum", "swapaxes", "tolist", "trace", "transpose", "var"}
)
MEMBERS = ATTRIBUTES | METHODS
