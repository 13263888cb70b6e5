"""Every expression of the catalogue with each operand captured, constant, written and weak, the others being lanes'.

Where an expression runs of lanes' values alone it must run so, too, and give what a loop over the lanes gives.
`python -m tools.operations.operands` prints what does not, a line each (half an hour).
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from pcbatch.errors import CompileError
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type, leaves
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors
from tools.operations.catalogue import LANES, cases, examples, shared
from tools.operations.page import PAGE
from tools.operations.trial import BACKEND, letters, piece_of

Form = Literal["captured", "constant", "written", "weak"]
FORMS: tuple[Form, ...] = ("captured", "constant", "written", "weak")
"""The value of an operand: an array that the function captures, an array of NumPy's that it makes, a number or a list
that is written in it, and, of one number, Python's own that differs by lane."""
WEAK = {"float32": TensorType("float64", (), True), "int32": TensorType("int32", (), True)}


@dataclass(frozen=True)
class Variant:
    """An expression, of which the value `name` has another form than a lane's."""

    expression: str
    name: str
    form: Form

    def __str__(self) -> str:
        return f"{self.expression}, {self.name} {self.form}"


@dataclass(frozen=True)
class Prepared:
    """What is run of a variant: the types of what it reads and gives, and the values."""

    piece: Piece
    signature: Signature
    lanes: list[tf.Tensor]
    operands: list[tf.Tensor]
    alone: list[list[np.ndarray]]
    """The leaves of the result by lane."""


def variants(expression: str, forms: Sequence[Form] = FORMS) -> Iterator[Variant]:
    """The variants of an expression; at least one lane's value is left in it.

    What an arm returns is not written as a list, which is no array to TensorFlow there.
    """
    names = letters(expression)
    for name in names:
        is_number = examples()[name].ndim == 1
        for form in forms:
            is_arm = form == "written" and f"lambda: {name}" in expression
            if is_number if form == "weak" else len(names) > 1 and not is_arm:
                yield Variant(expression, name, form)


def prepared(variant: Variant) -> Prepared | None:
    """What to run; None where TensorFlow alone does not do it for one lane."""
    name, form = variant.name, variant.form
    value = examples()[name][0]
    written: dict[str, Any] = {"constant": {name: value}, "written": {name: value.tolist()}}.get(form, {})
    piece = piece_of(variant.expression, (name,) if form == "captured" else (), written)
    lanes = [tf.constant(examples()[each]) for each in piece.reads]
    operands = [tf.convert_to_tensor(shared()[n] if n in shared() else examples()[n][0]) for n in piece.shared]
    types: list[Type] = [BACKEND.type_of(each[0]) for each in lanes]
    if form == "weak":
        place = piece.reads.index(name)
        types[place] = weak = WEAK[lanes[place].dtype.name]
        lanes[place] = tf.cast(lanes[place], weak.dtype)
    rows = [[_one(each[lane], type_) for each, type_ in zip(lanes, types, strict=True)] for lane in range(LANES)]
    try:
        alone = [BACKEND.evaluate(piece, row, operands)[0][0] for row in rows]
    except Exception:
        return None
    (type_,) = BACKEND.facts(piece, types, [BACKEND.type_of(each) for each in operands]).types
    signature = Signature(types, [BACKEND.type_of(each) for each in operands], [type_])
    found = [[leaf.numpy() for leaf in leaf_tensors(each, type_)] for each in alone]
    return Prepared(piece, signature, lanes, operands, found)


def _one(value: tf.Tensor, type_: Type) -> Any:
    is_weak = isinstance(type_, TensorType) and type_.weak
    return value.numpy().item() if is_weak else value


def wrong(some: Sequence[Variant], *, jit: bool) -> dict[Variant, str]:
    """What is wrong with some variants, all of which are one program."""
    found: dict[Variant, str] = {}
    ready: dict[Variant, Prepared] = {}
    for variant in some:
        try:
            each = prepared(variant)
        except CompileError as error:
            found[variant] = f"{error.diagnostics[0].code}: {error.diagnostics[0].message}"
        else:
            if each is not None:
                ready[variant] = each
    return found | _ran(ready, jit)


def _ran(ready: dict[Variant, Prepared], jit: bool) -> dict[Variant, str]:
    if not ready:
        return {}

    def run(*values: tf.Tensor) -> list[tf.Tensor]:
        rest, results = list(values), []
        for each in ready.values():
            count = len(each.lanes)
            reads, rest = [[value] for value in rest[:count]], rest[count:]
            same, rest = [[value] for value in rest[: len(each.operands)]], rest[len(each.operands) :]
            (result,), _ = BACKEND.vectorize(each.piece, each.signature, reads, same, LANES, note=lambda *_: None)
            results += result
        return results

    try:
        results = iter(
            BACKEND.compile(run, jit)(*(v for each in ready.values() for v in (*each.lanes, *each.operands)))
        )
    except Exception as error:
        if len(ready) == 1:
            return {next(iter(ready)): f"{type(error).__name__}: {error}"}
        halves = list(ready)[::2], list(ready)[1::2]
        return {k: v for half in halves for k, v in _ran({each: ready[each] for each in half}, jit).items()}
    found = {}
    for variant, each in ready.items():
        got = [next(results).numpy() for _ in leaves(each.signature.writes[0])]
        for lane, wanted in enumerate(each.alone):
            if not all(_close(mine[lane], one) for mine, one in zip(got, wanted, strict=True)):
                found[variant] = f"lane {lane}: {[mine[lane] for mine in got]} instead of {wanted}"
    return found


def _close(found: np.ndarray, wanted: np.ndarray) -> bool:
    exact = wanted.dtype.kind not in "fcV"
    return np.allclose(found, wanted, rtol=0 if exact else 1e-3, atol=0 if exact else 1e-4, equal_nan=True)


def accepted(jit: bool) -> list[str]:
    """The expressions that run of lanes' values alone under XLA or in a graph, as the page says."""
    rows = [line.split("` | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    cells = {head.removeprefix("| `"): rest.split(" | ") for head, rest in rows}
    return [each for each in cases() if not cells[each][2 if jit else 1].startswith("PCB")]


def main(*, size: int = 40) -> Iterator[str]:
    """What is wrong with all variants of all expressions."""
    for jit in (True, False):
        every = [variant for expression in accepted(jit) for variant in variants(expression)]
        for start in range(0, len(every), size):
            for variant, text in wrong(every[start : start + size], jit=jit).items():
                yield f"{'xla' if jit else 'graph'}: {variant}: {text}"


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
