"""The sampler under the paper's other machines: the same draws; launches as counted from the trees alone."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts
from pcbatch.function.batched import Batched
from pcbatch.ir.machine import PushJump
from pcbatch.runtime.report.run import Run
from tests.launches import launches, walked

SAMPLED: dict[str, Any] = {"chains": 3, "warmup": 4, "draws": 6, "seed": 2, "progress": False, "dtype": "float64"}
SAMPLED |= {"metric": "diag"}


def density(q: tf.Tensor) -> tf.Tensor:
    return -0.5 * tf.reduce_sum(q * q * tf.constant([1.0, 4.0], tf.float64))


@pytest.mark.slow
@pytest.mark.parametrize("other", [{"strategy": "local"}, {"strategy": "hybrid"}, {"schedule": "switch"}], ids=str)
def test_draws_are_those_of_the_default(other: dict[str, Any]) -> None:
    wanted = nuts.sample(density, np.zeros(2), **SAMPLED)
    found = nuts.sample(density, np.zeros(2), **SAMPLED, **other)
    for name, draws in wanted.posterior.items():
        np.testing.assert_allclose(found.posterior[name], draws, rtol=1e-6)
    np.testing.assert_array_equal(found.sample_stats["n_steps"], wanted.sample_stats["n_steps"])


def called_by(function: Any) -> list[Any]:
    """The plain functions of a batched function of the sampler and of those that it calls."""
    cells = (cell.cell_contents for cell in function.function.__closure__)
    callees = [each for each in cells if isinstance(each, Batched) and each.function is not function.function]
    return [function.function, *(each for callee in callees for each in called_by(callee))]


@pytest.mark.slow
def test_launches_are_those_of_the_plain_recursions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Line by line those of Algorithm 1 on paper, for what the chains do as plain Python; gradients among them."""
    seen: list[tuple[Any, tuple[Any, ...], Run]] = []

    run = Batched.run
    monkeypatch.setattr(Batched, "run", lambda self, *args: noted(self, args))

    def noted(function: Any, args: tuple[Any, ...]) -> Run:
        found = run(function, *args)
        if function.__name__ == "chain":
            seen.append((function, args, found))
        return found

    samples = nuts.sample(density, np.zeros(2), **SAMPLED, strategy="local")
    rows = 0
    for chain, args, found in seen:
        by_chain, shared = args[:9], args[9:]
        chains = len(by_chain[0])

        def alone(number: int, by_chain: Any = by_chain, shared: Any = shared, chain: Any = chain) -> None:
            chain.single(*tf.nest.map_structure(lambda array: array[number], by_chain), *shared)

        functions = called_by(chain)
        assert [each.__name__ for each in functions] == ["chain", "transition", "build_tree"]
        counted = launches([walked(lambda number=number: alone(number), functions) for number in range(chains)])
        compared = 0
        for function in found.profile().functions:
            for line in function.lines:
                place = (function.name, line.number)
                # Blocks end in calls and conditions, and in each part of `and` and `or`; copies such as that of
                # `proposal` move to where they are read.
                if place in counted.calls or re.search(r" or | and |= proposal", line.text):
                    continue
                if place in counted.places:
                    assert (line.counts.runs, line.counts.active) == (counted.places[place], counted.lanes[place])
                    compared += 1
                rows += counted.places[place] * chains if "leapfrog(" in line.text else 0
        assert compared > 50
        calls = [block.label for block in found.program.blocks if isinstance(block.terminator, PushJump)]
        assert sum(found.executions[label] for label in calls) == counted.calls.total()
    assert samples.cost.rows == rows > 0


@pytest.mark.parametrize("other", [{"jit": False}, {"schedule": "sweep"}], ids=str)
def test_a_strategy_has_no_schedule_of_the_machine(other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="PCB551: strategy='local'"):
        nuts.sample(density, np.zeros(2), **SAMPLED, strategy="local", **other)
