"""The page: a table for each family of operations, one row for each expression tried."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.operations.catalogue import NAMES, cases
from tools.operations.trial import Trial, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"

TABLE = ("| expression | handled by | graph | XLA | natively | gradient |", "| --- | --- | --- | --- | --- | --- |")
HEAD = """# Operations

TensorFlow's operations in a batched function. `python -m tools.operations` writes this page. It tries each expression
below in a batch of lanes that differ, on a CPU: in a plain graph (`jit=False`) and under XLA. Results are compared with
a loop over the lanes.

| expressions | |
|---|---|
| {total} | tried |
| {vectorised} | vectorised by TensorFlow's rules |
| {ours} | vectorised by rules of pcbatch |
| {looped} | without a rule: they run lane after lane |
| {refused} | refused in both modes |
| {native} | run in native code |
| {right} | have gradients |
| {zero} | have none to give |
| {without} | are refused when a gradient is asked for |

The column *handled by*:

- **TensorFlow**: the operation is made on arrays with one axis more, or by TensorFlow's rule for a whole batch (pfor,
  the machinery of `tf.vectorized_map`).
- **pcbatch**: by a rule of pcbatch, because TensorFlow has no rule, or one that gives up, is wrong or slow. The
  operations that have the rule are named.
- **nobody**: there is no rule for many examples at once. It runs for the lanes that take part, one after another
  (`f.stats().notes` and `run.profile()` say so).
- **refused**: before anything runs, at the user's line, by the code in the columns. PCB401: it fails for one example.
  PCB402: it has no rule, and XLA cannot compile it for one lane; write `pcbatch.primitive(fn, batched=..)`. PCB404: its
  result is no tensor of static shape. PCB440: XLA has no kernel for it. PCB112, PCB118, PCB119 and PCB403: it is not
  pure: it assigns a variable, draws, checks or writes something, or has another side effect.

The columns *graph* and *XLA* say how it runs in lockstep: **yes**, vectorised; **lane after lane**; or not, and the
code of the refusal.

Everything is tried as one operation. In a batched function, some loops of TensorFlow are loops of the program, so that
lanes run their turns together ([which](language.md#tensorflow-and-other-libraries)).

The column *natively* is about native code among expensive blocks ([how it works](how-it-works.md)). **yes**: it was
tried there, too. Otherwise it names the operations that keep a block in lockstep. They do not run there, or run better
in lockstep, or are not known to be right. A program that is native as a whole may have sorts and scatters as well.

The column *gradient* is about taped runs ([gradients](gradients.md)), under XLA unless that is refused. **yes**: the
gradient by every float argument is that of a tape over one lane after another, summed over the lanes if all share it.
**none**: no float result depends smoothly on a float, so it is None or zero. A code: it is refused when it is asked
for. PCB602: TensorFlow has no gradient of an operation. PCB603: it has one that cannot be batched, or that XLA cannot
compile. PCB441: it fails while it runs.

Names are values of one example, capitals are shared by all lanes:

```
{names}
```
"""


def row(trial: Trial) -> str:
    """One row of a table."""
    ways = _mode(trial.graph), _mode(trial.xla), _native(trial)
    return f"| `{trial.expression}` | {kind(trial)} | {' | '.join(ways)} | {trial.gradient} |"


def kind(trial: Trial) -> str:
    """Who handles the expression, if anyone."""
    if trial.graph.code and trial.xla.code:
        return "refused"
    if all(verdict.looped or verdict.code for verdict in (trial.graph, trial.xla)):
        return "nobody"
    return f"pcbatch: {', '.join(trial.rules)}" if trial.rules else "TensorFlow"


def _mode(verdict: Verdict) -> str:
    return verdict.code or ("lane after lane" if verdict.looped else "yes")


def _native(trial: Trial) -> str:
    if trial.native is None or trial.xla.code:
        return "no"
    return ", ".join(trial.native) or "yes"


def page(trials: Sequence[Trial]) -> str:
    """The whole text of docs/operations.md."""
    kinds = [kind(trial).partition(":")[0] for trial in trials]
    slopes = [trial.gradient for trial in trials]
    lines = [
        HEAD.format(
            total=len(trials),
            vectorised=kinds.count("TensorFlow"),
            ours=kinds.count("pcbatch"),
            looped=kinds.count("nobody"),
            refused=kinds.count("refused"),
            native=[_native(trial) for trial in trials].count("yes"),
            right=slopes.count("yes"),
            zero=slopes.count("none"),
            without=len(slopes) - slopes.count("yes") - slopes.count("none") - slopes.count("no"),
            names=NAMES.strip("\n"),
        )
    ]
    families = cases()
    for family in dict.fromkeys(families.values()):
        lines += [f"## {family}", "", *TABLE]
        lines += [row(trial) for trial in trials if families[trial.expression] == family]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"
