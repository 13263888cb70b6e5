"""Traced programs on disk: how one is kept, found, and run again without being traced.

A program that is kept, or found, runs under names that are digests of its functions (`definitions`), in the process
that has traced it, too. So XLA is given the same text in every process, and finds what it has compiled before.

Nothing depends on it: what cannot be kept runs as it was traced, and so does what fails, to fail with its own message.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private, prompt, xla_cpu
from pcbatch.runtime.backends.tensorflow.definitions import NotPortableError, is_compiled, portable
from pcbatch.runtime.backends.tensorflow.invariants import moved_inside
from pcbatch.runtime.backends.tensorflow.lowered import lowered
from pcbatch.runtime.backends.tensorflow.trace_fingerprint import content
from pcbatch.runtime.store import cache_session
from pcbatch.runtime.store.cache_session import Name, Store
from pcbatch.runtime.store.folder import Entry

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
