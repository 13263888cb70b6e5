"""Calls that are refused by what is called: what would happen once for all lanes, or asks for what they lack."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Forbidden:
    """The reason why a call is refused, and the help."""

    code: str
    why: str
    help: str


_BY_KEY = "draw with `pcbatch.random` from a key that the function is given: `x = {}`"
_DRAW = Forbidden(
    "PCB118",
    "draws from hidden state, which would happen once for the whole batch",
    _BY_KEY.format("pcbatch.random.normal(key)"),
)
_DRAWS: dict[str, str] = {
    **dict.fromkeys(("random", "rand", "random_sample"), "pcbatch.random.uniform(key)"),
    "uniform": "pcbatch.random.uniform(key, minval=a, maxval=b)",
    **dict.fromkeys(("randrange", "integers", "randint"), "pcbatch.random.randint(key, (), a, b)"),
    **dict.fromkeys(("gauss", "normalvariate", "normal"), "mean + deviation * pcbatch.random.normal(key)"),
    **dict.fromkeys(("expovariate", "exponential"), "pcbatch.random.exponential(key) / rate"),
    **dict.fromkeys(("gammavariate", "gamma"), "scale * pcbatch.random.gamma(key, alpha)"),
    **dict.fromkeys(("betavariate", "beta"), "pcbatch.random.beta(key, alpha, beta)"),
    **dict.fromkeys(("choice", "choices"), "pcbatch.random.choice(key, xs)"),
    **dict.fromkeys(("shuffle", "permutation", "permuted"), "pcbatch.random.permutation(key, xs)"),
    "sample": "pcbatch.random.permutation(key, xs)[:k]",
    "poisson": "pcbatch.random.poisson(key, rate)",
    "binomial": "sum(pcbatch.random.bernoulli(key, p, (n,)))",
    "standard_normal": "pcbatch.random.normal(key)",
}
"""Replacements of Python's and NumPy's draws, by their names."""
_CLOCK = Forbidden(
    "PCB119",
    "reads a clock, which would happen once, while the program is compiled",
    "measure outside, around the batched call",
)
_INPUT = Forbidden(
    "PCB119",
    "reads from outside, which would happen once, while the program is compiled",
    "read before the batched call and pass the value as an argument",
)
_FILE = Forbidden(
    "PCB119",
    "reads or writes a file, which would happen once, while the program is compiled",
    "do it outside, around the batched call",
)
_OUTPUT = Forbidden(
    "PCB119",
    "writes something, which would happen once, while the program is compiled",
    'return the value, or let each lane print it: `pcbatch.debug("x = {}", x)`',
)
_VARIABLE = Forbidden(
    "PCB112",
    "makes or changes a variable, which would happen for the whole batch",
    "return the new value and assign it outside the batched call",
)
_NUMPY = Forbidden("PCB120", "asks for a concrete value while lanes have none", "use the tensor itself")
_IDENTITY = Forbidden("PCB120", "tells objects apart, which lanes have none of", "compare with `==` or `is`")
_NAMES = Forbidden("PCB120", "works on names, which batched code does not keep", "pass values as arguments")
_TURNS = Forbidden(
    "PCB119", "keeps its place in hidden state", "loop with `for`; of a list the first element is `xs[0]`"
)
_GRADIENTS = Forbidden(
    "PCB120",
    "works in graphs alone, not on one example",
    "take the gradient on a tape: `with tf.GradientTape() as tape:` and tape.gradient(y, x)",
)

_PATHS: dict[str, Forbidden] = {
    "builtins.print": _OUTPUT,
    "builtins.input": _INPUT,
    "builtins.breakpoint": _OUTPUT,
    "builtins.id": _IDENTITY,
    "builtins.next": _TURNS,
    **dict.fromkeys(
        (f"builtins.{name}" for name in ("eval", "exec", "compile", "globals", "locals", "vars", "delattr")), _NAMES
    ),
    "builtins.__import__": _NAMES,
    **dict.fromkeys(("io.", "_io."), _FILE),  # `open` is of `_io` from Python 3.13 on
    **dict.fromkeys(("random.", "secrets.", "uuid.", "numpy.random.", "posix.urandom", "nt.urandom"), _DRAW),
    **dict.fromkeys(("time.", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"), _CLOCK),
    "datetime.date.today": _CLOCK,
    **dict.fromkeys(("logging.", "warnings.warn", "_warnings.warn"), _OUTPUT),
    "tensorflow.python.ops.variables.Variable": _VARIABLE,
    **dict.fromkeys((f"tensorflow.python.ops.gradients_impl.{name}" for name in ("gradients", "Hessians")), _GRADIENTS),
}
"""By the dotted path of what is called; an entry covers everything that starts with it."""

_METHODS: dict[str, Forbidden] = {
    **dict.fromkeys(("assign", "assign_add", "assign_sub", "scatter_update", "scatter_nd_update"), _VARIABLE),
    "numpy": _NUMPY,
}


def forbidden(function: Any) -> Forbidden | None:
    """Return the reason why `function` must not be called; None where it may be."""
    path = _path(function)
    found = next((found for start, found in _PATHS.items() if path.startswith(start)), None)
    line = _DRAWS.get(path.rpartition(".")[2]) if found is _DRAW else None
    if found is None or line is None:
        return found
    is_inclusive = path.startswith("random.") and path.endswith(".randint")
    return replace(found, help=_BY_KEY.format(line.replace("a, b)", "a, b + 1)") if is_inclusive else line))


def forbidden_method(name: str) -> Forbidden | None:
    """Return the reason why the method `name` of an array or a variable must not be called."""
    return _METHODS.get(name)


def _path(function: Any) -> str:
    """The module, and the class, in which a function stands, with its name."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        return f"{getattr(function, '__module__', None)}.{name}"
    if isinstance(owner, io.IOBase):
        return f"io.{name}"
    cls = owner if isinstance(owner, type) else type(owner)
    return f"{cls.__module__}.{cls.__qualname__}.{name}"
