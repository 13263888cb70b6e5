"""How long do a sampler, programs of many blocks, forked calls and a gradient take to trace and compile?

    python -m benchmarks.compile_time [--repeats 3] [--jobs "201 blocks" ..] [--against FOLDER]
                                      [--json out/compile_time.json]

Programs have the form and the schedule that they have by default, unless a job's name says otherwise: native code where
rows are cheap. `--jobs all` has lockstep and its schedules as well, which take minutes, and the eight cheap tasks of
`benchmarks.against` one by one. Each figure is from a fresh process, the jobs taking turns: wall and CPU seconds of the
first call, and CPU seconds divided by those of a fixed job that XLA compiles (no pcbatch in it), which a busy machine
slows down as well. `trace` and `compile` are the wall seconds of TensorFlow's tracing and of the compiler; `total`, of
both together, stands beside what it is to stay below on a quiet machine of two cores. "first calls" makes those of all
eight tasks. Where PCBATCH_CACHE names a folder, the second time has the figures of processes that find a cache there.
With `--against`, another checkout of pcbatch takes its turn at each job, and its figures follow, with what this one
takes of its tracing and its compiling.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
import pcbatch.nuts
from benchmarks.against.inputs import CHEAP, batch
from benchmarks.against.texts import compiled_by
from benchmarks.harness import arguments, write_json
from examples.fibonacci import fibonacci

CHAINS, ROWS, COLUMNS = 64, 569, 30
SCHEDULES = ("earliest", "busiest", "sweep", "adaptive")
LOOPS = {"102 blocks": 33, "201 blocks": 66}
"""Loops of the generated programs, three blocks each; three more are around them."""
CYCLES = {"cycle of 84 blocks": 12, "cycle of 175 blocks": 25}
"""Functions of the generated programs in which each calls two others, round and round; seven blocks each."""
LIMITS = {"201 blocks": 5.0, "700 lines, 10 helpers": 6.0, "sampler": 5.0}
"""Seconds that `total` is to stay below."""
HERE = Path(__file__).resolve().parent.parent


@pcbatch.autobatch
def halvings(x, limit):
    """How often `x` is halved, or tripled and one added, until it is below `limit`."""
    count = 0
    while x > limit:
        if x % 2 == 0:
            while x % 4 == 0:
                x = x // 4
                count = count + 2
            x = x // 2
        else:
            x = 3 * x + 1
        count = count + 1
    return count


@pcbatch.autobatch(in_axes=(0, 0, None), fork=True)
def folded(x, depth, weights):
    """Two calls at each level, which are made at the same time, and a product of what they give."""
    if depth == 0:
        return x
    both = folded(x, depth - 1, weights) + folded(x * 0.5, depth - 1, weights)
    return tf.tanh(tf.linalg.matvec(weights, both))


@pcbatch.autobatch
def swung(x, turns):
    """A loop of which the gradient is taken."""
    total = x
    for _ in range(turns):
        total = total + tf.sin(x * total)
    return total


def reference() -> None:
    """A job for XLA alone: 150 sums and sines, one after another."""

    @tf.function(jit_compile=True)
    def function(x: tf.Tensor) -> tf.Tensor:
        for turn in range(150):
            x = tf.cumsum(tf.sin(x) * tf.reduce_sum(x) + turn, axis=turn % 2)
        return x

    function(tf.ones((32, 32)))


def log_density(weights: tf.Tensor, data: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    """Logistic regression with a standard normal prior."""
    x, y = data
    logits = tf.linalg.matvec(x, weights[1:]) + weights[0]
    return tf.reduce_sum(y * logits - tf.nn.softplus(logits)) - 0.5 * tf.reduce_sum(weights * weights)


def sampler(schedule: str = "auto") -> Any:
    """The statistics of compiling the sampler of a logistic regression, 569 rows of 30 numbers."""
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    data = (tf.constant(x), tf.constant(random.integers(0, 2, ROWS), tf.float32))
    start = np.zeros(COLUMNS + 1, np.float32)
    samples = pcbatch.nuts.sample(
        log_density, start, data=data, chains=CHAINS, warmup=0, draws=1, chunk=10, step_size=0.05, schedule=schedule
    )
    return samples.stats


def gaussian() -> Any:
    """The same of a normal distribution in 30 dimensions, whose density is native code, too."""
    start = np.zeros(COLUMNS, np.float32)
    settings: dict[str, Any] = {"chains": CHAINS, "warmup": 0, "draws": 1, "chunk": 10, "step_size": 0.05}
    return pcbatch.nuts.sample(lambda x: -0.5 * tf.reduce_sum(x * x), start, **settings).stats


def forked() -> Any:
    """The statistics of compiling a recursion whose calls are forked."""
    folded(tf.ones((16, 64)), tf.range(16) % 4, tf.ones((64, 64)) / 64.0)
    return folded.stats()


def gradient() -> Any:
    """The statistics of compiling a loop and its gradient."""
    x = tf.Variable(tf.ones(64))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(swung(x, tf.range(64) % 8))
    tape.gradient(loss, x)
    return swung.stats()


def loops() -> Any:
    """The statistics of compiling a small program of nested loops."""
    halvings(tf.range(1, 9), tf.ones(8, tf.int32))
    return halvings.stats()


def fibonaccis(form: str = "auto") -> Any:
    """The statistics of compiling naive recursion."""
    program = fibonacci.options(form=form)
    program(tf.range(16))
    return program.stats()


def many_blocks(loops: int, form: str = "auto") -> Any:
    """The statistics of compiling a generated program: that many small loops one after another, inside a loop."""
    lines = ["import pcbatch", "", "@pcbatch.autobatch", "def program(x, turns):", "    for turn in range(turns):"]
    for number in range(loops):
        step = number % 2 + 1
        lines += [f"        while x % {number + 3} > {step}:", f"            x = x - {step}"]
        lines += [f"        x = x * 3 + {number}"]
    program = written([*lines, "    return x", ""]).options(form=form)
    program(tf.range(8), tf.ones(8, tf.int32))
    return program.stats()


def long_function(lines: int, helpers: int) -> Any:
    """The statistics of compiling a generated program: a function of so many lines, a sixth of which call helpers."""
    text = ["import pcbatch", ""]
    for number in range(helpers):
        text += [f"def helper{number}(x, y):", f"    z = x * {number + 2} - y", "    return z % 1009 + x // 3", "", ""]
    text += ["@pcbatch.autobatch", "def program(x, y):"]
    for number in range(lines // 6):
        text += [f"    if x % {number % 7 + 2} == 0:", f"        x = helper{number % helpers}(x, y)", "    else:"]
        text += [f"        x = x + {number}", "    y = (y + x) % 977", f"    x = x - y % {number % 5 + 2}"]
    program = written([*text, "    return x + y", ""]).options()
    program(tf.range(8), tf.range(8))
    return program.stats()


def cycle(functions: int) -> Any:
    """The statistics of compiling a generated program: that many functions, each of which calls two others."""
    lines = ["import pcbatch", ""]
    for number in range(functions):
        name = f"f{number}" if number else "program"
        callees = ((number + 1) % functions, (number * 7 + 3) % functions)
        one, other = (f"f{callee}" if callee else "program" for callee in callees)
        lines += ["@pcbatch.autobatch", f"def {name}(x):", "    if x <= 0:", f"        return x + {number}"]
        lines += [f"    if x % {number % 5 + 2} == 0:", f"        return {one}(x - 1) + {number}"]
        lines += [f"    return {other}(x - 2) * 3", "", ""]
    program = written(lines)
    program(tf.range(8))
    return program.stats()


def written(lines: Sequence[str]) -> Any:
    """The batched function `program` of a file of these lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text("\n".join(lines))
        specification = spec_from_file_location("program", path)
        assert specification is not None
        assert specification.loader is not None
        module = module_from_spec(specification)
        specification.loader.exec_module(module)
        return module.program.options()  # whose source has been read by now


def first_call(task: str) -> Any:
    """The statistics of the first call of a cheap task, of 64 lanes."""
    function = compiled_by(pcbatch.autobatch)[task]
    function(*batch(task, 64))
    return function.stats()


def first_calls() -> None:
    """The first calls of all cheap tasks."""
    for task in CHEAP:
        first_call(task)


JOBS: dict[str, Callable[[], Any]] = {
    "reference": reference,
    "loops": loops,
    **{name: partial(many_blocks, loops) for name, loops in LOOPS.items()},
    **{name: partial(cycle, functions) for name, functions in CYCLES.items()},
    "700 lines, 10 helpers": partial(long_function, 700, 10),
    "first calls": first_calls,
    "sampler": sampler,
    "sampler, density native": gaussian,
    "forked calls": forked,
    "gradient": gradient,
    "Fibonacci": fibonaccis,
}
LOCKSTEP: dict[str, Callable[[], Any]] = {
    "Fibonacci, lockstep": partial(fibonaccis, "lockstep"),
    **{f"{name}, lockstep": partial(many_blocks, loops, "lockstep") for name, loops in LOOPS.items()},
    **{f"sampler, {schedule}": partial(sampler, schedule) for schedule in SCHEDULES},
}
TASKS: dict[str, Callable[[], Any]] = {f"first call, {task}": partial(first_call, task) for task in CHEAP}
ALL = {**JOBS, **TASKS, **LOCKSTEP}


def measured(name: str) -> dict[str, float]:
    """Seconds of a job in this process."""
    wall, processor = time.perf_counter(), time.process_time()
    stats = ALL[name]()
    figures = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - processor}
    if stats is None:
        return figures
    trace, compile = stats.trace_seconds, stats.compile_seconds
    return {**figures, "trace": trace, "compile": compile, "total": trace + compile}


def in_fresh_process(name: str, folder: Path, variables: Mapping[str, str] | None = None) -> dict[str, float]:
    """`measured(name)` of a process that does nothing else, with the pcbatch in `folder` and such variables."""
    command = [sys.executable, __file__, "--inside", name]
    environment = {**os.environ, "PYTHONPATH": f"{folder.resolve()}{os.pathsep}{HERE}", **(variables or {})}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def show(title: str, medians: dict[str, dict[str, float]], columns: Sequence[str]) -> None:
    """Print a table of figures, a row for each job."""
    widths = {column: max(8, len(column)) for column in columns}
    print(f"{title:>24} " + " ".join(column.rjust(width) for column, width in widths.items()))
    for name, each in medians.items():
        shown = (f"{each[column]:.2f}" if column in each else "" for column in columns)
        print(f"{name:>24} " + " ".join(text.rjust(width) for text, width in zip(shown, widths.values(), strict=True)))


def main() -> None:
    """Print the figures."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument("--jobs", nargs="+", choices=(*ALL, "all"), metavar="job", help=", ".join((*ALL, "all")))
    parser.add_argument("--inside", choices=ALL, help="only this job, in this process")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout of pcbatch")
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(measured(options.inside)))
        return
    jobs = list(ALL) if options.jobs == ["all"] else list(dict.fromkeys(("reference", *(options.jobs or JOBS))))
    folders = {"this": HERE} | ({"other": options.against} if options.against else {})
    found: dict[str, dict[str, list[dict[str, float]]]] = {which: {name: [] for name in jobs} for which in folders}
    for _ in range(options.repeats):
        for name in jobs:
            for which, folder in folders.items():
                found[which][name].append(in_fresh_process(name, folder))
    medians = {
        which: {name: {k: statistics.median(each[k] for each in runs) for k in runs[0]} for name, runs in jobs.items()}
        for which, jobs in found.items()
    }
    for which, found_of in medians.items():
        columns = ["wall", "cpu", "ratio", "trace", "compile", "total"]
        columns += ["limit"] if which == "this" else ["trace of it", "compile of it"]
        for name, each in found_of.items():
            each["ratio"] = each["cpu"] / found_of["reference"]["cpu"]
            if name in LIMITS:
                each["limit"] = LIMITS[name]
            if which == "other" and "trace" in each:
                mine = medians["this"][name]
                each |= {f"{part} of it": mine[part] / each[part] for part in ("trace", "compile")}
        show(f"median s, {which}", found_of, columns)
    if options.json:
        write_json(options.json, {"medians": medians, "runs": found})


if __name__ == "__main__":
    main()
