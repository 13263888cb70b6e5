"""Options: what they may be is checked where they are given, not where they would be used."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch import UsageError


def identity(x):
    return x


REFUSED = [
    ({"strategy": "eager"}, "PCB501: strategy must be 'pc' or 'local' or 'hybrid' or 'depth' or 'agenda', not 'eager'"),
    ({"backend": "torch"}, "PCB501: backend must be 'tensorflow' or 'reference', not 'torch'"),
    ({"schedule": "latest"}, "PCB530: there is no schedule 'latest'; there are 'auto', 'earliest', 'busiest', 'sweep'"),
    ({"static_argnames": ("y",)}, "PCB508: static_argnames has 'y', which is no parameter"),
    ({"static_argnames": 3}, "PCB508: static_argnames are names of parameters, not 3"),
    ({"vectorize": False}, "PCB503: the option vectorize is gone"),
    ({"jit": "yes"}, "PCB504: jit must be True, False or 'auto', not 'yes'"),
    ({"max_depth": -1}, "PCB504: max_depth must be None or an int of at least 0, not -1"),
    ({"max_steps": 1.5}, "PCB504: max_steps must be None or an int of at least 0, not 1.5"),
    ({"max_steps": True}, "PCB504: max_steps must be None or an int of at least 0, not True"),
    ({"max_lanes": 0}, "PCB504: max_lanes must be None or an int from 1 to 2147483646, not 0"),
    ({"max_lanes": 2.0}, "PCB504: max_lanes must be None or an int from 1 to 2147483646, not 2.0"),
    ({"max_lanes": True}, "PCB504: max_lanes must be None or an int from 1 to 2147483646, not True"),
    ({"strategy": "local", "max_lanes": 3}, "PCB535: strategy='local' keeps its frames on the host"),
    ({"fork": "yes"}, "PCB504: fork must be True, False or 'auto', not 'yes'"),
    ({"strategy": "local", "fork": True}, "PCB535: strategy='local' keeps its frames on the host"),
    ({"progress": 1}, "PCB504: progress must be True or False, not 1"),
    ({"resume": 5}, "PCB504: resume must be None or a path, not 5"),
    ({"progress": True, "backend": "reference"}, "PCB565: backend='reference' runs lane by lane and not in slices"),
    ({"resume": "run.npz", "backend": "reference"}, "PCB565: backend='reference' runs lane by lane and not in slices"),
    ({"name": 5}, "PCB504: name must be None or a string, not 5"),
    ({"depth": 5}, "PCB501: there is no option 'depth'; did you mean 'max_depth'?; the options are in_axes, "),
    ({"in_axes": 1}, "PCB502: in_axes of 'x' must be 0 or None, not 1"),
    ({"in_axes": False}, "PCB502: in_axes of 'x' must be 0 or None, not False"),
    ({"in_axes": ({"p": (0, 2)},)}, """PCB502: in_axes of "x['p'][1]" must be 0 or None, not 2"""),
    ({"in_axes": (0, 0)}, "PCB502: in_axes has 2 entries for 1 parameters"),
    ({"in_axes": {"y": 0}}, "PCB502: in_axes names 'y', which is no parameter"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refused_at_decoration_and_by_options(options, message):
    with pytest.raises(UsageError) as decorated:
        pcbatch.autobatch(identity, **options)
    with pytest.raises(UsageError) as changed:
        pcbatch.autobatch(identity).options(**options)
    assert str(decorated.value) == str(changed.value)
    assert str(decorated.value).startswith(message)


def test_an_old_option_at_its_default_warns_at_the_users_line():
    with pytest.warns(DeprecationWarning, match="leave vectorize=True away") as decorated:
        function = pcbatch.autobatch(identity, vectorize=True)
    with pytest.warns(DeprecationWarning, match="leave vectorize=True away") as changed:
        assert function.options(vectorize=True) is function
    assert [each.filename for each in (*decorated, *changed)] == [__file__] * 2


def test_a_wrong_option_is_refused_before_there_is_a_function():
    with pytest.raises(UsageError, match="PCB501: there is no option 'jitt'"):
        pcbatch.autobatch(jitt=True)


def test_the_three_ways_to_decorate():
    @pcbatch.autobatch
    def bare(x):
        return x + 1

    @pcbatch.autobatch(jit=False)
    def with_options(x):
        return x + 1

    called = pcbatch.autobatch(identity, name="called", max_steps=3)
    assert [each.changed_options() for each in (bare, with_options, called)] == [
        {},
        {"jit": False},
        {"name": "called", "max_steps": 3},
    ]
    assert repr(with_options).endswith("with_options(x) jit=False>")


def test_a_batched_function_looks_like_the_function():
    """Name, docstring and signature are the user's, so help() and editors show them."""

    @pcbatch.autobatch
    def documented(x, times=2):
        """Says something."""
        return x * times

    assert (documented.__name__, documented.__doc__) == ("documented", "Says something.")
    assert str(documented.__signature__) == "(x, times=2)"


def test_limits_are_statuses_of_lanes():
    """`max_depth` and `max_steps` are facts of the source: what a lane does, not how it is run."""

    @pcbatch.autobatch(jit=False)
    def down(n):
        return 0 if n <= 0 else 1 + down(n - 1)

    batch = np.array([2, 3], np.int32)
    assert down.options(max_depth=2).run(batch).status.tolist() == [0, pcbatch.LaneStatus.MAX_DEPTH]
    assert down.options(max_steps=2).run(batch).status.tolist() == [0, pcbatch.LaneStatus.MAX_STEPS]


@pytest.mark.parametrize(
    ("call", "more"),
    [
        (lambda f: f.ir("ssa"), ", 'adjoint', 'llvm', 'ptx' and 'loop'"),
        (lambda f: f.program("bytecode", np.ones(2)), ""),
    ],
    ids=["ir", "program"],
)
def test_stages_are_named(call, more):
    stages = f"'cfg', 'stack', 'optimized', 'machine'{more}" if more else "'cfg', 'stack', 'optimized' and 'machine'"
    with pytest.raises(UsageError, match=f"PCB505: there is no stage .*; the stages are {stages}"):
        call(pcbatch.autobatch(identity))
