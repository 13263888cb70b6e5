"""The page: a table for each family of operations, one row for each expression tried."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.operations.catalogue import NAMES, cases
from tools.operations.trial import Trial, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"

HEAD = """# Operations

What becomes of TensorFlow's operations in a batched function. Each expression below was tried in a batch of lanes that
differ, in a plain graph (`jit=False`) and under XLA, on a CPU, and compared with a loop over the lanes;
`python -m tools.operations` does it and writes this page. There are {total} expressions: {vectorised} are vectorised by
TensorFlow's rules, {ours} by rules of pcbatch, and {refused} are refused in both modes.

- **TensorFlow**: the operation is made on arrays with one axis more, or by TensorFlow's rule for a whole batch (pfor,
  the machinery of `tf.vectorized_map`).
- **pcbatch**: handled by us, because TensorFlow has no rule, or one that gives up, is wrong or slow; the operations
  that have the rule are named.
- **refused**: before anything runs, at the user's line, by the code in the columns. PCB401: it fails for one example.
  PCB402: it has no rule; write `pcbatch.primitive(fn, batched=..)` or `pcbatch.fallback(fn)`. PCB403: it is not pure.
  PCB404: it gives no tensor of static shape. PCB414: XLA cannot compile the loop. PCB440: XLA has no kernel for it.

Names are values of one example, capitals are shared by all lanes:

```
{names}
```
"""


def row(trial: Trial) -> str:
    """One row of a table."""
    return f"| `{trial.expression}` | {kind(trial)} | {_mode(trial.graph)} | {_mode(trial.xla)} |"


def kind(trial: Trial) -> str:
    """Who handles the expression, if anyone."""
    if trial.graph.code and trial.xla.code:
        return "refused"
    return f"pcbatch: {', '.join(trial.rules)}" if trial.rules else "TensorFlow"


def _mode(verdict: Verdict) -> str:
    return verdict.code or "yes"


def page(trials: Sequence[Trial]) -> str:
    """The whole text of docs/operations.md."""
    kinds = [kind(trial).partition(":")[0] for trial in trials]
    lines = [
        HEAD.format(
            total=len(trials),
            vectorised=kinds.count("TensorFlow"),
            ours=kinds.count("pcbatch"),
            refused=kinds.count("refused"),
            names=NAMES.strip("\n"),
        )
    ]
    families = cases()
    for family in dict.fromkeys(families.values()):
        lines += [f"## {family}", "", "| expression | handled by | graph | XLA |", "| --- | --- | --- | --- |"]
        lines += [row(trial) for trial in trials if families[trial.expression] == family]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"
