"""Traced programs on disk: how one is kept, found, and run again without being traced.

A program that is kept, or found, runs under names that are digests of its functions (`invariants`), in the process
that has traced it, too. So XLA is given the same text in every process, and finds what it has compiled before.

Nothing depends on it: what cannot be kept runs as it was traced, and so does what fails, to fail with its own message.
"""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import (
    custom_vectorised_ops,
    flop_estimate,
    graphs,
    private,
    prompt,
    traces,
    xla_cpu,
)
from pcbatch.runtime.backends.tensorflow.invariants import (
    PULLBACK,
    NotPortableError,
    check,
    content_names,
    is_compiled,
    moved_inside,
    portable,
    rename,
)
from pcbatch.runtime.backends.tensorflow.traces import Trace, trace
from pcbatch.runtime.store import cache_session
from pcbatch.runtime.store.cache_session import Name, Store
from pcbatch.runtime.store.folder import Entry

# -- trace fingerprint -------------------------------------------------------------------------------------------------
# A digest of a piece's computation, equal in every process, by which programs are found on disk.
#
# Taken is what a trace of the piece has in the end: operations, numbers, arrays that are captured, functions that are
# called. So it tells apart whatever the user's code has read from wherever while it was traced: names around it,
# objects, files, the time.

READS = frozenset({"ReadVariableOp", "ResourceGather"})
"""Operations on the handle of a variable that become operations on its value."""


def described(piece: Piece, signature: Signature) -> str | None:
    """The digest; None where a trace for one example is not all that matters, or has something of this process.

    So it is where a function has a batched form of its own, which is Python code that runs for all lanes.
    """
    traced = trace(piece, signature.reads, signature.shared)
    return digest_of(traced, [*traced.leaves(signature.writes), *([traced.site] if traced.sites else [])])


def digest_of(traced: Trace, outputs: Sequence[tf.Tensor]) -> str | None:
    """The digest of all that a trace's graph has by now, of which these are the `outputs`; None as `described`."""
    if any(custom_vectorised_ops.batched_forms(graph) for graph in _graphs(traced.graph)):
        return None
    try:
        return hashlib.sha256(repr([*_parts(traced, outputs)]).encode()).hexdigest()
    except NotPortableError:
        return None


def content(array: Any) -> bytes:
    """The elements of an array that is captured; NotPortableError where it has none, as the handle of a variable."""
    if tf.is_symbolic_tensor(array) or array.dtype in (tf.resource, tf.variant):
        raise NotPortableError(f"it captures {array}")
    if array.dtype == tf.string:
        return bytes(tf.io.serialize_tensor(array).numpy())
    return np.ascontiguousarray(array).tobytes()


def _parts(traced: Trace, outputs: Sequence[tf.Tensor]) -> Iterator[Any]:
    whole = traced.graph.as_graph_def()
    names = content_names(whole.library.function)
    numbers = {node.name: str(number) for number, node in enumerate(whole.node)}

    def place(tensor: tf.Tensor) -> tuple[str, int]:
        return numbers[tensor.op.name], tensor.value_index

    handed = {inner.op.name for inner, _ in traced.handles}
    for node in whole.node:
        # A variable is read before the program runs, which is given its value.
        if node.op != "Placeholder" and not (node.op in READS and node.input[0].partition(":")[0] in handed):
            check(node)
        rename(node, names)
        for at, given in enumerate(node.input):
            name, _, output = given.removeprefix("^").partition(":")
            node.input[at] = f"{'^' if given.startswith('^') else ''}{numbers[name]}:{output}"
        node.name = ""
        for attribute in ("_user_specified_name", PULLBACK):  # what is captured is numbered there
            node.attr.pop(attribute, None)
        node.ClearField("experimental_debug_info")
        yield node.SerializeToString(deterministic=True)
    yield [[place(tensor) for tensor in each] for each in (traced.reads, traced.shared, outputs)]
    handles = {id(inner): leaf for inner, leaf in traced.handles}
    known = {id(tensor) for tensor in traced.shared}
    for outer, inner in private.captures(traced.graph):
        if id(inner) in handles:
            yield place(inner), place(handles[id(inner)])
        elif id(inner) not in known:
            yield place(inner), outer.dtype.name, tuple(outer.shape), hashlib.sha256(content(outer)).hexdigest()


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph, and those of all functions that its operations run."""
    yield graph
    for operation in graph.get_operations():
        for body in flop_estimate.bodies(operation):
            yield from _graphs(body)


# -- lowered -----------------------------------------------------------------------------------------------------------
# A compiled program on disk as the text that XLA gets, in place of TensorFlow's functions.
#
# XLA finds what it has compiled by a program's text in its own language, and TensorFlow makes that text anew in each
# process, graph by graph and loop by loop: 2.1 s of the sampler's second process. So the text is what is kept, a module
# of StableHLO in a function of one operation, `XlaCallModule`: with it XLA takes 0.5 s. It is made once, by the process
# that compiles, and is what that process compiles, too.

STAGE = "stablehlo_serialized"
TEXT = "stablehlo"


class Traced:
    """A function traced for arrays of `specs`; see `protocol.Lowering`."""

    def __init__(self, function: Callable[..., Any], specs: Sequence[tf.TensorSpec]):
        self._specs = specs
        self._traced = tf.function(
            functools.partial(traces.remembering, function),
            jit_compile=True,
            autograph=False,
            experimental_attributes=private.unordered(),
        ).get_concrete_function(*specs)
        variables = {id(each.handle): each for each in self._traced.variables}
        self.captured = [_value(variables.get(id(each), each)) for each in self._traced.captured_inputs]

    def text(self, shapes: Sequence[tuple[int, ...]], place: str) -> str:
        """See `control.Lowering.text`."""
        signature = [tf.TensorSpec(shape, spec.dtype) for shape, spec in zip(shapes, self._specs, strict=True)]
        # What XLA reads must have no length unknown.
        fixed = tf.function(lambda *arrays: self._traced(*arrays), jit_compile=True, autograph=False)
        order = fixed.get_concrete_function(*signature).captured_inputs
        assert [*map(id, order)] == [*map(id, self._traced.captured_inputs)], "captured in another order"
        text = fixed.experimental_get_compiler_ir(*signature)
        found: str = prompt.off_thread(lambda: text(stage=TEXT, platform_name=place))
        return found


def _value(captured: tf.Tensor | tf.Variable) -> Any:
    """Return the present value of a captured array or variable; Ctrl-C's mark counts as not set."""
    return np.zeros(captured.shape, np.int32) if prompt.is_mark(captured) else np.asarray(captured)


def lowered(function: Any, concrete: Any, arrays: Sequence[tf.Tensor]) -> tuple[str, list[Any]] | None:
    """The name of a function like `concrete`, compiled from a module, and its `FunctionDef`s.

    `concrete` is what the `tf.function` is for `arrays`; the new one takes what that captures behind them. None where
    there is no such module: on a GPU, in a TensorFlow that has none to give, or where a shape depends on an argument.
    """
    if graphs.on_gpu() or not private.has_modules():
        return None
    given = [*arrays, *concrete.captured_inputs]
    try:
        module = function.experimental_get_compiler_ir(*arrays)(stage=STAGE)

        def whole(*inputs: tf.Tensor) -> list[tf.Tensor]:
            return private.call_module(module, inputs, concrete.outputs)

        traced = tf.function(whole, jit_compile=True, autograph=False)
        specs = [tf.TensorSpec(array.shape, array.dtype) for array in given]
        return portable(*private.definitions(traced.get_concrete_function(*specs)))
    except Exception:  # TensorFlow's functions do as well, and say themselves what is wrong with them
        return None


# -- trace cache -------------------------------------------------------------------------------------------------------

Run = Callable[[Sequence[tf.Tensor], Sequence[tf.Tensor]], Any]
"""A program as a function of its arguments and of the arrays that it has captured."""

LARGEST = 1 << 26
"""Bytes of captured arrays up to which they are kept with a program."""


def run_of(function: Any, arrays: Sequence[tf.Tensor], name: Name) -> StoredTrace | None:
    """The `tf.function` for arrays of such dtypes and shapes, kept on disk or found there.

    None where there is no cache, or this program cannot be kept.
    """
    store = cache_session.current()
    if store is None or not private.keeps_functions():
        return None
    digest = name.digest()
    if digest is None:
        name.note(False)
        return None
    specs = [(array.dtype.name, tuple(array.shape)) for array in arrays]
    entry = store.entry(digest, [*name.part, specs, *settings()], library())

    def traced() -> Run:
        concrete = function.get_concrete_function(*arrays)
        return partial(private.call, concrete)

    found = _read(entry, name)
    name.note(found is not None)
    if found is not None:
        store.load_compiled(entry)
        return StoredTrace(found, store, entry, traced, is_new=False)
    made = _made(function, arrays, name)
    return None if made is None else StoredTrace(made, store, entry, traced, is_new=True)


def library() -> tuple[Any, ...]:
    """TensorFlow's versions, and its devices."""
    devices = [device.device_type for device in tf.config.list_logical_devices()]
    return tf.__version__, tf.version.GIT_VERSION, tf.version.COMPILER_VERSION, *devices


def settings() -> tuple[Any, ...]:
    """The settings of the process that traced and compiled programs depend on."""
    rules = sorted(_own_rules())
    options = sorted(tf.config.optimizer.get_experimental_options().items())
    threads = (tf.config.threading.get_intra_op_parallelism_threads(), tf.config.optimizer.get_jit(), options)
    tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
    place = xla_cpu.is_on(), graphs.on_gpu()
    as_numpy = hasattr(tf.Tensor, "astype")  # operators of tensors do what NumPy's do
    return place, private.is_deterministic(), tf32, tf.config.get_soft_device_placement(), threads, rules, as_numpy


def _own_rules() -> list[tuple[str, str]]:
    """The rules for vectorising that somebody else has registered with TensorFlow, by their code."""
    found = []
    for kind, rule in private.registered_rules().items():
        code = getattr(getattr(rule, "__wrapped__", rule), "__code__", None)
        if code is not None and "tensorflow" not in code.co_filename:
            found.append((kind, code.co_code.hex()))
    return found


# -- a program as data -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Program:
    """A function by its name, with all that it calls, the arrays that it captures, and how many results it has.

    An array that says whether it is to stop (`prompt`) is this process's own, and kept as its place.
    """

    main: str
    definitions: Sequence[Any]
    captured: Sequence[tf.Tensor]
    results: int
    notes: Sequence[Any] = ()

    def parts(self) -> list[bytes]:
        """Itself for a record."""
        library = tf.compat.v1.GraphDef().library
        library.function.extend(self.definitions)
        header: dict[str, Any] = {"main": self.main, "results": self.results, "captured": len(self.captured)}
        header["notes"] = list(self.notes)
        header["marks"] = [place for place, array in enumerate(self.captured) if prompt.is_mark(array)]
        arrays = [tf.io.serialize_tensor(array).numpy() for array in self.captured]
        types = [array.dtype.name.encode() for array in self.captured]
        return [json.dumps(header).encode(), library.SerializeToString(deterministic=True), *arrays, *types]


def _made(function: Any, arrays: Sequence[tf.Tensor], name: Name) -> _Program | None:
    """A traced function as data; None where it has something of this process."""
    concrete = function.get_concrete_function(*arrays)
    try:
        for array in concrete.captured_inputs:
            content(array)
        if sum(array.dtype.size * array.shape.num_elements() for array in concrete.captured_inputs) > LARGEST:
            return None
        main, definitions = private.definitions(concrete)
        main, definitions = portable(main, moved_inside(main, definitions))
    except NotPortableError:
        return None
    if is_compiled(definitions):
        main, definitions = lowered(function, concrete, arrays) or (main, definitions)
    return _Program(main, definitions, list(concrete.captured_inputs), len(concrete.outputs), name.told())


def _read(entry: Entry, name: Name) -> _Program | None:
    """The program of an entry; None where there is none that can be read."""
    parts = entry.program()
    try:
        if parts is None:
            return None
        header, library, *rest = parts
        said = json.loads(header)
        count = said["captured"]
        if len(rest) != 2 * count:
            return None
        found = tf.compat.v1.GraphDef().library
        found.ParseFromString(library)
        pairs = zip(rest[:count], rest[count:], strict=True)
        captured = [tf.io.parse_tensor(array, tf.as_dtype(dtype.decode())) for array, dtype in pairs]
        for place in said["marks"]:
            captured[place] = prompt.mark()
        if not name.tell(said["notes"]):
            return None
        return _Program(said["main"], list(found.function), captured, said["results"])
    except Exception:  # whatever its readers raise for what is not of their form
        return None


# -- a program that runs -----------------------------------------------------------------------------------------------

_uses: Counter[str] = Counter()
"""Number of live programs that have a function of this name."""
_lock = threading.Lock()


def _define(program: _Program) -> None:
    with _lock:
        for definition in program.definitions:
            if not _uses[definition.signature.name]:
                private.define(definition)
            _uses[definition.signature.name] += 1


def _undefine(names: Sequence[str]) -> None:
    with _lock:
        for name in names:
            _uses[name] -= 1
            if not _uses[name]:
                del _uses[name]
                private.undefine(name)


class StoredTrace:
    """Runs a program under its names of content; where that fails, as it is `traced` in this process."""

    def __init__(self, program: _Program, store: Store, entry: Entry, traced: Callable[[], Run], is_new: bool):
        self._store, self._entry, self._traced = store, entry, traced
        self._to_keep = program.parts() if is_new else None
        self._plain: Run | None = None
        _define(program)
        names = [definition.signature.name for definition in program.definitions]
        weakref.finalize(self, _undefine, names).atexit = False
        self._main, self.captured_inputs, self._results = program.main, list(program.captured), program.results
        self.is_compiled = is_compiled(program.definitions)

    def __call__(self, arrays: Sequence[tf.Tensor], captured: Sequence[tf.Tensor] | None = None) -> Any:
        """Return the results; `captured` replaces the captures of the first trace."""
        captured = self.captured_inputs if captured is None else captured
        if self._plain is not None:
            return self._plain(arrays, captured)
        try:
            results = private.call_defined(self._main, [*arrays, *captured], self._results)
        except Exception as error:
            self._store.give_way(error)
            self._plain = self._traced()
            self._entry.remove()
            return self._plain(arrays, captured)
        parts, self._to_keep = self._to_keep, None
        if parts is not None:  # what has run once; nobody is to find what cannot
            self._store.trying(partial(self._entry.put_program, parts))
        self._store.keep_compiled(self._entry)
        if parts is not None and self.is_compiled:
            self._store.miss_compiled()
        return results
