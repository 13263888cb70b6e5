"""Gradients of runs by native code: see `adjoint.natively.Natively`, and `backward` for how."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import PcbatchError
from pcbatch.runtime.adjoint.vjp import TapedProgram
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.llvm.backward import BackwardInterface, BackwardTranslation
from pcbatch.runtime.llvm.compiler import width
from pcbatch.runtime.llvm.group import GROUPS, may_be_for_groups
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.lane import Limits
from pcbatch.runtime.llvm.machine_code import MachineCode, StoredCode
from pcbatch.runtime.llvm.multithreading import LaneCost
from pcbatch.runtime.llvm.program import NativeCode, TapeLengthError, Written
from pcbatch.runtime.llvm.types import Number
from pcbatch.runtime.store.cache_session import Name
from pcbatch.threads import once

SUMS = 1 << 26
"""Bytes of the sums of lanes that run together: beyond that some run after the others."""


def natively(way: TapedProgram) -> LlvmGradients | None:
    """The giver of gradients of a way's program by native code; None where something in it has none."""
    try:
        return LlvmGradients(way)
    except (UnsupportedError, PcbatchError):  # lockstep tells what is wrong with a derivative, and where
        return None


class LlvmGradients:
    """Gives the gradients of runs of one program; `UnsupportedError` where no native code is made of that."""

    def __init__(self, way: TapedProgram):
        self.way, self.backend, limits = way, way.backend, Limits(way.limits.max_depth, way.limits.max_steps)
        self.interface = BackwardInterface(way.program, way.tapes)
        lanes = 1 if way.context.is_deterministic else width()
        translation = BackwardTranslation(way.program, way.backend, limits, lanes, tapes=way.tapes)
        self._cost = LaneCost(GROUPS * lanes if lanes > 1 and may_be_for_groups(way.program) else 1)
        with way.statistics.tracing(counts=False):
            self._function = translation.both_ways()

    @once
    def _code(self) -> NativeCode:
        way, longest = self.way, CPU.tape_bytes if self.way.tape == "replay" else None
        with way.statistics.timed():
            kept = StoredCode(Name(self._digest, ("gradients",), way.statistics.note), self.backend)
            code = kept.found
            if code is None:
                way.statistics.compilations += 1
                code = MachineCode.of(self._function)
                kept.keep(code)
            return NativeCode(self.interface, code, way.limits.max_depth, longest)

    def _digest(self) -> str:
        """A digest of the function's text: whatever it depends on is in there."""
        return hashlib.sha256(self._function.text.encode()).hexdigest()

    # -- a run ---------------------------------------------------------------------------------------------------------

    def gradients(
        self, arrays: Sequence[Array], upstream: Sequence[Array | None], lanes: int
    ) -> list[Array | None] | None:
        """See `Natively`."""
        count, given = len(self.way.layout.inputs), [np.ascontiguousarray(each) for each in arrays]
        seeds = self.interface.seeds.items()
        by_lane = [*given[:count], *(_seeds(upstream[n], *each[1:], lanes) for n, each in seeds)]
        most = max(1, SUMS // max(self.interface.sum_bytes, 1))
        found: list[Written] = []
        for first in range(0, lanes, most):
            some = [each[first : first + most] for each in by_lane]
            try:
                found.append(self._code.run_all([*some, *given[count:]], min(most, lanes - first), self._cost))
            except TapeLengthError:
                return None
        return self.way.flow.packed(iter([*self._by_parameters(found), *self._totals(found, arrays[count:])]))

    def _by_parameters(self, found: Sequence[Written]) -> Iterator[Array]:
        for place in self.interface.result_places[: self.interface.by_parameters]:
            yield self._array(_joined(found, place), len(found) == 1)

    def _totals(self, found: Sequence[Written], shared: Sequence[Array]) -> list[Array]:
        """The gradients by shared operands, in the order of `Replay.totals`."""
        totals = self.way.replay.totals
        if not totals:
            return []
        places = self.interface.result_places[self.interface.by_parameters :]
        sums = [_joined(found, place) if self.way.by_lane else _total(found, place) for place in places]
        status = _joined(found, self.interface.failures)
        given = [self._array(each) for each in (*sums, status)]
        return list(self.backend.forbid_gradients(self._pull_back)(*given, *shared))

    def _array(self, found: np.ndarray, is_output: bool = False) -> Array:
        return self.backend.adopted(found) if is_output else self.backend.array(found, found.dtype.name)

    @once
    def _pull_back(self) -> Callable[..., Any]:
        """The program from sums, failures and shared operands to gradients by these."""
        way, replay = self.way, self.way.replay
        beside = [each for every in replay.beside.values() for each in every]

        def program(*arrays: Array) -> list[Array]:
            remaining = iter(arrays)
            sums = {key: next(remaining) for each in beside for key in each.sums}
            failures = next(remaining)
            shared = way.segments.legs.operands([*remaining])
            lanes = self.backend.lanes_of(failures)
            totals = {key: replay.nothing(type_, lanes) for key, type_ in replay.totals.items()}
            for each in beside:
                totals = replay.together.pulled_back(each, sums, {}, failures, shared, totals)
            return [totals[key] for key in replay.totals]

        return self.backend.compile(program, False)


def _seeds(upstream: Array | None, number: Number, sizes: Sequence[int], lanes: int) -> np.ndarray:
    """The gradients by a leaf of the results, zeros where nobody has any."""
    if upstream is None:
        return np.zeros((lanes, *sizes), number.dtype)
    return np.asarray(upstream)


def _joined(found: Sequence[Written], place: int) -> np.ndarray:
    """Join one of the outputs of all lanes."""
    arrays = [each.of(place) for each in found]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _total(found: Sequence[Written], place: int) -> np.ndarray:
    """The sum over all lanes of one of the outputs, lane after lane, whatever threads have run them."""
    total = sum(each.of(place).sum(axis=0, dtype=np.float64) for each in found)
    return np.asarray(total, found[0].of(place).dtype)
