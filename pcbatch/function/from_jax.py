"""Functions of JAX in batched functions and as densities: `pcbatch.from_jax`."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakSet

from pcbatch.errors import UsageError
from pcbatch.function.primitives import primitive
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.interop import home_of

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
