"""Opaque functions with a batched form of their own, and single calls that are looped over the lanes.

Both take a function of one example and give one that acts the same in plain Python. The difference is in a batched
function, where the first says how a whole batch is computed and the second that the lanes be computed one by one.

`pcbatch.from_jax` makes primitives, and densities, of functions of JAX.
"""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, overload
from weakref import WeakSet

from pcbatch.errors import UsageError
from pcbatch.function.batched import Batched
from pcbatch.function.user_code import NOT_FOR_AUTOGRAPH
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.interop import home_of

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


# -- functions of JAX --------------------------------------------------------------------------------------------------


_results: WeakSet[Any] = WeakSet()
_OF_JAX = ("jax", "jaxlib")


def from_jax(fn: Callable[..., Any], *, shared: Sequence[str] = ()) -> Callable[..., Any]:
    """A function of JAX, for one example, that batched functions call as one operation.

    JAX batches it by `jax.vmap` and differentiates it, so it may do whatever JAX transforms: `jax.lax.while_loop`,
    `jax.scipy`, a network of Flax. It compiles together with what is around it.

    Arguments:
        fn: a function of arrays of JAX, numbers and structures of these, for one example; pure. What else it depends
            on, such as an axis or a size, is fixed: `functools.partial(f, axis=0)`.
        shared: names of parameters that are the same for all lanes, such as the weights of a network: they are not
            repeated for each lane. A call whose argument for one of them differs by lane is refused (PCB413).

    Returns:
        A function that is called like `fn`: with tensors, lanes' values or NumPy's arrays it gives tensors; with arrays
        of JAX it is `fn`. Numbers of 64 bits need `jax_enable_x64`. Asked for the same function again this gives the
        same one.

    Raises:
        UsageError: PCB410 where `fn` is no function or `shared` names no parameter; PCB583 where JAX is not installed.
        PrimitiveError: when a batched function that calls it is compiled: PCB401 where JAX cannot trace `fn`, PCB412
            where it cannot batch it, PCB440 where TensorFlow's XLA cannot compile it.
    """
    try:
        import jax
        from jax.experimental import jax2tf
    except ImportError as error:
        raise UsageError("PCB583", f"from_jax needs JAX, which is not here ({error}); pip install jax") from None
    try:
        names = tuple(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        raise UsageError("PCB410", f"from_jax takes a function, not {fn!r}") from None
    if isinstance(shared, str) or any(name not in names for name in shared):
        raise UsageError("PCB410", f"shared={shared!r} must be a tuple of names of parameters: {', '.join(names)}")
    try:
        return _made(jax.vmap, jax2tf.convert, fn, frozenset(shared))
    except TypeError:  # a callable object that has no hash
        return _made.__wrapped__(jax.vmap, jax2tf.convert, fn, frozenset(shared))


@functools.lru_cache(maxsize=64)
def _made(vmap: Any, convert: Any, fn: Callable[..., Any], shared: frozenset[str]) -> Callable[..., Any]:
    """Derive something from a function, once, so that it is compiled once, too."""
    backend, signature = backend_named("tensorflow"), inspect.signature(fn)

    def converted(function: Callable[..., Any], **how: Any) -> Any:
        platforms = ("cuda",) if backend.place() == "GPU" else ("cpu",)
        return convert(function, native_serialization_platforms=platforms, **how)

    @functools.wraps(fn)
    def one(*args: Any, **kwargs: Any) -> Any:
        if home_of((*args, *kwargs.values())) == "jax":
            return fn(*args, **kwargs)
        from pcbatch.runtime.backends.tensorflow.opaque import as_tensors

        return converted(fn)(*as_tensors(args), **as_tensors(kwargs))

    def batched(*args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(*args, **kwargs).arguments)
        axes = {name: None if name in shared else 0 for name in given}
        shapes = {name: None if name in shared else "lanes, ..." for name in given}

        def whole(given: dict[str, Any]) -> Any:
            bound = inspect.BoundArguments(signature, OrderedDict(given))
            return fn(*bound.args, **bound.kwargs)

        return converted(vmap(whole, in_axes=(axes,)), polymorphic_shapes=[shapes])(given)

    one.__signature__ = signature  # type: ignore[attr-defined]
    made = primitive(one, batched, shared=tuple(shared))
    _results.add(made)
    return made


def is_of_jax(function: Any) -> bool:
    """Return whether a function is one of JAX: made by `jax.jit`, or one whose code names JAX and no TensorFlow."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, FunctionType) and function in _results:
        return False
    if _root(type(function)) in _OF_JAX:
        return True
    roots = _roots(function, set())
    return not roots.isdisjoint(_OF_JAX) and "tensorflow" not in roots


def _roots(function: Any, seen: set[Any]) -> set[str]:
    """The packages that a function's code names, and the functions of the same module that it calls."""
    if not isinstance(function, FunctionType) or function in seen:
        return set()
    seen.add(function)
    found = {_root(value) for value in _read(function)}
    for value in _read(function):
        if getattr(value, "__module__", None) == function.__module__:
            found |= _roots(value, seen)
    return found


def _root(value: Any) -> str:
    """The package that something is of."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return module.split(".")[0] if isinstance(module, str) else ""


def _read(function: FunctionType) -> Iterator[Any]:
    """Yield the values around a function of the names in its code."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def names(code: CodeType) -> Iterator[str]:
        yield from (*code.co_names, *code.co_freevars)
        for each in code.co_consts:
            if isinstance(each, CodeType):
                yield from names(each)

    for name in names(function.__code__):
        if name in cells:
            try:
                yield cells[name].cell_contents
            except ValueError:  # not bound yet
                continue
        elif name in function.__globals__:
            yield function.__globals__[name]
