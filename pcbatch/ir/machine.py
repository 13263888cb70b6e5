"""The third dialect, "machine": what the machine executes (Radul et al., MLSys 2020, Figure 4, and what came later).

    program    ::= name, parameters, results, types, storage, pointers, order, fault site*, shared operand*, block+
    block      ::= label, pop*, item*, push*, terminator, and what is known of it: sync, cost, dead, chunks, deferred
    item       ::= Piece y.. = f(x..) | Store a[i..] = v                     each perhaps under a predicate
    piece      ::= statement+                                                one pure function of one example
    statement  ::= Primitive | Enter | Exit of `pcbatch.ir.program`, and the fault sites of its checks
    terminator ::= Jump t | Branch x b b, fork? | Return | Fault site | PushJump t, back to b, site, fork?
    t          ::= b | Branch

Blocks are numbered by their place in `Program.blocks`, and program counters are these numbers; those beyond say that a
lane is to begin, has ended, has failed (`runtime.machine.state`). What a block does for the lanes that wait at it:

1. every variable of `pops` gets back the newest entry of its stack;
2. `body` runs in order; an item reads tops, shared operands and what earlier items of the same block wrote;
3. every `Push` saves a value on its variable's stack;
4. written variables get their new tops, the terminator moves the program counter.

A lane for which an item reports a fault stops there: its status and fault site are set, it runs nothing more. An item
under a predicate is not there for the lanes for which that does not hold.

A piece is data until Python is generated for it: then it has a `function`, and its statements are needed no more.
Generated source builds exactly these values (`f.source()` prints them), and the machine runs nothing else.

`ir.machine_printer` writes such programs, `ir.machine_verifier` has their rules, and an interpreter in `tests/ir/`
says what they mean. Spans take no part in comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir.program import Enter, Exit, Primitive
from pcbatch.ir.types import StructType, Type

# -- status ------------------------------------------------------------------------------------------------------------
# The outcome of a lane: the frozen status numbers.


class LaneStatus(IntEnum):
    """Per-lane outcome of a run. The numbers are part of the public contract and never change."""

    OK = 0
    """The lane returned."""
    ASSERTION = 1
    """An `assert` failed."""
    RAISED = 2
    """A `raise` was reached, or an error of Python's own: a missing key, an operation with None."""
    ARITHMETIC = 3
    """An integer `//` or `%` by zero, or another operation on numbers that raises in Python."""
    INDEX = 4
    """An index was out of range."""
    MAX_DEPTH = 5
    """The lane made more than `max_depth` live calls."""
    MAX_STEPS = 6
    """The lane made more than `max_steps` loop turns and calls."""
    UNFINISHED = 7
    """The run was stopped before this lane ended."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec[-1:] in tuple("bcdeEfFgGnoxX%") else format(self.name, spec)


# -- machine -----------------------------------------------------------------------------------------------------------


def _span() -> Span | None:
    """A source span, which takes no part in comparisons."""
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class FaultSite:
    """A place where a lane can fail. `arguments` are variables whose tops fill the fields of `message`."""

    status: LaneStatus
    message: str
    arguments: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)


Kept = tuple[Any, ...]
"""The leaves of a captured value that are known by identity, None for others; see `lowering.captures.kept`."""


Straight = Primitive | Enter | Exit
"""The ops that a piece consists of."""


@dataclass(frozen=True)
class Statement:
    """One op of a piece. `sites` has the fault site of each of its checks, in the order in which code is generated.

    None stands for a check that cannot fail.
    """

    op: Straight
    sites: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A pure function for one example: `function(*reads, *shared) -> tuple` with one value for each of `writes`.

    Before Python is generated `function` is None, and `statements` say what it is. `sites` are the indices into
    `Program.faults` that its checked operations may report. `spans[k]` is the user's source of line k of the function's
    body. `kept` are the captured arrays among its shared operands that a gradient tape inside must know; `tapes` says
    whether the program may have one. Where the scalar bool `predicate` does not hold, what the piece writes stays as it
    was (zero, where it never had a value), and none of its checks fails. `scope` is the function, of the stack program,
    in which the free names of its statements are looked up. One that is `speculative` computes early what a later call
    of a `Fork` is given: a check that fails there fails no lane, it only keeps it from forking.
    """

    function: Callable[..., tuple[Any, ...]] | None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    sites: tuple[int, ...] = ()
    spans: tuple[Span | None, ...] = field(default=(), compare=False)
    kept: Mapping[str, Kept] = field(default_factory=dict, compare=False)
    tapes: bool = False
    statements: tuple[Statement, ...] = ()
    predicate: str | None = None
    scope: str = ""
    speculative: bool = False
    unnamed: int = 0
    """The number of `shared`, at the end, that are not passed to the function: values that its helpers capture."""
    steps: tuple[Step, ...] = field(default=(), compare=False, repr=False)
    """The same as its function, op by op, where its ops are on numbers alone; see `lowering.codegen.steps`."""

    @property
    def compiled(self) -> Callable[..., tuple[Any, ...]]:
        """The generated function; AssertionError where there is none yet."""
        assert self.function is not None, f"no code has been generated for the piece that gives {self.writes}"
        return self.function


@dataclass(frozen=True)
class Step:
    """One op of a piece, computed by the function of a `piece` that ops alike share.

    `reads` are names of the program's, and constants in the place of such; `writes` are names, all of numbers. Check
    number n of `piece` is one at site `sites[n]`; None stands for a check that cannot fail.
    """

    piece: Piece
    reads: tuple[Any, ...]
    writes: tuple[str, ...]
    read_types: tuple[Type, ...]
    write_types: tuple[Type, ...]
    sites: tuple[int | None, ...] = ()


def checked_sites(statements: Iterable[Statement]) -> tuple[int, ...]:
    """The fault sites that some of `statements` may report, each once, in order."""
    return tuple(dict.fromkeys(site for statement in statements for site in statement.sites if site is not None))


@dataclass(frozen=True)
class Store:
    """`array[indices..] = value` on lane arrays; `site` is the fault for an index out of range, None if none can be.

    Where the scalar bool `predicate` does not hold, nothing is stored and nothing fails.
    """

    array: str
    indices: tuple[str, ...]
    value: str
    site: int | None
    predicate: str | None = None


Item = Piece | Store


@dataclass(frozen=True)
class Push:
    """Save on the stack of `variable`: the value named `saved`, or, where None, the top it had after the pops."""

    variable: str
    saved: str | None = None


@dataclass(frozen=True)
class ForkedCall:
    """One call of a group: which variables of the callee are `given` which values, and where its `results` come back.

    `given` are pairs of a variable and of the name whose value at the end of the group's first block it gets, `results`
    of the name by which the join block knows a result, in a "slot", and of the variable that the callee has written.
    A call under a `condition` is made by the lanes for which that scalar bool holds at the end of the first block.
    """

    given: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, str], ...]
    condition: str | None = None


@dataclass(frozen=True)
class Fork:
    """Calls that do not need each other's results: lanes of their own may run them at the same time.

    They follow each other from the block whose terminator has the fork: it makes the first one, or it branches to that.
    The others are on the way from there, some of them in the arms of branches (`ir.analysis.forks`). A lane whose calls
    are run by others neither pushes nor calls: it waits, and goes on at block `join`, which does what is done behind
    and between the calls. Nobody has to fork: without it the calls are made one after the other, and no lane comes to
    `join`.
    """

    calls: tuple[ForkedCall, ...]
    join: int


@dataclass(frozen=True)
class Branch:
    """A jump to block number `true` or `false`, by the scalar bool `condition`.

    As a terminator it may have a `fork`: then the first call of the group is made in one of its arms.
    """

    condition: str
    true: int
    false: int
    span: Span | None = _span()
    fork: Fork | None = None


@dataclass(frozen=True)
class Jump:
    """A jump to `target`, a block number or a branch; `turn` counts one loop turn (or tail call) of the lane."""

    target: int | Branch
    turn: bool = False
    span: Span | None = _span()


@dataclass(frozen=True)
class Return:
    """A jump to the block number on top of the lane's stack of program counters."""

    span: Span | None = _span()


@dataclass(frozen=True)
class Fault:
    """The lane fails at `site`."""

    site: int
    span: Span | None = _span()


@dataclass(frozen=True)
class PushJump:
    """A call: save block number `back`, go to `target`, a block number or one by a condition.

    `site` is the fault for exceeding `max_depth`; with a `fork` this is the first of a group of calls.
    """

    target: int | Branch
    back: int
    site: int
    span: Span | None = _span()
    fork: Fork | None = None


Terminator = Jump | Branch | Return | Fault | PushJump


def fork_of(terminator: Terminator) -> Fork | None:
    """The group of calls that begins with this terminator, if one does."""
    return terminator.fork if isinstance(terminator, Branch | PushJump) else None


def targets(terminator: Terminator) -> tuple[int, ...]:
    """The numbers of the blocks to which a lane may go on, none for a return: where it goes lies on its stack."""
    match terminator:
        case Branch(true=true, false=false):
            return (true, false)
        case Jump(target=Branch() as branch) | PushJump(target=Branch() as branch):
            return targets(branch)
        case Jump(target=int(target)) | PushJump(target=int(target)):
            return (target,)
        case Return() | Fault():
            return ()
    raise TypeError(f"not a terminator: {terminator!r}")


@dataclass(frozen=True)
class Chunks:
    """The form in which a block runs on gathered lanes: `rows` rows at a time, until none of them waits.

    Where at least `whole` lanes wait, it computes a row for every lane of the batch instead, all at once; None: never.
    With `pairs` two chunks are computed at once as long as more than one is left.
    """

    rows: int
    whole: int | None = None
    pairs: bool = False


@dataclass(frozen=True)
class Deferred:
    """A loop of one block that is the deferred part of another loop: its turns need nothing of each other.

    It has `count` turns, at most `most`, numbered by the variable `turn`, and then goes where its branch says. Whoever
    likes runs all turns of all lanes at once. They are those of block number `of`, which has put off what they do.
    """

    turn: str
    count: str
    most: int
    of: int


@dataclass(frozen=True)
class Block:
    """One basic block. `span` is the user's source that it comes from, `function` the name of the user's function.

    `steps_site` is the fault for exceeding `max_steps` where the terminator counts a step (a turn, a call). At a `sync`
    block lanes wait until no lane can run elsewhere. `cost` is what the user says that a row costs; None leaves it to
    the estimate (`costs.estimate`). `dead` names variables that the block pops, pushes or writes and whose tops nobody
    reads afterwards: they need not be kept. `chunks` says how lanes are gathered for it; with
    None it computes a row for every lane. One that is `deferred` is a loop whose turns may be run together.
    """

    label: str
    body: tuple[Item, ...]
    terminator: Terminator
    pops: tuple[str, ...] = ()
    pushes: tuple[Push, ...] = ()
    function: str = ""
    span: Span | None = field(default=None, compare=False)
    steps_site: int = -1
    sync: bool = False
    cost: float | None = None
    dead: tuple[str, ...] = ()
    chunks: Chunks | None = None
    deferred: Deferred | None = None


@dataclass(frozen=True)
class Program:
    """A whole program. `types` covers every name that a block reads or writes; `storage` every variable of the state.

    `storage` maps a variable to "register", "stack", "cached stack" or, of a parameter that nothing writes, "example":
    it lies where it came in, one value for all lanes of an example; or "slot": a result of a forked call, which lies
    with the lane that has run it. Names without storage are temporaries of a block.
    `parameters` and `results` are state variables of the entry function. `shared` names the shared operands,
    in the order in which the machine is given them; `shared_types` their types. `pointers` maps variables with a stack
    to the one whose stack pointer is theirs, too; one that is not in it has its own. `order` is in which order a trip
    goes through the blocks that lanes can come to; empty, it is that of `blocks`. `native` are the blocks that native
    code runs, lane after lane, between two trips or in place of them.
    `externs` are the free names, sorted, of the statements of each scope.
    """

    name: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    types: Mapping[str, Type]
    storage: Mapping[str, str]
    blocks: tuple[Block, ...]
    faults: tuple[FaultSite, ...] = ()
    shared: tuple[str, ...] = ()
    shared_types: Mapping[str, Type] = field(default_factory=dict)
    pointers: Mapping[str, str] = field(default_factory=dict)
    order: tuple[int, ...] = ()
    native: tuple[int, ...] = ()
    externs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    structure: StructType | None = None
    """The type of the value whose leaves are the results; None where there is one result, which is the value."""


def with_kept(program: Program, kept: Mapping[str, Kept]) -> Program:
    """`program`, its pieces knowing the captured arrays `kept`, by shared operand."""

    def bound(item: Piece | Store) -> Piece | Store:
        if not isinstance(item, Piece):
            return item
        return replace(item, kept={name: kept[name] for name in item.shared if name in kept})

    if not kept:
        return program
    blocks = (replace(block, body=tuple(map(bound, block.body))) for block in program.blocks)
    return replace(program, blocks=tuple(blocks))


# -- source locations --------------------------------------------------------------------------------------------------
# The places in the user's source from which the code of a block comes.


def spans(program: Program, block: Block) -> tuple[Span, ...]:
    """The statements and conditions that the block has a part of, in order; none where nothing is known."""
    found = sorted(set(_spans(program, block)))
    return tuple(found or ([block.span] if block.span is not None else []))


def store_span(program: Program, store: Store) -> Span | None:
    """The statement that a store belongs to: where it fails if it does."""
    return None if store.site is None else program.faults[store.site].span


def _spans(program: Program, block: Block) -> Iterator[Span]:
    for item in block.body:
        within = item.spans if isinstance(item, Piece) else (store_span(program, item),)
        yield from (span for span in within if span is not None)
    match block.terminator:
        case PushJump(site=site) | Fault(site=site):
            span = program.faults[site].span
            if span is not None:
                yield span


def file_of(program: Program, function: str) -> str:
    """The file that the user's `function` stands in; "" where that is not known."""
    blocks = (block for block in program.blocks if block.function == function)
    return next((span.file for block in blocks for span in spans(program, block)), "")
