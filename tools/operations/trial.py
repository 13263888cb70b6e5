"""One expression tried: translated, vectorised in a graph and under XLA, compared with a loop over the lanes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from pcbatch.errors import CompileError, PieceRefusalError
from pcbatch.ir.expression_parser import parse_expression
from pcbatch.ir.expressions import free_names
from pcbatch.ir.machine import Block, FaultSite, LaneStatus, Piece, Program, Return
from pcbatch.ir.operators import print_expression
from pcbatch.ir.types import Type
from pcbatch.lowering.codegen.environment import OPS
from pcbatch.lowering.codegen.pieces import Translation, execute
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import ops, rules
from pcbatch.runtime.backends.tensorflow.backend import TensorFlowBackend
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.program import LlvmProgram
from pcbatch.runtime.machine.machine import Machine
from tools.operations.catalogue import LANES, examples, layers, shared
from tools.operations.slopes import gradient

BACKEND = TensorFlowBackend()


@dataclass(frozen=True)
class Verdict:
    """What became of an expression in one mode: "" if every lane was right, else a code and what was said.

    `looped` says that it ran lane after lane, for want of a rule.
    """

    code: str = ""
    message: str = ""
    looped: bool = False


@dataclass(frozen=True)
class Trial:
    """What became of an expression, and which of pcbatch's own rules it needed.

    `native` has the operations that are not known to run in a native function; None where it does not come to that.
    """

    expression: str
    graph: Verdict
    xla: Verdict
    rules: tuple[str, ...] = ()
    native: tuple[str, ...] | None = None
    gradient: str = "no"
    """Of the gradient, under XLA if that can be: see `slopes.gradient`; "no" where nothing runs."""


class WrongError(Exception):
    """A batch differs from the loop over its lanes: the one thing that must not happen."""


def tried(expression: str, *, gradients: bool = True) -> Trial:
    """Try `expression` in both modes, and its gradient.

    Raises WrongError or WrongGradientError where a mode accepts it and gives something else than a loop over the lanes.
    """
    piece = piece_of(expression, ())
    used: list[str] = []
    graph = attempt(piece, expression, jit=False, used=used)
    xla = attempt(piece, expression, jit=True)
    if graph.code and xla.code:
        return Trial(expression, graph, xla, tuple(dict.fromkeys(used)))
    native = tried_natively(expression)
    slope = tried_gradient(expression, jit=not xla.code) if gradients else "no"
    return Trial(expression, graph, xla, tuple(dict.fromkeys(used)), native, slope)


def tried_gradient(expression: str, *, jit: bool) -> str:
    """What becomes of the gradient of an expression; see `slopes.gradient`."""
    piece = piece_of(expression, ())
    lanes = [tf.constant(examples()[name]) for name in piece.reads]
    operands = [tf.convert_to_tensor(shared()[name]) for name in piece.shared]
    types = [BACKEND.type_of(value[0]) for value in lanes]
    (type_,) = BACKEND.facts(piece, types, [*map(BACKEND.type_of, operands)]).types
    return gradient(expression, piece, type_, lanes, operands, jit=jit)


def tried_natively(expression: str) -> tuple[str, ...]:
    """The operations of an expression that are not known to run natively, or why there is no native code of it.

    Where there is, its lanes run so. Raises WrongError as `tried` does.
    """
    piece = piece_of(expression, ())
    values = [tf.constant(examples()[name]) for name in piece.reads]
    same = [tf.convert_to_tensor(shared()[name]) for name in piece.shared]
    read_types, operand_types = [BACKEND.type_of(value[0]) for value in values], [*map(BACKEND.type_of, same)]
    writes = BACKEND.facts(piece, read_types, operand_types).types
    (obstacles,) = BACKEND.native_obstacles([(piece, Signature(read_types, operand_types, writes), "trial")])
    if obstacles:
        return tuple(name for name, _ in obstacles)
    types = dict(zip((*piece.reads, *piece.writes), (*read_types, *writes), strict=True))
    program = Program(
        "trial",
        piece.reads,
        piece.writes,
        types,
        dict.fromkeys(types, "register"),
        (Block("b0", (piece,), Return()),),
        tuple(FaultSite(LaneStatus.INDEX, "a check") for _ in range(max(piece.sites, default=-1) + 1)),
        shared=piece.shared,
        shared_types=dict(zip(piece.shared, operand_types, strict=True)),
    )
    try:
        native = LlvmProgram(Machine(program, BACKEND))
    except UnsupportedError as error:
        return (str(error),)
    run = native.run(values, same, LANES)
    sound = np.flatnonzero(np.asarray(run.status) == LaneStatus.OK)
    rows = [np.asarray(row)[sound] for row in run.values]  # zeros or NaN in lanes that have failed
    _compare(expression, "native", piece, writes[0], rows, [tf.gather(value, sound) for value in values], same)
    return ()


def operand_variants(expression: str) -> Iterator[tuple[str, ...]]:
    """Which lane values may be made the same for all lanes so that at least one still differs."""
    reads = letters(expression)
    for name in reads if len(reads) > 1 else ():
        yield (name,)
        yield tuple(other for other in reads if other != name)


def tried_with_shared(expression: str, names: tuple[str, ...], jit: bool) -> Verdict:
    """Try `expression` with the values of lane 0 of `names` shared by all lanes."""
    return attempt(piece_of(expression, names), expression, jit=jit)


def letters(expression: str) -> tuple[str, ...]:
    """The lane values that an expression reads."""
    return tuple(name for name in free_names(parse_expression(expression)) if name in examples())


def piece_of(expression: str, made_shared: tuple[str, ...], written: Mapping[str, Any] | None = None) -> Piece:
    """The piece that the lowering makes of `result = expression`, values of the names that are `written` in it."""
    sites: list[int] = []

    def site(*_: Any) -> int:
        sites.append(len(sites))
        return sites[-1]

    read = letters(expression)
    written = written or {}
    lanes = tuple(name for name in read if name not in made_shared and name not in written)
    tree = parse_expression(expression)
    loaded = free_names(tree)
    operands = tuple(name for name in shared() if name in loaded and name != "V")
    code = print_expression(Translation(site, equivalent=_equivalent).of(tree))
    source = f"def piece({', '.join((*lanes, *operands, *made_shared))}):\n    return ({code},)\n"
    namespace = {"tf": tf, "np": np, "pcbatch": pcbatch, OPS: ops, "V": shared()["V"], **layers(), **written}
    execute(source, namespace)
    return Piece(namespace["piece"], lanes, ("result",), (*operands, *made_shared), tuple(sites), (None,))


def _equivalent(path: str) -> str | None:
    """What stands for the function at a path, `tf.pad`, as in a program."""
    root, *steps = path.split(".")
    found = {"tf": tf, "np": np}.get(root)
    for step in steps:
        found = getattr(found, step, None)
    return None if found is None else BACKEND.equivalent(found)


def attempt(piece: Piece, expression: str, *, jit: bool, used: list[str] | None = None) -> Verdict:
    """Run `piece` for all lanes and compare; `used` collects the rules of pcbatch's own that were applied."""
    lanes = [tf.constant(examples()[name]) for name in piece.reads]
    operands = [shared()[name] if name in shared() else tf.constant(examples()[name][0]) for name in piece.shared]
    read_types = [BACKEND.type_of(value[0]) for value in lanes]
    operand_types = [BACKEND.type_of(value) for value in operands]
    notes: list[str] = []

    def note(_: Any, text: str) -> None:
        notes.append(text)

    try:
        (type_,) = BACKEND.facts(piece, read_types, operand_types).types
        _check(piece, [*read_types, *operand_types])

        def run(*values: tf.Tensor) -> list[tf.Tensor]:
            given = [[value] for value in values]
            signature = Signature(read_types, operand_types, [type_])
            reads, same = given[: len(lanes)], given[len(lanes) :]
            with rules.observed(used if used is not None else []):
                (result,), _ = BACKEND.vectorize(piece, signature, reads, same, LANES, note=note)
            return result

        got = BACKEND.compile(run, jit)(*lanes, *operands)
    except CompileError as error:
        first = error.diagnostics[0]
        return Verdict(first.code, first.message)
    except PieceRefusalError as error:
        return Verdict(error.code, error.message)
    except Exception as error:
        explained = BACKEND.explain(error)
        if explained is None:
            raise
        return Verdict("PCB440" if jit else "PCB441", explained.gist)
    _compare(expression, "xla" if jit else "graph", piece, type_, got, lanes, operands)
    return Verdict(looped=bool(notes))


def _check(piece: Piece, types: Sequence[Type]) -> None:
    """Try `piece` for one lane, as whoever reads a program does; PieceRefusalError where that must not be."""
    symbols = BACKEND.symbols(tapes=False)
    symbols.called(lambda: piece.function(*(symbols.symbol(type_, own=True) for type_ in types)))


def _compare(
    expression: str, mode: str, piece: Piece, type_: Type, got: Sequence[Any], lanes: Sequence[Any], operands: Any
) -> None:
    """Raise WrongError where what a mode has given, `[lanes, ...]` leaves, is not what a loop over the lanes gives."""
    for lane in range(len(got[0])):
        (value,), _ = BACKEND.evaluate(piece, [each[lane] for each in lanes], operands)
        for batch, one in zip(got, leaf_tensors(value, type_), strict=True):
            exact = not (one.dtype.is_floating or one.dtype.is_complex)
            if not np.allclose(batch[lane], one, rtol=0 if exact else 1e-3, atol=0 if exact else 1e-4, equal_nan=True):
                raise WrongError(f"{expression}, lane {lane} in {mode}: {batch[lane]} instead of {one}")
