"""The handler of a program: the function of machine code that XLA calls where a run is part of a caller's graph.

    handler(frame)

reads from XLA's call frame (`runtime.backends.interop`) where arguments and results lie, and calls the native
function there, without Python and its lock, in memory that lies ready in one of a few slots. What is seldom it leaves
to Python's `rest`: larger stacks, more threads at a time than slots, and work that is worth several threads.
"""

from __future__ import annotations

import ctypes
import re
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from pcbatch.runtime.backends import interop
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.llvm import compiler, frame_text, interface
from pcbatch.runtime.llvm.frame_text import about, buffers, length, load, store
from pcbatch.runtime.llvm.interface import Interface
from pcbatch.runtime.llvm.memory import Workspace, Workspaces
from pcbatch.runtime.llvm.multithreading import LaneCost, Part

SLOTS = 8
"""Maximal number of threads that run lanes at a time without Python."""
MOST, FIRST_SLOT = 0, 1
"""Places of the `desk`, int64: up to how many lanes a run is for one thread; then the slots, 0 where nothing lies."""
INTERRUPTED, DONE, FAILED = range(3)
"""The first word behind the addresses in `rest`: the outcome of the run. The second is the address of a message."""

STOPPED = "the run was stopped by Ctrl-C"
"""TensorFlow's message then, until Python raises its KeyboardInterrupt."""

_REST = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int64, ctypes.c_size_t)
_for_good: list[Handler] = []
"""XLA forgets no handler."""


class Code(Protocol):
    """A native function; see `program.NativeCode`."""

    interface: Interface
    workspaces: Workspaces
    lanes: int

    def run_rest(self, addresses: Sequence[int], part: Part, cost: LaneCost) -> None:
        """Run the lanes of a part."""


def named(program: str) -> str:
    """The name of a handler of a program, which none has in any process."""
    readable = re.sub(r"\W", "_", program)
    return f"pcbatch.{readable}.{uuid.uuid4().hex}"


class Handler:
    """A handler that runs native code; `name` and `address` are for XLA. It lives as long as the process.

    `version` is that of XLA's interface, which it has to tell.
    """

    def __init__(self, code: Code, cost: LaneCost, name: str, version: tuple[int, int]):
        self.name = named(name)
        self._code, self._cost, self._lock = code, cost, threading.Lock()
        self._desk = (ctypes.c_int64 * (FIRST_SLOT + SLOTS))()
        self._laid: dict[int, tuple[Any, Workspace]] = {}
        self._messages: list[Any] = []
        self._rest = _REST(self._run_rest)
        rest = ctypes.cast(self._rest, ctypes.c_void_p).value or 0
        self._arrays = len(code.interface.types) - interface.FIXED - len(code.interface.storage.frames)
        reads = len(code.interface.given) + len(code.interface.shared)
        text = _Text(code, reads, self._arrays - reads, rest, ctypes.addressof(self._desk), version)
        (self.address,), self._engine = compiler.addresses(compiler.object_code(str(text)), (frame_text.NAME,))
        _for_good.append(self)

    def _run_rest(self, space: int, first: int, lanes: int, words: int) -> None:
        """Run the lanes from `first` on. `space` lay in a slot, and was too small; 0 where nothing lay there."""
        told = (ctypes.c_size_t * (self._arrays + 2)).from_address(words)
        try:
            if first < lanes:
                self._code.run_rest(told[: self._arrays], (first, lanes), self._cost)
                self._lay(space)
            told[self._arrays] = DONE
        except KeyboardInterrupt:
            told[self._arrays] = INTERRUPTED
        except BaseException as error:
            message = ctypes.create_string_buffer(f"{type(error).__name__}: {error}".encode())
            self._messages.append(message)
            told[self._arrays + 1] = ctypes.addressof(message)
            told[self._arrays] = FAILED

    def _lay(self, space: int) -> None:
        """Let memory lie ready in one slot more, or in the place of `space`."""
        self._desk[MOST] = self._cost.most
        with self._lock:
            gone = (slot for slot, (laid, _) in self._laid.items() if ctypes.addressof(laid) == space)
            free = (slot for slot in range(SLOTS) if slot not in self._laid)
            slot = next(gone if space else free, None)
            if slot is None:
                return
            memory = self._code.workspaces.take()
            values = memory.laid
            laid = (ctypes.c_int64 * len(values))(*values)
            self._laid[slot] = laid, memory
            self._desk[FIRST_SLOT + slot] = ctypes.addressof(laid)


class _Text:
    """The text of a handler: of code that reads and writes so many arrays."""

    def __init__(self, code: Code, reads: int, writes: int, rest: int, desk: int, version: tuple[int, int]):
        self._reads, self._count, self._version = reads, reads + writes, version
        self._memory = 2 + len(code.interface.storage.frames)
        self._lanes, self._rest, self._desk = code.lanes, rest, desk

    def __str__(self) -> str:
        parts = (self._head(), about(self._version), self._arrays(), self._alone(), self._by_python())
        return "\n".join([*(line for part in parts for line in part), "}", ""])

    def _head(self) -> Iterator[str]:
        yield "declare i32 @timespec_get(ptr, i32)"
        yield "declare void @PyErr_SetInterrupt()"
        yield f'@interrupted = private constant [{len(STOPPED) + 1} x i8] c"{STOPPED}\\00"'
        yield f"define ptr @{frame_text.NAME}(ptr %frame) {{"
        yield f"%words = alloca [{self._count + 2} x i64]"
        for name, count in (("began", 2), ("ended", 2), ("error", interop.ERROR_BYTES // 8)):
            yield f"%{name} = alloca [{count} x i64], align 8"
        yield f"%desk = inttoptr i64 {self._desk} to ptr"

    def _arrays(self) -> Iterator[str]:
        """Read where the arrays lie, and how many lanes there are: the first length of the first that is written."""
        yield "run:"
        yield from buffers(self._reads, self._count)
        for number in range(self._count):
            yield store(f"ptr %array{number}", "words", 8 * number)
        yield length("lanes", self._reads, 0)
        yield load("most", "i64", "desk", 8 * MOST)
        yield "%small = icmp sle i64 %lanes, %most"
        yield "br i1 %small, label %slot0, label %rest"

    def _alone(self) -> Iterator[str]:
        """Run all lanes in this thread, in memory that lies ready."""
        for slot in range(SLOTS):
            yield f"slot{slot}:"
            yield f"%place{slot} = getelementptr i8, ptr %desk, i64 {8 * (FIRST_SLOT + slot)}"
            yield f"%found{slot} = atomicrmw xchg ptr %place{slot}, i64 0 acq_rel"
            yield f"%empty{slot} = icmp eq i64 %found{slot}, 0"
            yield f"br i1 %empty{slot}, label %slot{slot + 1}, label %alone"
        yield f"slot{SLOTS}:"
        yield "br label %rest"
        yield "alone:"
        yield f"%space = phi i64 {', '.join(f'[ %found{slot}, %slot{slot} ]' for slot in range(SLOTS))}"
        yield f"%slot = phi ptr {', '.join(f'[ %place{slot}, %slot{slot} ]' for slot in range(SLOTS))}"
        yield "%laid = inttoptr i64 %space to ptr"
        yield load("control", "ptr", "laid", 0)
        yield load("capacity", "i64", "laid", 8)
        for number in range(self._memory):
            yield load(f"memory{number}", "ptr", "laid", 8 * (2 + number))
        for place in (interface.FAILED, interface.STOP, interface.THREAD):
            yield store("i64 0", "control", 8 * place)
        memory = [f"ptr %memory{number}" for number in range(self._memory)]
        arrays = [f"ptr %array{number}" for number in range(self._count)]
        given = ", ".join(["ptr %control, i64 0, i64 %lanes, i64 %capacity", *memory, *arrays])
        yield "%clock0 = call i32 @timespec_get(ptr %began, i32 1)"
        yield f"call void inttoptr (i64 {self._lanes} to ptr)({given})"
        yield "%clock1 = call i32 @timespec_get(ptr %ended, i32 1)"
        for name in ("began", "ended"):
            yield load(f"{name}0", "i64", name, 0)
            yield load(f"{name}1", "i64", name, 8)
        yield "%seconds = sub i64 %ended0, %began0"
        yield "%rest.of.them = sub i64 %ended1, %began1"
        yield "%full = mul i64 %seconds, 1000000000"
        yield "%took = add i64 %full, %rest.of.them"
        yield f"%long = icmp sgt i64 %took, {round(CPU.native_split * 1e9)}"
        yield "br i1 %long, label %slow, label %judged"
        yield "slow:  ; Python is to measure it anew"
        yield store("i64 0", "desk", 8 * MOST)
        yield "br label %judged"
        yield "judged:"
        yield load("status", "i64", "control", 8 * interface.STATUS)
        yield f"%all = icmp eq i64 %status, {interface.ENDED}"
        yield "br i1 %all, label %kept, label %grown"
        yield "kept:"
        yield "store atomic i64 %space, ptr %slot release, align 8"
        yield "ret ptr null"
        yield "grown:"
        yield load("reached", "i64", "control", 8 * interface.REACHED)
        yield "br label %rest"

    def _by_python(self) -> Iterator[str]:
        """Leave lanes to Python; where these do not end, make an error of it."""
        yield "rest:"
        yield f"%used = phi i64 [ 0, %run ], [ 0, %slot{SLOTS} ], [ %space, %grown ]"
        yield f"%first = phi i64 [ 0, %run ], [ 0, %slot{SLOTS} ], [ %reached, %grown ]"
        yield store(f"i64 {INTERRUPTED}", "words", 8 * self._count)
        yield f"call void inttoptr (i64 {self._rest} to ptr)(i64 %used, i64 %first, i64 %lanes, ptr %words)"
        yield load("became", "i64", "words", 8 * self._count)
        yield load("said", "ptr", "words", 8 * (self._count + 1))
        yield f"switch i64 %became, label %stopped [ i64 {DONE}, label %fine  i64 {FAILED}, label %failed ]"
        yield "stopped:"
        yield "call void @PyErr_SetInterrupt()"
        yield "br label %failed"
        yield "failed:"
        yield "%message = phi ptr [ @interrupted, %stopped ], [ %said, %rest ]"
        yield store(f"i64 {interop.ERROR_BYTES}", "error", 0)
        yield store("i64 0", "error", 8)
        yield store("ptr %message", "error", interop.ERROR_MESSAGE)
        yield store(f"i32 {interop.INTERNAL}", "error", interop.ERROR_KIND)
        yield load("api", "ptr", "frame", interop.API)
        yield load("make", "ptr", "api", interop.API_ERROR)
        yield "%made = call ptr %make(ptr %error)"
        yield "ret ptr %made"
