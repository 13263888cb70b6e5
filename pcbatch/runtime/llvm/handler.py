"""The handler of a program: the function of machine code that XLA calls where a run is part of a caller's graph.

    handler(frame)

reads from XLA's call frame (`runtime.backends.call_frame`) where arguments and results lie, and calls the native
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

from pcbatch.runtime.backends import call_frame
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.llvm import compiler, interface
from pcbatch.runtime.llvm.interface import Interface
from pcbatch.runtime.llvm.memory import Workspace, Workspaces
from pcbatch.runtime.llvm.threads import LaneCost, Part

NAME = "handler"
SLOTS = 8
"""So many threads at a time run lanes without Python."""
MOST, FIRST_SLOT = 0, 1
"""Places of the `desk`, int64: up to how many lanes a run is for one thread; then the slots, 0 where nothing lies."""
INTERRUPTED, DONE, FAILED = range(3)
"""The first word behind the addresses that `rest` is handed: what has become of the run. The second is the address of
a message."""

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


class Handler:
    """A handler that runs native code; `name` and `address` are for XLA. It lives as long as the process.

    `version` is that of XLA's interface, which it has to tell.
    """

    def __init__(self, code: Code, cost: LaneCost, name: str, version: tuple[int, int]):
        readable = re.sub(r"\W", "_", name)
        self.name = f"pcbatch.{readable}.{uuid.uuid4().hex}"  # another process knows no handler by it
        self._code, self._cost, self._lock = code, cost, threading.Lock()
        self._desk = (ctypes.c_int64 * (FIRST_SLOT + SLOTS))()
        self._laid: dict[int, tuple[Any, Workspace]] = {}
        self._messages: list[Any] = []
        self._rest = _REST(self._run_rest)
        rest = ctypes.cast(self._rest, ctypes.c_void_p).value or 0
        self._arrays = len(code.interface.types) - interface.FIXED - len(code.interface.storage.frames)
        reads = len(code.interface.given) + len(code.interface.shared)
        text = _Text(code, reads, self._arrays - reads, rest, ctypes.addressof(self._desk), version)
        (self.address,), self._engine = compiler.addresses(compiler.object_code(str(text)), (NAME,))
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
        return "\n".join([*self._head(), *self._about(), *self._arrays(), *self._alone(), *self._by_python(), "}", ""])

    def _head(self) -> Iterator[str]:
        yield "declare i32 @timespec_get(ptr, i32)"
        yield "declare void @PyErr_SetInterrupt()"
        yield f'@interrupted = private constant [{len(STOPPED) + 1} x i8] c"{STOPPED}\\00"'
        yield f"define ptr @{NAME}(ptr %frame) {{"
        yield f"%words = alloca [{self._count + 2} x i64]"
        for name, count in (("began", 2), ("ended", 2), ("error", call_frame.ERROR_BYTES // 8)):
            yield f"%{name} = alloca [{count} x i64], align 8"
        yield f"%desk = inttoptr i64 {self._desk} to ptr"

    def _about(self) -> Iterator[str]:
        """Answer what XLA asks about the handler; of other stages nothing is to be done."""
        yield _load("extension", "ptr", "frame", call_frame.EXTENSION)
        yield "%plain = icmp eq ptr %extension, null"
        yield "br i1 %plain, label %called, label %extended"
        yield "extended:"
        yield _load("kind", "i32", "extension", call_frame.KIND)
        yield f"%asked = icmp eq i32 %kind, {call_frame.ABOUT}"
        yield "br i1 %asked, label %about, label %called"
        yield "about:"
        yield _load("answer", "ptr", "extension", call_frame.METADATA)
        yield _store(f"i32 {self._version[0]}", "answer", call_frame.ABOUT_MAJOR)
        yield _store(f"i32 {self._version[1]}", "answer", call_frame.ABOUT_MINOR)
        yield _store("i32 0", "answer", call_frame.ABOUT_TRAITS)
        yield "ret ptr null"
        yield "called:"
        yield _load("stage", "i32", "frame", call_frame.STAGE)
        yield f"%now = icmp eq i32 %stage, {call_frame.EXECUTE}"
        yield "br i1 %now, label %run, label %fine"
        yield "fine:"
        yield "ret ptr null"

    def _arrays(self) -> Iterator[str]:
        """Read where the arrays lie, and how many lanes there are: the first length of the first that is written."""
        yield "run:"
        yield _load("read", "ptr", "frame", call_frame.ARGUMENTS)
        yield _load("written", "ptr", "frame", call_frame.RESULTS)
        for number in range(self._count):
            list_, place = ("read", number) if number < self._reads else ("written", number - self._reads)
            yield _load(f"buffer{number}", "ptr", list_, 8 * place)
            yield _load(f"array{number}", "ptr", f"buffer{number}", call_frame.DATA)
            yield _store(f"ptr %array{number}", "words", 8 * number)
        yield _load("sizes", "ptr", f"buffer{self._reads}", call_frame.SIZES)
        yield _load("lanes", "i64", "sizes", 0)
        yield _load("most", "i64", "desk", 8 * MOST)
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
        yield _load("control", "ptr", "laid", 0)
        yield _load("capacity", "i64", "laid", 8)
        for number in range(self._memory):
            yield _load(f"memory{number}", "ptr", "laid", 8 * (2 + number))
        for place in (interface.FAILED, interface.STOP, interface.THREAD):
            yield _store("i64 0", "control", 8 * place)
        memory = [f"ptr %memory{number}" for number in range(self._memory)]
        arrays = [f"ptr %array{number}" for number in range(self._count)]
        given = ", ".join(["ptr %control, i64 0, i64 %lanes, i64 %capacity", *memory, *arrays])
        yield "%clock0 = call i32 @timespec_get(ptr %began, i32 1)"
        yield f"call void inttoptr (i64 {self._lanes} to ptr)({given})"
        yield "%clock1 = call i32 @timespec_get(ptr %ended, i32 1)"
        for name in ("began", "ended"):
            yield _load(f"{name}0", "i64", name, 0)
            yield _load(f"{name}1", "i64", name, 8)
        yield "%seconds = sub i64 %ended0, %began0"
        yield "%rest.of.them = sub i64 %ended1, %began1"
        yield "%full = mul i64 %seconds, 1000000000"
        yield "%took = add i64 %full, %rest.of.them"
        yield f"%long = icmp sgt i64 %took, {round(CPU.native_split * 1e9)}"
        yield "br i1 %long, label %slow, label %judged"
        yield "slow:  ; Python is to measure it anew"
        yield _store("i64 0", "desk", 8 * MOST)
        yield "br label %judged"
        yield "judged:"
        yield _load("status", "i64", "control", 8 * interface.STATUS)
        yield f"%all = icmp eq i64 %status, {interface.ENDED}"
        yield "br i1 %all, label %kept, label %grown"
        yield "kept:"
        yield "store atomic i64 %space, ptr %slot release, align 8"
        yield "ret ptr null"
        yield "grown:"
        yield _load("reached", "i64", "control", 8 * interface.REACHED)
        yield "br label %rest"

    def _by_python(self) -> Iterator[str]:
        """Leave lanes to Python; where these do not end, make an error of it."""
        yield "rest:"
        yield f"%used = phi i64 [ 0, %run ], [ 0, %slot{SLOTS} ], [ %space, %grown ]"
        yield f"%first = phi i64 [ 0, %run ], [ 0, %slot{SLOTS} ], [ %reached, %grown ]"
        yield _store(f"i64 {INTERRUPTED}", "words", 8 * self._count)
        yield f"call void inttoptr (i64 {self._rest} to ptr)(i64 %used, i64 %first, i64 %lanes, ptr %words)"
        yield _load("became", "i64", "words", 8 * self._count)
        yield _load("said", "ptr", "words", 8 * (self._count + 1))
        yield f"switch i64 %became, label %stopped [ i64 {DONE}, label %fine  i64 {FAILED}, label %failed ]"
        yield "stopped:"
        yield "call void @PyErr_SetInterrupt()"
        yield "br label %failed"
        yield "failed:"
        yield "%message = phi ptr [ @interrupted, %stopped ], [ %said, %rest ]"
        yield _store(f"i64 {call_frame.ERROR_BYTES}", "error", 0)
        yield _store("i64 0", "error", 8)
        yield _store("ptr %message", "error", call_frame.ERROR_MESSAGE)
        yield _store(f"i32 {call_frame.INTERNAL}", "error", call_frame.ERROR_KIND)
        yield _load("api", "ptr", "frame", call_frame.API)
        yield _load("make", "ptr", "api", call_frame.API_ERROR)
        yield "%made = call ptr %make(ptr %error)"
        yield "ret ptr %made"


def _load(name: str, type_: str, base: str, offset: int) -> str:
    return f"%{name}.at = getelementptr i8, ptr %{base}, i64 {offset}\n%{name} = load {type_}, ptr %{name}.at"


def _store(value: str, base: str, offset: int) -> str:
    return f"%{base}.to{offset} = getelementptr i8, ptr %{base}, i64 {offset}\nstore {value}, ptr %{base}.to{offset}"
