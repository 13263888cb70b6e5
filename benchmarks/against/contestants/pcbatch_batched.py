"""pcbatch; the variant is the option `form`."""

from __future__ import annotations

import functools
from typing import Any

import pcbatch
from benchmarks.against.contestants.worker import Call, Job, serve
from benchmarks.against.texts import compiled_by


@functools.cache
def _tasks() -> dict[str, Any]:
    return compiled_by(pcbatch.autobatch)


def prepare(job: Job) -> Call:
    """A call of the batched function."""
    function = _tasks()[job.task].options(form=job.variant, output="numpy")
    given = job.arguments()
    return lambda: function(*given)


if __name__ == "__main__":
    serve(prepare)
