"""Calls of `pcbatch.primitive` and `pcbatch.fallback` functions inside pieces.

While a piece is traced for one example, such a call becomes one graph operation, a function call that carries its own
vectorisation rule; pfor finds the rule on the operation. Everywhere else the function simply runs.

A call of a batched function from code that is one piece is one operation there, which all lanes run as one batch.
A density that `pcbatch.nuts` is handed is such code: its gradient is taken in the piece that calls it, so calls in it
cannot be taken out of it. The trace for one example has an operation that only says what comes out; for all lanes its
rule runs the callee, with the arguments that differ by lane as a batch. A gradient that is asked for inside the piece
comes from a taped run.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.ir import values
from pcbatch.ir.types import StructType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends import pieces
from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, error_messages, private
from pcbatch.runtime.backends.tensorflow.numpy_equivalents import EQUIVALENTS
from pcbatch.runtime.backends.tensorflow.recorder import can_fault, fault, is_recording
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors, type_of, wrap
from pcbatch.runtime.backends.tensorflow.weak import DOUBLE, INT, Weak, is_lane_value, is_number

# -- members -----------------------------------------------------------------------------------------------------------
# Members of NumPy's arrays that TensorFlow's tensors lack, `x.T`, `x.sum()`, `x.reshape(2, 3)`, for values of a lane.
#
# The methods are NumPy's functions of the same names (`numpy_equivalents`), which say what dtypes they give.


def member(value: Any, name: str) -> Any:
    """`value.name`, of a lane's number or array as of a NumPy array."""
    if not is_lane_value(value) or (name not in MEMBERS_OF_LANES and hasattr(value, name)):
        return getattr(value, name)
    array = value.value if isinstance(value, Weak) else tf.convert_to_tensor(value)
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name](array)
    return functools.partial(_METHODS[name], array) if name in _METHODS else getattr(value, name)


def _shape(given: tuple[Any, ...]) -> Any:
    """`2, 3` or `(2, 3)`, as a method takes a shape or axes."""
    if len(given) != 1 or isinstance(given[0], int) or getattr(given[0], "shape", None) == ():
        return list(given)
    return given[0]


def _reshape(x: tf.Tensor, *shape: Any) -> tf.Tensor:
    return tf.reshape(x, _shape(shape))


def _transpose(x: tf.Tensor, *axes: Any) -> tf.Tensor:
    return EQUIVALENTS["transpose"](x, _shape(axes) if axes and axes[0] is not None else None)


def _astype(x: tf.Tensor, dtype: Any, copy: bool = True) -> tf.Tensor:
    """Python's `int` and `float` are what they are in a lane: int32 and float32."""
    wanted = {int: tf.int32, float: tf.float32}.get(dtype) or tf.as_dtype(dtype)
    return tf.cast(x, wanted)


def _number(x: tf.Tensor) -> Any:
    """One element as a Python number, which is weak."""
    if x.dtype == tf.bool or x.dtype.is_complex:
        return x
    return Weak(tf.cast(x, INT if x.dtype.is_integer else DOUBLE))


def _item(x: tf.Tensor, *at: int) -> Any:
    if at:
        return _number(tf.reshape(x, [-1])[at[0]] if len(at) == 1 else x[at])
    if x.shape.num_elements() != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return _number(tf.reshape(x, []))


def _tolist(x: tf.Tensor) -> Any:
    return [_tolist(row) for row in tf.unstack(x)] if x.shape.rank else _number(x)


def _number_of_axes(x: tf.Tensor) -> int:
    return int(x.shape.rank)


def _size(x: tf.Tensor) -> int:
    return int(x.shape.num_elements())


_ATTRIBUTES: dict[str, Callable[[tf.Tensor], Any]] = {
    "T": tf.transpose,
    "imag": tf.math.imag,
    "ndim": _number_of_axes,
    "real": tf.math.real,
    "size": _size,
}
_SAME = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min"}
    | {"prod", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "trace", "var"}
)
"""The methods that are the functions of their names."""
_METHODS: dict[str, Callable[..., Any]] = {name: EQUIVALENTS[name] for name in _SAME} | {
    "astype": _astype,
    "conj": tf.math.conj,
    "copy": tf.identity,
    "flatten": EQUIVALENTS["ravel"],
    "item": _item,
    "reshape": _reshape,
    "tolist": _tolist,
    "transpose": _transpose,
}
MEMBERS_OF_LANES = frozenset({*_ATTRIBUTES, *_METHODS})
"""The names of all, which are `pcbatch.ir.types.MEMBERS`."""


# -- opaque ------------------------------------------------------------------------------------------------------------

Body = Callable[..., list[tf.Tensor]]


def call_primitive(
    fn: Callable[..., Any],
    batched: Callable[..., Any] | None,
    shared: frozenset[str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """`fn(*args, **kwargs)`, for which `batched` is called when a piece is vectorised; see `pcbatch.primitive`."""
    if batched is None or not _in_piece():
        return fn(*args, **kwargs)
    call = Call(fn, args, kwargs)
    places = range(len(call.leaf_names))
    stacked = tuple(place for place in places if call.leaf_names[place] not in shared)
    whole = custom_vectorised_ops.WholeCall(_batched_body(call, batched, shared), stacked, _refuse_shared(call))
    return call.pack(custom_vectorised_ops.call(call.body, call.leaves, whole, call.name))


def call_fallback(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """`fn(*args, **kwargs)`, run for one lane after the other when a piece is vectorised; see `pcbatch.fallback`."""
    if not _in_piece():
        return fn(*args, **kwargs)
    call = Call(fn, args, kwargs)
    return call.pack(custom_vectorised_ops.call(call.body, call.leaves, custom_vectorised_ops.Loop(), call.name))


def as_tensors(value: Any) -> Any:
    """Return a structure of values, weak numbers as tensors of their default dtypes."""
    return tf.nest.map_structure(lambda leaf: tf.convert_to_tensor(leaf) if type(leaf) is Weak else leaf, value)


def _in_piece() -> bool:
    return is_recording() and not tf.executing_eagerly()


@dataclass
class Call:
    """One call: its arguments that are lane values, and its result type, known once `body` has been traced.

    Values of a lane (tensors, variables, weak numbers, NumPy arrays, structures that have some) go through the
    operation as `leaves`, `leaf_names` saying to which parameter each belongs. `fn` gets everything else as it is, and
    what is passed for the parameters that are `static`.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    static: frozenset[str] = frozenset()
    types: dict[str, Type] = field(default_factory=dict)
    leaves: list[tf.Tensor] = field(default_factory=list)
    leaf_names: list[str] = field(default_factory=list)
    result: Type | None = None

    def __post_init__(self) -> None:
        self.name = getattr(self.fn, "__name__", type(self.fn).__name__)
        self.bound = inspect.signature(self.fn).bind(*self.args, **self.kwargs)
        for name, value in self.bound.arguments.items():
            if name not in self.static and any(map(_is_lane_value, _parts(value))):
                self.types[name] = type_of(value)
                self.leaves += leaf_tensors(value, self.types[name])
                self.leaf_names += [name for _ in leaf_types(self.types[name])]

    def arguments(self, leaves: Sequence[tf.Tensor], wrapped: bool) -> inspect.BoundArguments:
        """The arguments with `leaves` in place of their own, weak numbers wrapped as such if `wrapped`."""
        remaining = iter(leaves)
        again = inspect.BoundArguments(self.bound.signature, dict(self.bound.arguments))
        for name, type_ in self.types.items():
            value = values.pack(type_, [next(remaining) for _ in leaf_types(type_)])
            again.arguments[name] = wrap(value, type_) if wrapped else value
        return again

    def body(self, *leaves: tf.Tensor) -> list[tf.Tensor]:
        """`fn` from leaves to leaves, for one example."""
        bound = self.arguments(leaves, wrapped=True)
        value = self.fn(*bound.args, **bound.kwargs)
        self.result = type_of(value)
        return leaf_tensors(value, self.result)

    def pack(self, leaves: Sequence[tf.Tensor]) -> Any:
        """Pack leaves into the structure that `fn` returned."""
        assert self.result is not None  # `body` has been traced
        return wrap(values.pack(self.result, leaves), self.result)


def _is_lane_value(value: Any) -> bool:
    return isinstance(value, (Weak, tf.Tensor, tf.Variable)) or hasattr(value, "__array__")


def _parts(value: Any) -> list[Any]:
    """The leaves of a structure of any kind."""
    return tf.nest.flatten(value) if not isinstance(value, (Weak, tf.Variable)) else [value]


# -- the user's batched form -------------------------------------------------------------------------------------------


def _batched_body(call: Call, batched: Callable[..., Any], shared: frozenset[str]) -> Body:
    """`batched` from leaves (`[lanes, ...]`, but for shared arguments) to leaves, its results checked."""

    def body(lanes: tf.Tensor, *leaves: tf.Tensor) -> list[tf.Tensor]:
        bound = call.arguments(leaves, wrapped=False)
        for name, value in bound.arguments.items():
            if name not in call.types and name not in shared:
                bound.arguments[name] = tf.nest.map_structure(lambda part: _repeated(part, lanes), value)
        try:
            value = batched(*bound.args, **bound.kwargs)
        except PieceRefusalError:
            raise
        except Exception as error:
            raise PieceRefusalError(
                "PCB412",
                f"the batched form of `{call.name}` failed: {error_messages.reason(error)}",
                "every argument has a leading lane axis there, unless `shared=` names it",
            ) from error
        return _checked(call, value, lanes)

    return body


def _repeated(value: Any, lanes: tf.Tensor) -> Any:
    """Repeat a number for all lanes; return other values (an option, a function) as they are."""
    if is_number(value) or isinstance(value, bool):
        return tf.fill([lanes], tf.constant(value))
    return value


def _checked(call: Call, value: Any, lanes: tf.Tensor) -> list[tf.Tensor]:
    """Return the leaves of the batched form's result; PieceRefusalError PCB411 where they differ from `fn`'s."""
    assert call.result is not None
    wanted = list(leaf_types(call.result))
    axis = tf.get_static_value(lanes)

    def refusal(gives: str) -> PieceRefusalError:
        expected = ", ".join(f"{t.dtype}[{', '.join(map(str, ('lanes', *t.shape)))}]" for t in wanted)
        return PieceRefusalError(
            "PCB411",
            f"the batched form of `{call.name}` gives {gives}, not {expected}",
            f"give what `{call.name}` gives for one example, which is {call.result}, with a leading lane axis",
        )

    try:
        leaves = [tf.convert_to_tensor(leaf) for leaf in values.flatten(call.result, value)]
    except (TypeError, ValueError, KeyError, AttributeError):
        raise refusal(f"another structure ({type(value).__name__})") from None
    for leaf, type_ in zip(leaves, wanted, strict=True):
        shape = tf.TensorShape([axis, *type_.shape])
        if leaf.dtype.name != type_.dtype or not leaf.shape.is_compatible_with(shape):
            raise refusal(", ".join(f"{each.dtype.name}{_shown(each.shape)}" for each in leaves))
        leaf.set_shape(shape)
    return leaves


def _shown(shape: tf.TensorShape) -> str:
    return "[..]" if shape.rank is None else f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _refuse_shared(call: Call) -> Callable[[int | None], PieceRefusalError]:
    """Return the error for a leaf at a place (None: something captured) that differs by lane and must not."""

    def refusal(place: int | None) -> PieceRefusalError:
        if place is None:
            return PieceRefusalError(
                "PCB413",
                f"`{call.name}` reads a value from around it that differs by lane, which its batched form cannot see",
                "pass it as an argument",
            )
        return PieceRefusalError(
            "PCB413",
            f"the argument `{call.leaf_names[place]}` of `{call.name}`, which is declared shared, differs by lane",
            f"take it out of `shared=`; the batched form of `{call.name}` then gets it with a lane axis",
        )

    return refusal


# -- calls of batched functions ----------------------------------------------------------------------------------------


Arguments = Mapping[str, Any]


class Program(Protocol):
    """A batched function as compiled for some arguments."""

    @property
    def result_type(self) -> Type:
        """The type of its result for one example."""

    @property
    def captured(self) -> list[Any]:
        """The arrays that it captures, and variables."""

    @property
    def can_fail(self) -> bool:
        """True if a lane of it may fail."""

    def state(self) -> tuple[Any, ...]:
        """A snapshot of the program and of the arrays that it captures, to be compared with a later one."""


class Callee(Protocol):
    """A batched function, as it is run for the lanes of a piece."""

    function: Any
    """The batched function itself."""
    static_argnames: tuple[str, ...]

    def program(self, arguments: Arguments, axes: Arguments) -> Program:
        """Return its program for arguments with such axes."""

    def run_batch(self, arguments: Arguments, axes: Arguments) -> tuple[Any, Any]:
        """The results for a batch, and a mask of the lanes that have not failed, bool `[lanes]`."""


def run(function: Any, *arguments: Any, site: int, **keywords: Any) -> Any:
    """Return what a batched function gives for the lane of the piece that is traced; a fault where it fails."""
    arguments = tuple(tf.convert_to_tensor(each) if isinstance(each, tf.Variable) else each for each in arguments)
    value, fine = function.as_operation(arguments, keywords)
    if fine is not None:
        fault(~fine, site)
    return value


def call_batched(callee: Callee, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, tf.Tensor | None]:
    """`callee(*args, **kwargs)` for the lane of the piece that is traced, and whether the lane has not failed there.

    The latter is None where no lane can fail.
    PieceRefusalError PCB405 inside a function that TensorFlow calls, PCB413 where the callee reads from around it what
    differs by lane.
    """
    name = callee.function.__name__
    is_run = tf.executing_eagerly()  # for this lane alone, by the reference
    if not can_fault() or not (is_run or custom_vectorised_ops.is_tracing_lane()):
        raise PieceRefusalError(
            "PCB405",
            f"the batched function `{name}` is called inside a function that TensorFlow runs by itself",
            "call it outside of tf.map_fn, tf.scan, tf.while_loop, tf.cond, tf.vectorized_map and tf.function: a loop "
            "of calls can be a batched function of its own",
        )
    call = Call(callee.function, args, kwargs, static=frozenset(callee.static_argnames))
    given = _with_leaves(call, [*map(_row, call.leaves)])
    axes = _axes(call, [tf.is_tensor(leaf) for leaf in _leaves_of(call, given)])
    program = callee.program(given, axes)
    if any(map(_is_of_lane, program.captured)):
        raise PieceRefusalError(
            "PCB413",
            f"`{name}` reads a value from around it that differs by lane, or by which a gradient is taken",
            "pass it as an argument",
        )
    pieces.note(program.state)
    call.result = program.result_type
    results = [*leaf_types(call.result)]

    def one(*_: tf.Tensor) -> list[tf.Tensor]:
        return [*(tf.zeros(each.shape, each.dtype) for each in results), tf.constant(True)]

    def batch(varies: Sequence[bool], *leaves: tf.Tensor) -> list[tf.Tensor]:
        assert call.result is not None
        value, fine = callee.run_batch(_with_leaves(call, leaves), _axes(call, varies))
        return [*map(tf.convert_to_tensor, values.flatten(call.result, value)), fine]

    if is_run:
        *found, fine = (each[0] for each in batch([True] * len(call.leaves), *map(_row, call.leaves)))
        return call.pack(found), fine if program.can_fail else None
    watched = [place for place, leaf in enumerate(call.leaves) if private.is_watched([leaf])]
    *found, fine = custom_vectorised_ops.call(
        one, call.leaves, custom_vectorised_ops.Run(batch, frozenset(watched)), name
    )
    return call.pack(found), fine if program.can_fail else None


def _row(leaf: tf.Tensor) -> tf.Tensor:
    return tf.expand_dims(leaf, 0)


def _is_of_lane(array: Any) -> bool:
    if isinstance(array, tf.Variable):
        return private.is_watched([array.handle])
    return tf.is_tensor(array) and (tf.is_symbolic_tensor(array) or private.is_watched([array]))


def _with_leaves(call: Call, leaves: Sequence[tf.Tensor]) -> dict[str, Any]:
    """The arguments with `leaves` in place of their own; Python's numbers stay."""
    own = _leaves_of(call, call.bound.arguments)
    kept = [each if isinstance(each, (bool, int, float)) else leaf for each, leaf in zip(own, leaves, strict=True)]
    return dict(call.arguments(kept, wrapped=False).arguments)


def _leaves_of(call: Call, arguments: Arguments) -> list[Any]:
    """The leaves of arguments of the call that have some of a lane."""
    return [leaf for name, type_ in call.types.items() for leaf in values.flatten(type_, arguments[name])]


def _axes(call: Call, varies: Sequence[bool]) -> dict[str, Any]:
    """The axes of all arguments: 0 for the leaves that differ by lane."""
    remaining = iter(varies)

    def axes(type_: Type) -> Any:
        if not isinstance(type_, StructType):
            return 0 if next(remaining) else None
        parts = [axes(item) for item in type_.items]
        return dict(zip(type_.keys, parts, strict=True)) if type_.keys else tuple(parts)

    found = {name: axes(type_) for name, type_ in call.types.items()}
    return {name: found.get(name) for name in call.bound.signature.parameters}
