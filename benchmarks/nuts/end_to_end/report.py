"""What is printed, and the page of docs/figures."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.harness import table
from benchmarks.nuts.end_to_end.crew import Figures, Question, Row
from benchmarks.nuts.end_to_end.posteriors import POSTERIORS

HEAD = ("", "cold, s", "warm, s", "imports, s", "draws of a chain", "least ESS of x", "of x^2", "from the reference")
WIDTH = 22


INTRODUCTION = """\
# From nothing to an effective size

{chains} chains start anywhere in (-2, 2), where scales are logarithms, warm up for {warmup} trajectories and draw.
Each chain makes {draws} draws, then twice as many, and so on, until the least effective size is {enough:.0f}. The
least is taken over all numbers, of x and of the squared distance to the mean ("x^2").

Each sampler warms up by its own method to an acceptance of 0.8, in float32 and on all cores. The metric is diagonal
where nothing else is said:

| | sampler | cores |
| --- | --- | --- |
| `pcbatch` | `pcbatch.nuts.sample` with its defaults: it chooses the kind of metric | its own threads |
| `pcbatch-diag` | the same with `metric="diag"` | its own threads |
| `pcbatch-pooled` | the defaults with `adapt="pooled"` | its own threads |
| `blackjax` | BlackJAX's `window_adaptation` | `jax.pmap` over one device for each core |
| `numpyro` | NumPyro's `MCMC` | `jax.pmap` over one device for each core |
| `blackjax-native`, `numpyro-native` | chains one after another, loops as XLA's native loops | the same |
| `blackjax-native-dense`, `numpyro-native-dense` | the same with a dense metric, learned as in Stan | the same |
| `nutpie` | `nutpie.sample`, in float64, gradients by a call of JAX each | one thread for each core |
| `tfp` | TFP's `windowed_adaptive_nuts` | one thread for each core |
| `tfp-one-device` | the same | all chains in one program |

TFP is faster in one program: its cost is the number of kernels.

- *Cold* is the first run of a new process after its imports. It traces and compiles; nothing is kept on disk.
- *Warm* is the median of later runs with other seeds and starting points.
- *Effective sizes* are the least of all runs, estimated by ArviZ.
- *From the reference* is the largest distance of a mean or a standard deviation in any run, in combined Monte Carlo
  errors. All samplers draw from the same posterior.
"""


def heading() -> str:
    """The head of a printed table."""
    return f"{HEAD[0]:<{WIDTH}}" + "".join(f"{each:>20}" for each in HEAD[1:])


def line(name: str, figures: Figures) -> str:
    """One contestant's line."""
    if figures.failure:
        return f"{name:<{WIDTH}}  {figures.failure}"
    return f"{name:<{WIDTH}}" + "".join(f"{each:>20}" for each in _cells(figures))


def _cells(figures: Figures) -> list[str]:
    imports, cold, warm = figures.times or (0.0, 0.0, 0.0)
    x, x2 = (min(sizes) for sizes in zip(*figures.sizes, strict=True))
    seconds = [f"{each:.2f}" if each < 10 else f"{each:.1f}" for each in (cold, warm, imports)]
    return [*seconds, str(figures.draws), f"{x:.0f}", f"{x2:.0f}", f"{figures.worst:.1f} errors"]


def verdicts(row: Row) -> list[str]:
    """The best of pcbatch beside the best of the others, cold and warm: wins and losses in the same words."""
    said = []
    for place, kind in ((1, "cold"), (2, "warm")):
        seconds = {name: figures.times[place] for name, figures in row.items() if figures.times and not figures.failure}
        ours = min((name for name in seconds if name.startswith("pcbatch")), key=seconds.__getitem__, default=None)
        best = min((name for name in seconds if not name.startswith("pcbatch")), key=seconds.__getitem__, default=None)
        if ours and best:
            ratio = seconds[ours] / seconds[best]
            who = "loses to" if ratio > 1 else "beats"
            said.append(f"{kind}: {ours} {who} {best}, {ratio:.2f} times its time")
    return said


def page(found: Mapping[str, Row], question: Question, origin: str) -> list[str]:
    """The whole page, of rows by posterior."""
    introduction = INTRODUCTION.format(
        chains=question.chains, warmup=question.warmup, draws=question.draws, enough=question.enough
    )
    lines = [introduction, origin]
    for name, row in found.items():
        rows = [[who, *_cells(figures)] for who, figures in row.items() if not figures.failure]
        missing = [f"- {who}: {figures.failure}" for who, figures in row.items() if figures.failure]
        lines += ["", f"## {name}: {POSTERIORS[name].title}", "", *table(HEAD, rows), ""]
        lines += [f"- {text}" for text in verdicts(row)]
        lines += ["", "Missing:", "", *missing] if missing else []
    return lines
