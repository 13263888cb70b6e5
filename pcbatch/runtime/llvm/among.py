"""Native code among expensive blocks: see `region`; XLA calls it by a handler, between two trips of the machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, Spec, State
from pcbatch.runtime.llvm import compiler, frame_text, hlo, region
from pcbatch.runtime.llvm.extent import EXECUTIONS, Extent
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.lane import Limits
from pcbatch.runtime.llvm.machine_code import Kept, MachineCode
from pcbatch.runtime.llvm.region import UnsupportedBlockError
from pcbatch.runtime.llvm.translation import Translation
from pcbatch.runtime.machine import limits as machine
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.store.opening import Name

NameOf = Callable[..., Name]
"""A function that returns the name of a part of the program on disk."""


class NativeBlocks:
    """The blocks of an extent, as the handler `name` runs them; see `Elsewhere`."""

    def __init__(self, backend: Backend, extent: Extent, lockstep: Collection[int], name: str):
        self.backend, self.extent, self._name, self.lockstep = backend, extent, name, sorted(lockstep)

    def run(self, state: State, shared: Mapping[str, Leaves], executions: Array) -> tuple[State, Array]:
        """See `Elsewhere`."""
        extent, now = self.extent, {**state, EXECUTIONS: executions}
        arrays = [now[key] for key in (*extent.changed, *extent.constant)]
        arrays += [leaf for name in extent.shared for leaf in shared[name]]
        lanes = self.backend.lanes_of(state["pc"])
        found = self.backend.call_handler(
            self._name,
            arrays,
            [self._spec(key, state, lanes) for key in extent.changed],
            changed=range(len(extent.changed)),
        )
        after = dict(zip(extent.changed, found, strict=True))
        executions = after.pop(EXECUTIONS)
        return {**state, **after}, executions

    def _spec(self, key: str, state: State, lanes: Any) -> Spec:
        if key == EXECUTIONS:
            return "int64", (len(self.extent.program.blocks),)
        held = self.extent.layout.arrays[key]
        entries = (self.backend.entries_of(state[key]),) if held.stacked else ()
        return held.type.dtype, (lanes, *entries, *held.type.shape)


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
            return NativeBlocks(backend, extent, lockstep, _registered(backend, _code(backend, extent, name_of)))
        except UnsupportedBlockError as error:
            lockstep |= {error.number}
        except UnsupportedError:
            lockstep |= {*extent.numbers}


def _code(backend: Backend, extent: Extent, name_of: NameOf | None) -> MachineCode:
    """The machine code of an extent, which may be kept on disk."""
    version = backend.handler_version()
    if version is None:
        raise AssertionError("there are handlers where native code runs among expensive blocks")
    limits = extent.limits
    kept = Kept(name_of and name_of("blocks", extent.numbers, limits, version), backend)
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
            backend.register_handler(name, address)
            _for_good[name] = engine
    return name
