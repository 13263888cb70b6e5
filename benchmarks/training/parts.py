"""The time of a training step: the kernels of pcbatch's compiled programs by block and kind, profiled.

    python -m benchmarks.training.parts [--network "small trees"] [--examples 64] [--steps 12]

A step of `pcbatch_steps` on one thread runs under TensorFlow's profiler. XLA's own text of the compiled programs says
to which block of the machine program each kernel belongs. Of each kernel in turn the least time of all steps counts,
less what the cheapest kernel takes, which is the profiler's.
"""

from __future__ import annotations

import bisect
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import arguments, table
from benchmarks.trees.crew import SEED
from benchmarks.trees.networks import TRAINED

LOOPS = ("while", "conditional")
PRODUCTS = re.compile(r"MatMul| dot\(")
_CALLED = re.compile(r"(?:body|condition|to_apply|true_computation|false_computation)=%([^\s,)}]+)")


class Event(NamedTuple):
    """A kernel's run, or a span of the executor's: nanoseconds."""

    start: float
    length: float
    name: str


class Compiled:
    """The kernels of a compiled program: the block of each, whether it is a product, and which are none of a block."""

    def __init__(self, text: str):
        self.kernels: dict[str, tuple[str, bool]] = {}
        self.labels: dict[str, Counter[str]] = defaultdict(Counter)
        self.above: dict[str, str] = {}
        self.entry = computation = ""
        for line in re.sub(r"/\*index=\d+\*/", "", text).splitlines():
            if begun := re.match(r"(ENTRY )?%(\S+) \(", line):
                computation = begun[2]
                self.entry = computation if begun[1] else self.entry
            elif found := re.match(r"\s+(?:ROOT )?%(\S+) = (?:\([^=]*\)|\S+) ([a-z\-]+)\(", line):
                if found[2] not in LOOPS:
                    self.kernels[found[1]] = computation, PRODUCTS.search(line.split("metadata")[0]) is not None
                if label := re.search(r'op_name="(?:[^"]*/)?(b\d+)/', line):
                    self.labels[computation][label[1]] += 1
                self.above |= dict.fromkeys(_CALLED.findall(line), computation)

    def part(self, computation: str) -> str:
        """The block that a computation belongs to, or else what it is."""
        if computation == self.entry:
            return "before the loop"
        while computation and not self.labels[computation]:
            computation = self.above.get(computation, "")
        return self.labels[computation].most_common(1)[0][0] if computation else "between blocks"


def profiled(network: str, examples: int, steps: int, folder: Path) -> tuple[list[list[Event]], list[Compiled]]:
    """The kernels of each step, forward and then backward, and the two compiled programs."""
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=none"
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    from benchmarks.training.contestants import pcbatch_steps
    from benchmarks.training.losses import targets
    from benchmarks.trees.contestants import one_thread
    from benchmarks.trees.contestants.worker import Job

    one_thread.keep()
    described = TRAINED[network]
    job = Job(described, described.weights(), described.batch(examples, SEED))
    step, aim = pcbatch_steps.prepare(job).step, targets(described, job.batch)
    for _ in range(3):
        step(job.batch, aim)
    texts = [path.read_text() for path in sorted(folder.glob("*cpu_after_optimizations.txt"))]
    programs = [each for each in map(Compiled, texts) if len(each.labels) > 2]
    tf.profiler.experimental.start(str(folder), tf.profiler.experimental.ProfilerOptions(host_tracer_level=3))
    for _ in range(steps):
        step(job.batch, aim)
    tf.profiler.experimental.stop()
    space = xplane_pb2.XSpace()
    space.ParseFromString(next(folder.glob("**/*.xplane.pb")).read_bytes())
    every = sorted(_events(space))
    runs = [each for each in every if each.name == "CpuExecutable::ExecuteAsyncOnStream"]
    starts = [each.start for each in every]
    bounds = [(bisect.bisect(starts, run.start), bisect.bisect(starts, run.start + run.length)) for run in runs]
    return [every[first:last] for first, last in bounds], programs


def _events(space) -> Iterator[Event]:  # type: ignore[no-untyped-def]
    for plane in space.planes:
        for line in plane.lines:
            for each in line.events:
                start = line.timestamp_ns + each.offset_ps / 1e3
                yield Event(start, each.duration_ps / 1e3, plane.event_metadata[each.metadata_id].name)


def parts(runs: list[list[Event]], program: Compiled) -> dict[str, tuple[int, float, float]]:
    """By part of a program: the number of kernels of a run, and microseconds of products and of all others."""
    lengths: dict[str, list[list[float]]] = defaultdict(list)
    for run in runs:
        found = defaultdict(list)
        for event in run:
            if event.name in program.kernels:
                found[event.name].append(event.length)
        for name, each in found.items():
            lengths[name].append(each)
    best = {}
    for name, each in lengths.items():
        usual = Counter(map(len, each)).most_common(1)[0][0]
        best[name] = [min(turns) for turns in zip(*(one for one in each if len(one) == usual), strict=True)]
    base = min(sum(turns) / len(turns) for turns in best.values() if len(turns) >= 20)
    found_parts: dict[str, tuple[int, float, float]] = {}
    for name, turns in best.items():
        computation, is_product = program.kernels[name]
        net = sum(max(turn - base, 0.0) for turn in turns) / 1e3
        count, products, others = found_parts.get(part := program.part(computation), (0, 0.0, 0.0))
        found_parts[part] = count + len(turns), products + net * is_product, others + net * (not is_product)
    return found_parts


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--network", choices=TRAINED, default="small trees")
    parser.add_argument("--examples", type=int, default=64)
    parser.add_argument("--steps", type=int, default=12)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs, programs = profiled(given.network, given.examples, given.steps, Path(folder))
    rows = [
        [way, part, str(count), f"{products / 1e3:.2f}", f"{others / 1e3:.2f}"]
        for place, (way, program) in enumerate(zip(("forward", "backward"), programs, strict=True))
        for part, (count, products, others) in sorted(parts(runs[place::2], program).items())
    ]
    print("\n".join(table(["", "part", "kernels", "products, ms", "others, ms"], rows)))


if __name__ == "__main__":
    main()
