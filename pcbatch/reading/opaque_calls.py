"""Calls of what is not interpreted: which are refused, and what they do to the objects that they get and give."""

from __future__ import annotations

import functools
import gc
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

from pcbatch.errors import PieceRefusalError
from pcbatch.ir.values import fields_of
from pcbatch.reading.values import Function, Host, Lane, OneOf, Ref, Tuple, Value, View

# -- refused calls -----------------------------------------------------------------------------------------------------
# They would happen once for all lanes, or ask for what these lack.


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


# -- operands and results ----------------------------------------------------------------------------------------------
# Objects that operations get and give: are they changed or returned, and do they lead to values of a lane's?


class Handed:
    """The objects and arrays of one call.

    `who` makes it, for messages. `parts_of` gives the parts of a list, a dict or an object of the program, and what a
    function of it reads.
    """

    def __init__(self, who: str, parts_of: Callable[[Ref | Function], dict[Any, Value]]):
        self._who, self._parts_of = who, parts_of
        self._values: dict[int, Value] = {}
        self._before: list[tuple[Any, list[Any]]] = []

    def note(self, value: Value, given: Any) -> None:
        """Note that `given` stands for `value` while the call is tried."""
        match value:
            case Tuple(items):
                for item, part in zip(items, given, strict=False):
                    self.note(item, part)
            case Function():
                self._values[id(given)] = value
                cells = getattr(given, "__closure__", None) or ()
                read = dict(zip(given.__code__.co_freevars, cells, strict=True)) if cells else {}
                for name, item in self._parts_of(value).items():
                    if name in read:
                        self.note(item, read[name].cell_contents)
            case Ref():
                parts = _parts(given)
                self._values[id(given)] = value
                self._before.append((given, [] if parts is None else [*parts.items()]))
                for key, item in self._parts_of(value).items():
                    if parts is not None and key in parts:
                        self.note(item, parts[key])
            case Lane() | View() | OneOf() | Host():
                self._values[id(given)] = value
                parts = _parts(given)
                self._before.append((given, [] if parts is None else [*parts.items()]))

    def same_as(self, result: Any) -> Value | None:
        """The value that was handed in, where the result is that."""
        return self._values.get(id(result))

    def check(self) -> None:
        """Refuse a change of what was handed in."""
        for given, before in self._before:
            parts = _parts(given)
            now = [] if parts is None else [*parts.items()]
            is_same = len(now) == len(before) and all(
                a == b and one is other for (a, one), (b, other) in zip(now, before, strict=True)
            )
            if not is_same:
                raise PieceRefusalError(
                    "PCB424",
                    f"{self._who} changes what it is given, and cannot be read",
                    "let it return the new value: `xs = f(xs)`",
                )


def _parts(given: Any) -> dict[Any, Any] | None:
    """The parts of a list, a dict or an object; None of an array."""
    match given:
        case list():
            return dict(enumerate(given))
        case dict():
            return given.copy()
        case functools.partial(args=arguments):
            return dict(enumerate(arguments))
    fields = fields_of(given)
    return None if fields is None else dict(fields)


KNOWN = (str, bytes, int, float, complex, type, NoneType, CodeType, ModuleType, BuiltinFunctionType)
"""Classes of objects that lead to nothing of a lane's."""
NEAR, FAR = 3, 8
"""So far from an object, and from a function, an operation may have put a lane's value."""
MOST_SEEN = 10_000
FUNCTION = (
    "PCB404",
    "a function that is made of a lane's values stands where a lane has a number",
    "call it, or make it again where it is used: lanes keep numbers, arrays, and structures of them",
)
"""The refusal of a function that leads to a lane's values, where a variable would have to hold it."""


def is_function(value: Any) -> bool:
    """Tell whether an object is there to be called."""
    return callable(value) and not isinstance(value, type)


def leads(value: Any, is_lane: Callable[[Any], bool]) -> bool:
    """Tell whether an object refers to values that stand for a lane's."""
    seen: set[int] = set()
    row = [value]
    for _ in range(1 + (FAR if is_function(value) else NEAR)):
        new = {id(each): each for each in row if not isinstance(each, KNOWN) and id(each) not in seen}
        if any(map(is_lane, new.values())):
            return True
        if len(seen) > MOST_SEEN:
            return False
        seen |= new.keys()
        row = [each for one in new.values() for each in _referents(one)]
    return False


def _referents(value: Any) -> list[Any]:
    """The objects to which one refers; a function refers to what is in its module by name only."""
    found = gc.get_referents(value)
    return [each for each in found if each is not value.__globals__] if isinstance(value, FunctionType) else found
