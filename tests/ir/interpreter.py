"""The semantics of the IR: one lane, one op after the other, "cfg" or "stack". Every pass must leave its answers alone.

Calls of "cfg" live on an explicit list of frames and "stack" has its own stacks, so depth is bounded by memory only.
What a statement of the user's source does is not the IR's business: `evaluate` runs it and `store` replaces elements
of arrays (`tests.ir.evaluation` has both for plain Python values). `tests.ir.machine_interpreter` is the third
dialect's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pcbatch.errors import Span
from pcbatch.ir.payload import Compute, Unpack
from pcbatch.ir.program import (
    Block,
    Branch,
    Call,
    Enter,
    Exit,
    Fault,
    Function,
    Jump,
    Op,
    Pop,
    Primitive,
    Program,
    Push,
    PushJump,
    Return,
    Store,
    Terminator,
    Update,
)

CONTEXT = "_context"
"""The name by which the interpreter evaluates context managers."""


def interpret(
    program: Program,
    arguments: Sequence[Any],
    evaluate: Evaluate,
    store: StoreElement,
    *,
    max_depth: int | None = None,
    max_steps: int | None = None,
) -> Outcome:
    """Run `program`, which must be well-formed (`pcbatch.ir.verifier`), on one example.

    `max_depth` limits the live calls that are not tail calls, `max_steps` loop turns and calls together; where one call
    exceeds both, the depth decides. TypeError if the number of arguments is wrong.
    """
    if len(arguments) != len(program.entry.parameters):
        raise TypeError(f"{program.entry.name} takes {len(program.entry.parameters)} arguments, not {len(arguments)}")
    lane = _Lane(program, evaluate, store, max_depth, max_steps)
    run = _run_cfg if program.dialect == "cfg" else _run_stack
    return lane.outcome(lambda: run(lane, program, arguments))


# -- what all dialects share -------------------------------------------------------------------------------------------

Read = Callable[[str], Any]


class Lane:
    """The callbacks, the limits and the counts of one run; `span` is where it is."""

    def __init__(self, evaluate: Evaluate, store: StoreElement, max_depth: int | None, max_steps: int | None):
        self.evaluate, self.store = evaluate, store
        self.max_depth, self.max_steps = max_depth, max_steps
        self.span: Span | None = None
        self.steps = 0
        self.managers: list[Any] = []
        self.executions: Counter[str] = Counter()

    def outcome(self, run: Callable[[], tuple[Any, ...]]) -> Outcome:
        """Return the end of the lane that `run` runs: it returns the results."""
        try:
            values = run()
        except LaneFaultError as fault:
            for manager in reversed(self.managers):
                manager.__exit__(LaneFaultError, fault, fault.__traceback__)
            return Outcome(None, fault.status, fault.message, self.span, self.steps, self.executions)
        value = values[0] if len(values) == 1 else values
        return Outcome(value, steps=self.steps, executions=self.executions)

    def compute(self, function: str, op: Op, read: Read) -> dict[str, Any]:
        """The values that `op`, in `function`, gives to variables, by name."""
        self.span = op.span
        match op:
            case Primitive(outputs, inputs) | Push(outputs, inputs) | Update(outputs, inputs):
                values = self.evaluate(function, op, {name: read(name) for name in inputs})
                return {name: values[name] for name in outputs}
            case Enter(outputs, inputs):
                values = self.enter_context(function, op, {name: read(name) for name in inputs})
                return {name: values[name] for name in outputs}
            case Exit():
                self.managers.pop().__exit__(None, None, None)
                return {}
            case Store(array, indices, value):
                return {array: self.store(read(array), tuple(map(read, indices)), read(value))}
        raise TypeError(f"not an op with a value: {op!r}")

    def enter_context(self, function: str, op: Enter, inputs: dict[str, Any]) -> Mapping[str, Any]:
        """Begin a `with` block: return the value for its target."""
        made = Primitive((CONTEXT,), op.inputs, Compute(op.code.expression))
        self.managers.append(self.evaluate(function, made, inputs)[CONTEXT])
        entered = self.managers[-1].__enter__()
        if op.code.pattern is None:
            return dict.fromkeys(op.outputs, entered)
        return self.evaluate(function, Primitive(op.outputs, (CONTEXT,), Unpack(op.code.pattern)), {CONTEXT: entered})

    def can_call(self, depth: int) -> bool:
        """Return whether so many calls may be live."""
        return self.max_depth is None or depth <= self.max_depth

    def can_step(self) -> bool:
        """Return whether the lane may do one more loop turn or call."""
        return self.max_steps is None or self.steps < self.max_steps


class _Lane(Lane):
    """A lane in a program of the first two dialects."""

    def __init__(
        self,
        program: Program,
        evaluate: Evaluate,
        store: StoreElement,
        max_depth: int | None,
        max_steps: int | None,
    ):
        super().__init__(evaluate, store, max_depth, max_steps)
        self.owned = {block.label: (function, block) for function in program.functions for block in function.blocks}

    def enter(self, label: str) -> Block:
        """The block with this label, which is now run once more."""
        self.executions[label] += 1
        return self.owned[label][1]

    def follow(self, terminator: Terminator, read: Read) -> str:
        """The label that `terminator`, which stays in its function, goes to."""
        self.span = terminator.span
        match terminator:
            case Jump(target, turn):
                if turn:
                    self.step()
                return target
            case Branch(condition, true, false):
                return true if read(condition) else false
            case Fault(message, arguments, kind):
                status: Status = "ASSERTION" if kind == "assert" else "RAISED"
                raise LaneFaultError(status, message.format(*map(read, arguments)))
        raise TypeError(f"not a terminator of this dialect: {terminator!r}")

    def call(self, span: Span | None, depth: int) -> None:
        """Count a call after which `depth` calls are live."""
        self.span = span
        if not self.can_call(depth):
            raise LaneFaultError("MAX_DEPTH", f"more than {self.max_depth} live calls")
        self.step()

    def step(self) -> None:
        """Count a loop turn or a call."""
        if not self.can_step():
            raise LaneFaultError("MAX_STEPS", f"more than {self.max_steps} loop turns and calls")
        self.steps += 1


# -- "cfg": frames -----------------------------------------------------------------------------------------------------


@dataclass
class _Frame:
    """A live function: its variables and the op that comes next; while it waits for a call, the op behind the call."""

    function: Function
    variables: dict[str, Any]
    block: Block
    position: int = 0


def _run_cfg(lane: _Lane, program: Program, arguments: Sequence[Any]) -> tuple[Any, ...]:
    functions = {function.name: function for function in program.functions}
    frames: list[_Frame] = []

    def start(function: Function, values: Sequence[Any]) -> None:
        variables = dict(zip(function.parameters, values, strict=True))
        frames.append(_Frame(function, variables, lane.enter(function.entry)))

    start(program.entry, arguments)
    while True:
        frame = frames[-1]
        read = frame.variables.__getitem__
        if frame.position < len(frame.block.ops):
            op = frame.block.ops[frame.position]
            frame.position += 1
            if isinstance(op, Call):
                values = tuple(map(read, op.arguments))
                if _is_tail_call(frame, op):
                    frames.pop()
                lane.call(op.span, len(frames))
                start(functions[op.function], values)
            else:
                frame.variables.update(lane.compute(frame.function.name, op, read))
        elif isinstance(frame.block.terminator, Return):
            results = tuple(map(read, frame.function.results))
            frames.pop()
            if not frames:
                return results
            call = frames[-1].block.ops[frames[-1].position - 1]
            assert isinstance(call, Call)
            frames[-1].variables.update(zip(call.outputs, results, strict=True))
        else:
            frame.block, frame.position = lane.enter(lane.follow(frame.block.terminator, read)), 0


def _is_tail_call(frame: _Frame, call: Call) -> bool:
    """Return whether the callee's results are at once the function's own, so that its frame is needed no more."""
    last = frame.position == len(frame.block.ops)
    return last and isinstance(frame.block.terminator, Return) and call.outputs == frame.function.results


# -- "stack": one stack per variable -----------------------------------------------------------------------------------


def _run_stack(lane: _Lane, program: Program, arguments: Sequence[Any]) -> tuple[Any, ...]:
    stacks: dict[str, list[Any]] = defaultdict(list)  # an empty one is a top without value
    for name, value in zip(program.entry.parameters, arguments, strict=True):
        stacks[name].append(value)
    temporaries: dict[str, Any] = {}
    local = _local(program)
    waiting: list[str] = []

    def read(name: str) -> Any:
        return temporaries[name] if name in temporaries else stacks[name][-1]

    block = lane.enter(program.entry.entry)
    while True:
        temporaries.clear()
        for op in block.ops:
            if isinstance(op, Pop):
                for name in op.variables:
                    stacks[name].pop()
                continue
            for name, value in lane.compute(lane.owned[block.label][0].name, op, read).items():
                if isinstance(op, Push):
                    stacks[name].append(value)
                elif name in local:
                    temporaries[name] = value
                else:
                    stacks[name][-1:] = [value]
        match block.terminator:
            case PushJump(target, back, span):
                waiting.append(back)
                lane.call(span, len(waiting))
                block = lane.enter(target)
            case Return() if not waiting:
                return tuple(map(read, program.entry.results))
            case Return():
                block = lane.enter(waiting.pop())
            case terminator:
                block = lane.enter(lane.follow(terminator, read))


def _local(program: Program) -> frozenset[str]:
    """The variables that are temporaries: listed as such, or assigned by primitives."""
    listed = (v.name for function in program.functions for v in function.variables if v.storage == "temporary")
    primitives = (op for block in program.blocks() for op in block.ops if isinstance(op, Primitive))
    return frozenset(listed).union(*(op.outputs for op in primitives))


Status = Literal["OK", "ASSERTION", "RAISED", "ARITHMETIC", "INDEX", "MAX_DEPTH", "MAX_STEPS"]
"""The names of a lane's possible outcomes; the runtime gives them numbers."""

Evaluate = Callable[[str, Primitive | Push | Update, dict[str, Any]], Mapping[str, Any]]
"""`evaluate(function_name, op, inputs)` runs an op: its outputs by name; may raise LaneFaultError."""

StoreElement = Callable[[Any, tuple[Any, ...], Any], Any]
"""`store(array, indices, value)`: a copy of `array` with one element replaced; may raise LaneFaultError."""


class LaneFaultError(Exception):
    """The lane fails here, with `status` and `message`."""

    def __init__(self, status: Status, message: str):
        self.status: Status = status
        self.message = message
        super().__init__(message)


@dataclass(frozen=True)
class Outcome:
    """The end of a lane. `value` is its result (a tuple where the function has several; None unless status is "OK").

    `steps` counts loop turns and calls, `executions` how often each block was run, by label.
    """

    value: Any
    status: Status = "OK"
    message: str = ""
    span: Span | None = None
    steps: int = 0
    executions: Counter[str] = field(default_factory=Counter)
