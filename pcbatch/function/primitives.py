"""Opaque functions with a batched form of their own, and single calls that are looped over the lanes.

Both take a function of one example and give one that acts the same in plain Python. The difference is in a batched
function, where the first says how a whole batch is computed and the second that the lanes be computed one by one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from pcbatch.errors import UsageError
from pcbatch.function.batched import Batched
from pcbatch.function.traceback_filter import NOT_FOR_AUTOGRAPH

P = ParamSpec("P")
R = TypeVar("R")


@overload
def primitive(
    fn: None = None, batched: Callable[..., Any] | None = None, *, shared: Sequence[str] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@overload
def primitive(
    fn: Callable[P, R], batched: Callable[..., Any] | None = None, *, shared: Sequence[str] = ()
) -> Callable[P, R]: ...
def primitive(
    fn: Callable[..., Any] | None = None, batched: Callable[..., Any] | None = None, *, shared: Sequence[str] = ()
) -> Callable[..., Any]:
    """A function of one example that batched functions call as one opaque operation.

    Use it with `batched` where TensorFlow has no rule for what `fn` does, or where you know a better one. Usable as a
    call, as a bare decorator, and as a decorator with options.

    Arguments:
        fn: a function of one example: tensors, numbers and structures of these in, tensors of static shape or
            structures of these out. It runs as it is in plain Python and in `f.single`; in batched functions it is
            traced once for the types of its results, and must be pure.
        batched: the same for a whole batch. It is called like `fn`, each tensor and number with a leading lane axis:
            `[lanes]` for a number (int32 or float32 if it is a Python number or a counter), `[lanes, 3]` for a vector
            of 3; a value that is the same in all lanes is repeated.
            It gives the structure that `fn` gives with a leading lane axis on every leaf, each row computed from that
            lane's row alone, and must not raise for any values: some lanes may be junk. Without it the call is batched
            by TensorFlow's rules.
        shared: names of parameters that `batched` gets exactly as `fn` does, without a lane axis, such as a big
            matrix or an option; a call whose argument for one of them differs by lane is refused.

    Returns:
        A function that is called like `fn`. Gradients inside a batched function are those of `batched`, for shared
        arguments and captured variables those of `fn`.

    Raises:
        UsageError: PCB410 where `fn` or `batched` is not a function of the user's or `shared` names no parameter.
        PrimitiveError: when a batched function that calls it is compiled: PCB411 where `batched` gives other shapes
            or dtypes than `fn`, PCB412 where it fails, PCB413 where a shared argument differs by lane.

    >>> import pcbatch, tensorflow as tf
    >>> @pcbatch.primitive(batched=lambda rows: tf.map_fn(lambda row: tf.size(tf.unique(row).y), rows, tf.int32))
    ... def distinct(row):
    ...     return tf.size(tf.unique(row).y)
    >>> @pcbatch.autobatch(jit=False)
    ... def f(row):
    ...     return distinct(row) * 10
    >>> print(f([[1, 2, 1], [3, 3, 3]]).numpy())
    [20 10]
    """
    if fn is None:
        return functools.partial(primitive, batched=batched, shared=shared)
    names = _parameters(fn, "primitive")
    if batched is not None:
        _parameters(batched, "the batched form of a primitive")
    unknown = [name for name in shared if name not in names]
    if isinstance(shared, str) or unknown:
        raise UsageError("PCB410", f"shared={shared!r} must be a tuple of names of parameters of {_name(fn)}")

    @functools.wraps(fn)
    def opaque(*args: Any, **kwargs: Any) -> Any:
        from pcbatch.runtime.backends.tensorflow.opaque import call_primitive

        return call_primitive(fn, batched, frozenset(shared), args, kwargs)

    return _registered(opaque)


def fallback(fn: Callable[P, R]) -> Callable[P, R]:
    """A function whose calls are computed for one lane after the other, where TensorFlow has no rule for a whole batch.

    What has no rule runs lane after lane by itself, for the lanes that take part; this is for what has one that you do
    not want. It costs a loop: every call takes the time of one example times the number of lanes, junk lanes included,
    and nothing in it runs in parallel. Prefer `pcbatch.primitive` with a batched form where you can write one. What XLA
    cannot compile (`tf.linalg.lu`) it cannot compile in a loop either: such calls need `jit=False`.

    Arguments:
        fn: a function of one example: tensors, numbers and structures of these in, tensors of static shape or
            structures of these out. It must be pure.

    Returns:
        A function that is called like `fn`; gradients inside a batched function are looped over the lanes too.

    Raises:
        UsageError: PCB410 where `fn` is not a function, or a batched one.

    >>> import pcbatch, tensorflow as tf
    >>> @pcbatch.autobatch(jit=False)
    ... def distinct(row):
    ...     return pcbatch.fallback(lambda numbers: tf.size(tf.unique(numbers).y))(row)
    >>> print(distinct([[1, 2, 1], [3, 3, 3]]).numpy())
    [2 1]
    """
    _parameters(fn, "fallback")

    @functools.wraps(fn)
    def looped(*args: Any, **kwargs: Any) -> Any:
        from pcbatch.runtime.backends.tensorflow.opaque import call_fallback

        return call_fallback(fn, args, kwargs)

    return _registered(looped)


def _registered(function: Callable[..., Any]) -> Callable[..., Any]:
    vars(function).update(NOT_FOR_AUTOGRAPH)
    return function


def _parameters(fn: Any, what: str) -> tuple[str, ...]:
    """The names of the parameters of `fn`."""
    if isinstance(fn, Batched):
        raise UsageError("PCB410", f"{what} takes a function of one example, not the batched {fn.__name__}")
    try:
        return tuple(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        raise UsageError("PCB410", f"{what} takes a Python function, not {fn!r}") from None


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", repr(fn))
