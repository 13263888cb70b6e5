"""Gradients: code that takes them, their way through a run, and errors where there are none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from itertools import chain
from types import CodeType, FunctionType
from typing import Any

import tensorflow as tf

from pcbatch.errors import GradientError, PieceRefusalError
from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.protocol import Further, PullBack
from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, private
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors
from pcbatch.runtime.backends.tensorflow.weak import Weak

# -- gradients ---------------------------------------------------------------------------------------------------------

TAPES = (tf.GradientTape, tf.autodiff.ForwardAccumulator)


def takes_gradients(value: Any) -> bool:
    """Return whether `value` is one of TensorFlow's tapes, or a function whose code names one."""
    if isinstance(value, FunctionType):
        return _names_tape(value.__code__)
    return any(value is tape for tape in TAPES)


def _names_tape(code: CodeType) -> bool:
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return any(tape.__name__ in code.co_names for tape in TAPES) or any(map(_names_tape, inside))


Again = Callable[[dict[int, tf.Tensor], Sequence[tf.Tensor | None], Sequence[tf.Tensor]], tuple[list[Any], list[Any]]]
"""The gradients of a pull back by what comes back, by place, and by arrays, from those of its results.

Its inputs are given to it anew, as tensors of the graph of the pull back.
"""

_taping: ContextVar[bool] = ContextVar("taping", default=False)

GOES_ON = (
    "the variable itself goes on to where only its value is known, which a gradient tape there takes for another tensor"
)
A_VALUE_OF_ITS_OWN = "let the code there read the variable from around it; or make a value of its own: tf.identity(..)"


@contextlib.contextmanager
def taping(tapes: bool) -> Iterator[None]:
    """The code traced inside belongs to a program that may have tapes, or that has none."""
    token = _taping.set(tapes)
    try:
        yield
    finally:
        _taping.reset(token)


def refuse_variables(leaves: Iterable[Any]) -> None:
    """PieceRefusalError PCB415 if one of `leaves`, of which something else is made, is a variable, and may be taped."""
    if _taping.get() and any(isinstance(leaf, tf.Variable) for leaf in leaves):
        raise PieceRefusalError("PCB415", GOES_ON, A_VALUE_OF_ITS_OWN)


_apart: ContextVar[bool] = ContextVar("apart", default=False)
"""True while `differentiable` runs the code and defines its gradient."""
_saved: ContextVar[bool] = ContextVar("saved", default=False)
"""True while a backward pass is traced only to be saved."""


def seal(function: Any, name: str | None = None) -> Callable[..., Any]:
    """The traced function `function(*tensors) -> list of tensors`, whose gradient raises GradientError PCB601.

    `variables` that the function captures take part like its arguments. Without a name no tape sees it.
    """
    if name is None:
        return unseen(function)
    error = GradientError(
        f"PCB601: a gradient through a run of {name!r} was asked for that has none: in slices (progress, resume), "
        f"or in forward mode\n  help: take it with tf.GradientTape around a call without these options, or keep it "
        f"from flowing through the call with tf.stop_gradient(...)"
    )

    def sealed(*arrays: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
        def no_gradient(*upstream: tf.Tensor, variables: Any = None) -> Any:
            found = refused(error, [*arrays, *(variables or ())])
            return found if variables is None else (found[: len(arrays)], found[len(arrays) :])

        if tf.executing_eagerly() and private.has_tangents(arrays):  # it would follow what is traced now, too
            raise error
        run = function.ready(arrays)  # outside of the pause: tapes inside pieces must record
        # Without this pause a tape builds the gradient of the machine's loop at once, which fails even if nobody asks
        # for it.
        with private.unrecorded():
            outputs = run()
        return list(outputs), no_gradient

    if tf.executing_eagerly() and not private.may_record():
        return function  # there is no tape that could ask, and sealing costs each call 0.3 ms
    return unseen(function) if _apart.get() else tf.custom_gradient(sealed)


def unseen(function: Any) -> Callable[..., Any]:
    """The traced function called so that no tape sees it, whatever variables it reads."""

    def call(*arrays: tf.Tensor) -> list[tf.Tensor]:
        run = function.ready(arrays)  # outside of the pause: tapes inside pieces must record
        with private.unrecorded():
            outputs = list(run())
        if tf.executing_eagerly():
            return outputs
        # TensorFlow would vectorise what runs here for a Jacobian around a `tf.function`, and derive it for a second
        # tape there, for nothing: it knows how to do neither.
        custom_vectorised_ops.let_repeat(outputs)
        return [*map(tf.stop_gradient, outputs)]

    return call


def differentiable(
    function: Callable[[list[tf.Tensor]], tuple[Sequence[tf.Tensor], PullBack]],
    arrays: Sequence[tf.Tensor],
    name: str,
    further: Further | None = None,
) -> list[tf.Tensor]:
    """See `control.Control.differentiable`."""
    floats = [place for place, array in enumerate(arrays) if _has_gradient(array)]
    others: dict[int, tf.Tensor] = {}
    count = 0

    def run(*given: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
        nonlocal count
        unwatched = list(arrays)
        for place, array in zip(floats, given, strict=True):
            # In ordinary code no tape sees what runs here, and this would cost each call 20 us an array.
            unwatched[place] = array if tf.executing_eagerly() else tf.stop_gradient(array)
        token = _apart.set(True)
        try:
            outputs, pull_back = function(unwatched)
            if further is not None and further.run is not None and is_vectorized():
                outputs = custom_vectorised_ops.repeated(_in_runs(further.run), unwatched, further.count)
        finally:
            _apart.reset(token)
        count = len(outputs)
        others.update((place, output) for place, output in enumerate(outputs) if not _has_gradient(output))

        def gradient(*upstream: tf.Tensor | None, variables: Any = None) -> Any:
            flowing = [place for place in range(count) if place not in others]
            by_place = dict(zip(flowing, upstream, strict=False))
            is_kept = _saved.set(is_saved())

            def again(
                seeds: dict[int, tf.Tensor], ways: Sequence[tf.Tensor | None], every: Sequence[tf.Tensor]
            ) -> tuple[list[Any], list[Any]]:
                assert further is not None
                directions, sources = [None] * len(every), [every[place] for place in floats]
                for place, array, way in zip(floats, sources, ways, strict=True):
                    directions[place] = tf.zeros_like(array) if way is None else way
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(sources)
                    changes = further.tangents(every, directions)
                    targets = [changes[place] for place in seeds]
                return targets, tape.gradient(targets, sources, list(seeds.values()))

            def pulled(seeds: dict[int, tf.Tensor]) -> Sequence[tf.Tensor | None]:
                every = [seeds.get(n) for n in range(count)]
                if further is None or not is_vectorized():
                    return pull_back(every)
                tensors = list(arrays)
                for place, array in zip(floats, given, strict=True):
                    tensors[place] = tf.stop_gradient(array)
                return _many_pulled(further, tensors, every)

            try:
                every = [*arrays]
                for place, array in zip(floats, given, strict=True):
                    every[place] = array
                found = _pulled_back(pulled, by_place, every, floats, name, None if further is None else again)
            except GradientError as error:
                found = refused(error, every)
            finally:
                _saved.reset(is_kept)
            wanted = [found[place] for place in floats]
            # What the program reads of variables it is given as an argument.
            return wanted if variables is None else (wanted, [None for _ in variables])

        flowing = [output for place, output in enumerate(outputs) if place not in others]
        return flowing or [tf.zeros([])], gradient  # TensorFlow asks for one at least

    if not floats:
        return list(function(list(arrays))[0])
    given = [arrays[place] for place in floats]
    told = tf.executing_eagerly() and private.records()
    watched = iter(_told(run, given, name) if told else tf.custom_gradient(run)(*given))
    return [others[place] if place in others else next(watched) for place in range(count)]


def is_vectorized() -> bool:
    """Return whether operations are made in the loop of a `tf.vectorized_map`, or of a Jacobian."""
    return not tf.executing_eagerly() and private.in_vectorized_map(tf.get_current_name_scope())


def _many_pulled(
    further: Further, arrays: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor | None]
) -> list[tf.Tensor | None]:
    """A pull back as one operation, of which many are vectorised as one of as many lanes."""
    places = [place for place, each in enumerate(upstream) if each is not None]
    seeds = [each for each in upstream if each is not None]
    of_lanes, of_all = list(arrays[: further.count]), list(arrays[further.count :])

    def many(tensors: Sequence[tf.Tensor], runs: Any) -> list[tf.Tensor | None]:
        rows = iter(tensors)
        lanes, known = [next(rows) for _ in of_lanes], dict(zip(places, rows, strict=False))
        shared = list(tensors[len(of_lanes) + len(places) :])
        coming = [known.get(place) for place in range(len(upstream))]
        found = _in_runs(further.pull_back)([*lanes, *shared], coming, runs)
        return [
            each if each is None or place < further.count else tf.reduce_sum(each, axis=1)
            for place, each in enumerate(found)
        ]

    return custom_vectorised_ops.repeated(many, [*of_lanes, *seeds, *of_all], len(of_lanes) + len(seeds))


def _in_runs(many: Callable[..., list[tf.Tensor | None]]) -> Callable[..., list[tf.Tensor | None]]:
    """`many`, whose last argument is a number of runs, with results `[runs, lanes, ...]`, not `[runs * lanes, ...]`."""

    def run(*given: Any) -> list[tf.Tensor | None]:
        return [None if each is None else _by_run(each, given[-1]) for each in many(*given)]

    return run


def _by_run(array: tf.Tensor, runs: Any) -> tf.Tensor:
    return tf.reshape(array, tf.concat([[runs, tf.shape(array)[0] // runs], tf.shape(array)[1:]], 0))


def _told(run: Callable[..., Any], given: Sequence[tf.Tensor], name: str) -> list[tf.Tensor]:
    """Call `run` on eager tensors, and record its gradient on the tapes.

    As `tf.custom_gradient` does it, which looks at signatures, structures and variables first, for 0.2 ms.
    """
    outputs, gradient = run(*given)
    known = set(map(id, given))
    outputs = [tf.identity(each) if id(each) in known else each for each in outputs]
    private.record_as_one(name, outputs, given, gradient)
    return outputs


def _pulled_back(
    pull_back: Callable[[dict[int, tf.Tensor]], Sequence[tf.Tensor | None]],
    upstream: dict[int, tf.Tensor | None],
    arrays: Sequence[tf.Tensor],
    floats: Sequence[int],
    name: str,
    again: Again | None,
) -> list[tf.Tensor | None]:
    """`pull_back(upstream)`, whose own gradients `again` gives: by `upstream`, and by the `floats` among `arrays`.

    Without it nobody can take them.
    """
    flowing = {place: each for place, each in upstream.items() if each is not None}
    known = {
        place: each if isinstance(each, tf.Tensor) else tf.convert_to_tensor(each) for place, each in flowing.items()
    }
    if tf.executing_eagerly() and not private.may_record():
        return list(pull_back(known))
    missing: set[int] = set()
    rows: dict[int, tf.TensorShape] = {}
    count = 0

    error = GradientError(
        f"PCB604: a gradient of a gradient through the batched call of {name!r} was asked for, where it has none\n"
        f"  help: take it in ordinary code or in a tf.function, not in a saved model; or keep the second derivative "
        f"from flowing there with tf.stop_gradient(...)"
    )

    def sealed(*given: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
        nonlocal count

        def second(*upstream: tf.Tensor, variables: Any = None) -> Any:
            if again is None or is_saved():
                found = refused(error, [*given, *(variables or ())])
                return found if variables is None else (found[: len(given)], found[len(given) :])
            flat, ways = iter(upstream), dict.fromkeys(range(count))
            ways.update((n, next(flat)) for n in range(count) if n not in missing and n not in slices)
            for n, each in slices.items():
                changed, _ = next(flat), next(flat)
                if changed is not None:
                    places = tf.cast(each.indices, tf.int64)[:, None]
                    ways[n] = tf.scatter_nd(places, changed, tf.constant(each.shape.as_list(), tf.int64))
            seeds, every = dict(zip(known, given, strict=False)), given[len(known) :]
            by_upstream, by_floats = again(seeds, [ways[n] for n in floats], every)
            by_place = dict(zip(floats, by_floats, strict=True))
            found = [*by_upstream, *map(by_place.get, range(len(every)))]
            return found if variables is None else (found, [None for _ in variables])

        seeds = dict(zip(known, map(tf.stop_gradient, given), strict=False))
        found = list(pull_back(seeds))
        count = len(found)
        missing.update(place for place, each in enumerate(found) if each is None)
        slices = {n: each for n, each in enumerate(found) if isinstance(each, tf.IndexedSlices)}
        rows.update((n, each.shape) for n, each in slices.items())
        parts = [each for n, each in enumerate(found) if n not in missing and n not in slices]
        return parts + [part for each in slices.values() for part in (each.values, each.indices)], second

    inputs: list[tf.Tensor] = [*known.values(), *arrays]
    if not tf.executing_eagerly():
        # A gradient of a gradient of a `tf.function` cannot use tensors of that function, but those made of them here.
        inputs = [*map(tf.identity, inputs)]
    there = iter(tf.custom_gradient(sealed)(*inputs))
    whole = {place: next(there) for place in range(count) if place not in missing and place not in rows}
    for place, shape in rows.items():
        whole[place] = tf.IndexedSlices(next(there), next(there), tf.constant(shape.as_list(), tf.int32))
    return [whole.get(place) for place in range(count)]


def is_saved() -> bool:
    """Return whether a gradient is traced only to be saved.

    `tf.saved_model.save` traces the gradient of all that has one of its own, also if nobody asks for it. Such a trace
    begins with what flows into it; any other goes on where a computation is.
    """
    if _saved.get() or tf.executing_eagerly():
        return _saved.get()
    return all(each.type == "Placeholder" for each in tf.compat.v1.get_default_graph().get_operations())


def refused(error: Exception, arrays: Sequence[Any]) -> list[tf.Tensor | None]:
    """Raises `error`, as there are no gradients by `arrays`; where one `is_saved`, it fails when it is used."""
    if not is_saved():
        raise error
    with tf.control_dependencies([tf.raw_ops.Assert(condition=tf.constant(False), data=[tf.constant(str(error))])]):
        # Of any shape, and it fails by itself, too, where nothing waits for what raises.
        return [tf.io.parse_tensor(tf.constant(""), each.dtype) if _has_gradient(each) else None for each in arrays]


def _has_gradient(array: tf.Tensor) -> bool:
    return bool(array.dtype.is_floating or array.dtype.is_complex)


# -- tangents ----------------------------------------------------------------------------------------------------------
# Tangents of pieces: how what a piece writes changes as what it reads does, for one example.


def tangent(piece: Piece, signature: Signature) -> Callable[..., tuple[Any, ...]]:
    """See `pieces.Pieces.tangent`."""
    named = len(piece.shared) - piece.unnamed
    hidden = [piece.kept[name][0] for name in piece.shared[named:]]
    shared = signature.shared[:named]
    function = piece.compiled

    def both(*given: Any) -> tuple[Any, ...]:
        remaining = iter(given)
        reads = [next(remaining) for _ in signature.reads]
        directions = [*_tangents_of(signature.reads, remaining)]
        operands = [next(remaining) for _ in shared]
        directions += [*_tangents_of(shared, remaining), *map(_tensor, remaining)]
        graph = tf.compat.v1.get_default_graph()
        captured = [each if isinstance(each, tf.Variable) else private.capture(graph, each) for each in hidden]
        sources = [*_floats((*signature.reads, *shared), (*reads, *operands)), *captured]
        found, changes = _with_changes(lambda: function(*reads, *operands), signature.writes, sources, directions)
        return *found, *_packed(signature.writes, iter(changes))

    return both


def _with_changes(
    function: Callable[[], tuple[Any, ...]], types: Sequence[Type], sources: list[Any], directions: list[tf.Tensor]
) -> tuple[tuple[Any, ...], list[tf.Tensor]]:
    """The results of a function, and the changes of their float leaves as `sources` change in some `directions`.

    By the derivative of a gradient, which is linear in what comes back: so custom gradients have their say.
    """
    with tf.GradientTape(watch_accessed_variables=False) as outer:
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(sources)
            results = function()
            every = [leaf_tensors(result, type_) for result, type_ in zip(results, types, strict=True)]
            floats = [leaf for leaf in chain(*every) if leaf.dtype.is_floating]
        seeds = [tf.zeros_like(each) for each in floats]
        outer.watch(seeds)
        gradients = inner.gradient(floats, sources, seeds)
        gradients = [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices) else each for each in gradients]
    pairs = [(each, way) for each, way in zip(gradients, directions, strict=True) if each is not None]
    if not pairs:
        return results, [tf.zeros_like(each) for each in floats]
    changes = outer.gradient(
        [each for each, _ in pairs], seeds, [way for _, way in pairs], tf.UnconnectedGradients.ZERO
    )
    return results, [tf.convert_to_tensor(each) for each in changes]


def _tensor(value: Any) -> tf.Tensor:
    return value.value if isinstance(value, Weak) else value


def _floats(types: Sequence[Type], given: Sequence[Any]) -> Iterator[Any]:
    """The float leaves of values, as a tape knows them."""
    for type_, value in zip(types, given, strict=True):
        for leaf, each in zip(leaf_types(type_), values.flatten(type_, value), strict=True):
            if tf.as_dtype(leaf.dtype).is_floating:
                yield _tensor(each)


def _tangents_of(types: Sequence[Type], remaining: Iterator[Any]) -> Iterator[tf.Tensor]:
    """The tangents of the float leaves of values of such types, which come next."""
    for type_ in types:
        count = sum(tf.as_dtype(leaf.dtype).is_floating for leaf in leaf_types(type_))
        if count:
            found = next(remaining)
            yield from map(_tensor, [found] if isinstance(type_, TensorType) else found)


def _packed(types: Sequence[Type], changes: Iterator[tf.Tensor]) -> Iterator[Any]:
    for type_ in types:
        floats = [next(changes) for leaf in leaf_types(type_) if tf.as_dtype(leaf.dtype).is_floating]
        if floats:
            yield floats[0] if isinstance(type_, TensorType) else tuple(floats)
