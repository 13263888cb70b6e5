"""Native code among expensive blocks (`region`): XLA calls a handler or a kernel between two trips of the machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, Spec, State
from pcbatch.runtime.llvm import compiler, frame_text, hlo, ptx, region
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.lane import Limits
from pcbatch.runtime.llvm.machine_code import MachineCode, StoredCode
from pcbatch.runtime.llvm.native_blocks import EXECUTIONS, Extent
from pcbatch.runtime.llvm.region import UnsupportedBlockError
from pcbatch.runtime.llvm.translation import Translation
from pcbatch.runtime.machine import state as machine
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.store.cache_session import Name

NameOf = Callable[..., Name]
"""A function that returns the name of a part of the program on disk."""


class NativeBlocks:
    """The blocks of an extent, as a handler of a name runs them, or a kernel; see `Elsewhere`."""

    def __init__(self, backend: Backend, extent: Extent, lockstep: Collection[int], made: str | _Kernel):
        self.backend, self.extent, self._made, self.lockstep = backend, extent, made, sorted(lockstep)

    def run(self, state: State, shared: Mapping[str, Leaves], executions: Array) -> tuple[State, Array]:
        """See `Elsewhere`."""
        extent, now = self.extent, {**state, EXECUTIONS: executions}
        arrays = [now[key] for key in (*extent.changed, *extent.constant)]
        arrays += [leaf for name in extent.shared for leaf in shared[name]]
        lanes = self.backend.lanes_of(state["pc"])
        specs = [self._spec(key, state, lanes) for key in extent.changed]
        if isinstance(self._made, str):
            found = self.backend.handlers.call(self._made, arrays, specs, changed=range(len(specs)))
        else:
            stacked = next((state[key] for key in extent.changed if extent.is_stacked(key)), None)
            stacked = next((state[key] for key in extent.constant if extent.is_stacked(key)), stacked)
            entries = 0 if stacked is None else self.backend.lanes_of(stacked, 1)
            found = self._made.call(arrays, specs, lanes, entries)
        after = dict(zip(extent.changed, found, strict=True))
        executions = after.pop(EXECUTIONS)
        return {**state, **after}, executions

    def _spec(self, key: str, state: State, lanes: Any) -> Spec:
        if key == EXECUTIONS:
            return "int64", (len(self.extent.program.blocks),)
        held = self.extent.layout.arrays[key]
        entries = (self.backend.lanes_of(state[key], 1),) if held.stacked else ()
        return held.type.dtype, (lanes, *entries, *held.type.shape)


class _Kernel:
    """The kernel of an extent."""

    def __init__(self, backend: Backend, extent: Extent):
        translation = Translation(
            extent.program, backend, Limits(extent.limits.max_depth, extent.limits.max_steps), only=extent.numbers
        )
        parts = translation.parts if extent.numbers else (hlo.EMPTY, {}, ())
        made, keys, changed = region.kernel(extent, *parts), [*extent.changed, *extent.constant], extent.changed
        self._backend, self._bytes = backend, max(made.arena_bytes, 1)
        ranks = [len(_held(extent, key)) for key in changed]
        dtypes = ["int64" if key == EXECUTIONS else extent.layout.arrays[key].type.dtype for key in changed]
        outputs: list[Spec] = [(dtype, (None,) * rank) for dtype, rank in zip(dtypes, ranks, strict=True)]
        reads, outputs = len(keys) + len(extent.shared_leaves) + 1, [*outputs, ("uint8", (None, None))]
        self._called = ptx.Kernel(backend, made.text, reads, outputs, range(len(changed)), extent.program.name)

    def call(self, arrays: Sequence[Array], specs: Sequence[Spec], lanes: Any, entries: Any) -> list[Array]:
        """The arrays that change."""
        backend = self._backend
        control = [backend.cast(backend.constant(0) + each, "int64") for each in (lanes, entries, self._bytes)]
        known = lanes if isinstance(lanes, int) else None
        memory: Spec = ("uint8", (known, self._bytes))
        *found, _ = self._called.call([*arrays, backend.stack(control)], [*specs, memory], known)
        return found


def _held(extent: Extent, key: str) -> tuple[int, ...]:
    """Zeros, as many as an array has axes."""
    if key == EXECUTIONS:
        return (0,)
    return (0,) * (1 + extent.is_stacked(key) + len(extent.layout.arrays[key].type.shape))


def with_tops_apart(program: Program) -> Program:
    """`program` as native blocks need it: the tops of all stacks lie apart from these."""
    storage = {name: "register" if kind == "register" else "cached stack" for name, kind in program.storage.items()}
    return replace(program, storage=storage)


def native_blocks(
    backend: Backend,
    layout: Layout,
    limits: machine.Limits,
    row_costs: Sequence[float],
    lockstep: frozenset[int],
    name_of: NameOf | None = None,
) -> NativeBlocks:
    """The blocks of a program that are not of `lockstep`, but for those of which no native code is made."""
    while True:
        extent = Extent.of(layout, limits, row_costs, lockstep)
        try:
            if backend.place() == "GPU":
                return NativeBlocks(backend, extent, lockstep, _Kernel(backend, extent))
            return NativeBlocks(backend, extent, lockstep, _registered(backend, _code(backend, extent, name_of)))
        except UnsupportedBlockError as error:
            lockstep |= {error.number}
        except UnsupportedError:
            lockstep |= {*extent.numbers}


def _code(backend: Backend, extent: Extent, name_of: NameOf | None) -> MachineCode:
    """The machine code of an extent, which may be kept on disk."""
    version = backend.handlers.version()
    if version is None:
        raise AssertionError("there are handlers where native code runs among expensive blocks")
    limits = extent.limits
    kept = StoredCode(name_of and name_of("blocks", extent.numbers, limits, version), backend)
    if kept.found is not None:
        return kept.found
    plain = Limits(limits.max_depth, limits.max_steps)
    translation = Translation(extent.program, backend, plain, only=extent.numbers)
    parts = translation.parts if extent.numbers else (hlo.EMPTY, {}, ())
    code = MachineCode.of(region.build(extent, *parts, version))
    kept.keep(code)
    return code


_lock = threading.Lock()
_for_good: dict[str, Any] = {}
"""The code of each handler, by name, kept alive because XLA forgets none."""


def _registered(backend: Backend, code: MachineCode) -> str:
    """The name by which XLA knows a handler: the same in every process, so that compiled programs may have it."""
    name = f"pcbatch.blocks.{hashlib.sha256(code.object_file).hexdigest()}"
    with _lock:
        if name not in _for_good:
            (address,), engine = compiler.addresses(code.object_file, (frame_text.NAME,))
            backend.handlers.register(name, address)
            _for_good[name] = engine
    return name
