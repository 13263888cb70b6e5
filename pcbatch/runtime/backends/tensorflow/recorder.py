"""Faults of checked operations while a piece is traced: which check fails first, and when it counts."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private

# -- recorder ----------------------------------------------------------------------------------------------------------


class Recorder:
    """The checks of one example, in the order in which Python evaluates them.

    `sites` are the fault sites that were checked.
    """

    def __init__(self) -> None:
        self.sites: set[int] = set()
        self.failures: list[tf.Tensor] = []
        """Scalar bools: whether each check in turn fails, if evaluation gets there."""
        self._checked: list[int] = []
        self._path: list[tf.Tensor] = []
        self._place = _place()

    def fault(self, bad: Any, site: int) -> None:
        """Note that the lane fails at `site` where the scalar `bad` holds, if evaluation gets here at all.

        A negative site is that of a check that holds whenever it is made.

        Raises TypeError inside a function that TensorFlow runs by itself, such as the body of a `tf.while_loop`.
        """
        if site < 0:
            return
        if not self.can_fault():
            raise TypeError(
                "a //, % or a[i] that can fail cannot be checked inside a function that TensorFlow calls (tf.cond, "
                "tf.while_loop, tf.map_fn, tf.vectorized_map, tf.function); write Python's if, while or for instead"
            )
        self.sites.add(site)
        bad = tf.convert_to_tensor(bad)
        for condition in self._path:
            bad = bad & condition
        self.failures.append(bad)
        self._checked.append(site)

    def can_fault(self) -> bool:
        """Return whether `fault` works here."""
        graph, scope = _place()
        return graph is self._place[0] and not private.in_vectorized_map(scope[len(self._place[1]) :])

    @contextlib.contextmanager
    def when(self, condition: tf.Tensor) -> Iterator[None]:
        """Faults noted inside count only where the scalar `condition` holds."""
        self._path.append(condition)
        try:
            yield
        finally:
            self._path.pop()

    def site(self) -> tf.Tensor:
        """int32 scalar: the first failed fault site plus one, or 0."""
        found = tf.constant(0)
        for bad, site in zip(reversed(self.failures), reversed(self._checked), strict=True):
            found = tf.where(bad, site + 1, found)
        return found


_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
_conversions: list[tuple[tuple[type, ...], Callable[..., Any]]] = []
"""The arguments of all calls of `convert_first`."""


def _place() -> tuple[Any, str]:
    """Return the destination of new operations: the graph (None if they run at once) and the name scope.

    TensorFlow traces `tf.vectorized_map` in the graph that it finds, but under a scope called "loop_body".
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    return graph, tf.get_current_name_scope()


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Collect the faults of the checked operations that are traced inside."""
    recorder = Recorder()
    with contextlib.ExitStack() as stack:
        for types, conversion in _conversions if _current.get() is None else ():
            stack.enter_context(private.asked_first(types, conversion))
        token = _current.set(recorder)
        try:
            yield recorder
        finally:
            _current.reset(token)


def convert_first(types: tuple[type, ...], conversion: Callable[..., Any]) -> None:
    """Ask `conversion` before TensorFlow makes tensors of values of `types`, while a piece is traced or run."""
    _conversions.append((types, conversion))


def is_recording() -> bool:
    """Return whether a piece is being traced, or run at once."""
    return _current.get() is not None


def can_fault() -> bool:
    """Return whether a piece is traced, and `fault` works here."""
    recorder = _current.get()
    return recorder is not None and recorder.can_fault()


def fault(bad: Any, site: int) -> None:
    """`Recorder.fault` of the piece that is being traced; RuntimeError outside of one."""
    recorder = _current.get()
    if recorder is None:
        raise RuntimeError("a checked operation outside of recording()")
    recorder.fault(bad, site)


def when(condition: tf.Tensor) -> contextlib.AbstractContextManager[None]:
    """`Recorder.when` of the piece that is being traced, if there is one."""
    recorder = _current.get()
    return contextlib.nullcontext() if recorder is None else recorder.when(condition)


# -- op interception ---------------------------------------------------------------------------------------------------
# The meaning of TensorFlow's own operators in users' helpers, where it differs from Python's.
#
# A helper runs as it was written, so its operators are TensorFlow's. `flag * 0.5` makes bools of both and gives one:
# that is refused, and the helper made part of the program, where operators are ours. `a[i]` out of range gives another
# element under XLA, and `n // 0` gives -1: so what Python raises for is checked where TensorFlow makes the operation,
# and, of numbers of Python's own, where `Weak` does.

_sites: ContextVar[tuple[int, int] | None] = ContextVar("sites", default=None)
"""The fault sites of the running helper: for a division, and for an index."""


def checking(function: Callable[..., Any], division: int, index: int) -> Callable[..., Any]:
    """Return `function` with Python's errors in it as the lane's faults at these sites."""

    def checked(*arguments: Any, **options: Any) -> Any:
        token = _sites.set((division, index))
        try:
            return function(*arguments, **options)
        finally:
            _sites.reset(token)

    return checked


def divisor(y: tf.Tensor) -> tf.Tensor:
    """The scalar by which a helper divides a number of Python's own, with 1 for 0, which fails the lane."""
    return _sound(y, y, lambda y: y == 0, 1)


def not_negative(y: tf.Tensor) -> tf.Tensor:
    """The scalar int by which a helper shifts an int of Python's own, or its exponent; negative ones fail the lane."""
    return _sound(y, y, lambda y: y < 0, 0)


def base(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """The scalar float that a helper raises to the power `y`, with 1 for 0 of which there is none: the lane fails."""
    exponent = tf.get_static_value(y)
    if exponent is not None and exponent >= 0:
        return x
    return _sound(x, tf.where(y < 0, x, tf.ones_like(x)), lambda x: x == 0, 1)


def _sound(x: tf.Tensor, checked: tf.Tensor, is_bad: Callable[[Any], Any], instead: int) -> tf.Tensor:
    """Return `x`, or another number where the `checked` condition is bad."""
    sites, known = _sites.get(), tf.get_static_value(checked)
    if sites is None or not can_fault() or (known is not None and not is_bad(known)):
        return x
    bad = is_bad(checked)
    fault(bad, sites[0])
    return tf.where(bad, tf.constant(instead, x.dtype), x)


def watch(kind: str, inputs: Sequence[tf.Tensor], attributes: Mapping[str, Any]) -> Sequence[tf.Tensor]:
    """The inputs of an operation of type `kind` that is made while a piece is traced; TypeError for `flag * x`.

    What fails is a fault of the lane, and the operation gets inputs that do not.
    """
    if kind == "Cast" and private.in_product_of_bool():
        raise TypeError("TensorFlow's product of a bool and a number is a bool; write tf.cast(flag, x.dtype) * x")
    check = _CHECKS.get(kind)
    sites = _sites.get()
    if check is None or sites is None or not can_fault():
        return inputs
    return check(inputs, attributes, *sites)


def _divided(inputs: Sequence[tf.Tensor], attributes: Mapping[str, Any], site: int, _: int) -> Sequence[tf.Tensor]:
    x, y = inputs
    known = tf.get_static_value(y)
    if not y.dtype.is_integer or (known is not None and known.all()):
        return inputs
    zero = tf.equal(y, tf.zeros_like(y))
    fault(tf.reduce_any(zero), site)
    return x, tf.where(zero, tf.ones_like(y), y)


def _raised(inputs: Sequence[tf.Tensor], attributes: Mapping[str, Any], site: int, _: int) -> Sequence[tf.Tensor]:
    x, y = inputs
    known = tf.get_static_value(y)
    if not y.dtype.is_integer or y.dtype.is_unsigned or (known is not None and (known >= 0).all()):
        return inputs
    fault(tf.reduce_any(y < 0), site)
    return x, tf.maximum(y, 0)


def _read(inputs: Sequence[tf.Tensor], attributes: Mapping[str, Any], _: int, site: int) -> Sequence[tf.Tensor]:
    """Return the inputs of `a[1, i, :, j]` with `i` and `j` set to 0 where they are out of range."""
    array, begin, end, strides = inputs
    known = tf.get_static_value(begin, partial=True)
    if array.shape.rank is None or begin.shape.rank != 1 or (known is not None and None not in tuple(known)):
        return inputs
    masks = {name: attributes[name].i for name in ("shrink_axis_mask", "ellipsis_mask", "new_axis_mask")}
    count = begin.shape[0]
    bits = {name: [bool(mask >> place & 1) for place in range(count)] for name, mask in masks.items()}
    begins, ends = tf.unstack(begin), tf.unstack(end)
    bad: list[tf.Tensor] = []
    axis = 0
    for place in range(count):
        if bits["ellipsis_mask"][place]:
            later = sum(not new for new in bits["new_axis_mask"][place + 1 :])
            axis = array.shape.rank - later
        elif not bits["new_axis_mask"][place]:
            size = array.shape[axis]
            if bits["shrink_axis_mask"][place] and (known is None or known[place] is None) and size is not None:
                bad.append((begins[place] < -size) | (begins[place] >= size))
                begins[place] = tf.where(bad[-1], tf.zeros_like(begins[place]), begins[place])
                ends[place] = begins[place] + 1
            axis += 1
    if not bad:
        return inputs
    fault(functools.reduce(operator.or_, bad), site)
    return array, tf.stack(begins), tf.stack(ends), strides


_CHECKS = {
    "FloorDiv": _divided,
    "FloorMod": _divided,
    "Pow": _raised,
    "StridedSlice": _read,
}
"""The check for each type of operation."""
