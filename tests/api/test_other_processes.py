"""Functions, runs and errors in other processes: by name, by value, and without the program."""

import copy
import linecache
import pickle
import subprocess
import sys
import types

import cloudpickle
import numpy as np
import pytest

import pcbatch
from pcbatch import LaneStatus, UsageError
from pcbatch.runtime.report.run import LaneError

SCRIPT = """
import pcbatch

def helper(x):
    return x * 2 if x > 2 else x

@pcbatch.autobatch
def odd(n):
    return 0 if n == 0 else even(n - 1)

@pcbatch.autobatch
def even(n):
    return 1 if n == 0 else odd(n - 1)

@pcbatch.autobatch
def fib(n, k=1):
    assert n < 30, f"{n} is too many"
    if n <= 1:
        return k
    return fib(n - 2) + fib(n - 1)

@pcbatch.autobatch(max_steps=100)
def limited(x):
    while x > 0:
        x = helper(x) - 1
    return x

tight = limited.options(max_steps=3)

class Model:
    def __init__(self, w):
        self.w = w

    @staticmethod
    @pcbatch.autobatch
    def twice(x):
        return 2 * x

    @pcbatch.autobatch
    def scaled(self, x):
        return self.w * x

    def plainly(self, x):
        return self.w + x

    moved = pcbatch.autobatch(plainly)

    @pcbatch.autobatch
    @classmethod
    def named(cls, x):
        return len(cls.__name__) * x
"""


@pytest.fixture
def main(tmp_path, monkeypatch):
    """A program that runs as `__main__`; what comes after it is a worker, whose `__main__` is another."""
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    exec(compile(SCRIPT, str(path), "exec"), vars(module))

    def worker():
        path.unlink()
        linecache.cache.pop(str(path), None)
        monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))

    module.worker = worker
    return module


def test_functions_of_main_by_name(main):
    """To who has them, as the processes that `multiprocessing` makes."""
    for function in (main.fib, main.tight, main.Model.twice):
        assert pickle.loads(pickle.dumps(function)) is function
    kept = pickle.dumps(main.fib)
    main.worker()
    with pytest.raises(AttributeError, match="fib"):
        pickle.loads(kept)


def test_functions_of_main_by_value(main):
    """To who has not, as the workers of Dask: with those that they call, options, defaults and the text of the file."""
    sent = cloudpickle.dumps((main.fib, main.odd, main.limited, main.tight, main.Model))
    main.worker()
    fib, odd, limited, tight, model = pickle.loads(sent)
    assert np.asarray(fib([3, 7, 4, 5])).tolist() == [3, 21, 5, 8]
    assert np.asarray(fib([1, 2], [2, 2])).tolist() == [2, 2]
    assert np.asarray(odd([3, 4])).tolist() == [1, 0]
    assert limited.options(max_steps=3) is tight
    assert tight.run([1, 9]).status.tolist() == [LaneStatus.OK, LaneStatus.MAX_STEPS]
    assert np.asarray(model(3.0).scaled([1.0, 2.0])).tolist() == [3.0, 6.0]
    assert np.asarray(model.twice([1, 2])).tolist() == [2, 4]
    assert 'assert n < 30, f"{n} is too many"' in str(fib.run([45]).errors[0])
    again = pickle.loads(cloudpickle.dumps(fib))  # from a worker to the next one
    assert (again.__qualname__, repr(again)) == ("fib", repr(fib))
    assert np.asarray(again([5])).tolist() == [8]


@pytest.mark.parametrize("by_value", [False, True])
def test_methods_with_their_objects(main, by_value):
    model = main.Model(3.0)
    bound = (model.scaled, model.scaled.options(max_steps=9), model.moved, main.Model.named)
    sent = (cloudpickle if by_value else pickle).dumps((model, *bound))
    if by_value:
        main.worker()
    again, scaled, limited, moved, named = pickle.loads(sent)
    assert again.scaled is scaled is not bound[0]
    assert (limited is scaled.options(max_steps=9), moved is again.moved) == (True, True)
    for function, wanted in ((scaled, [3.0, 6.0]), (limited, [3.0, 6.0]), (moved, [4.0, 5.0]), (named, [5.0, 10.0])):
        assert np.asarray(function([1.0, 2.0])).tolist() == wanted


def test_modules_that_cloudpickle_is_to_take_apart(monkeypatch):
    module = types.ModuleType("tests_of_a_program")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    linecache.cache["tests of a program"] = (1, None, SCRIPT.splitlines(keepends=True), "tests of a program")
    exec(compile(SCRIPT, "tests of a program", "exec"), vars(module))
    cloudpickle.register_pickle_by_value(module)
    try:
        sent = cloudpickle.dumps(module.odd)
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    monkeypatch.delitem(sys.modules, module.__name__)
    assert np.asarray(pickle.loads(sent)([3, 4])).tolist() == [1, 0]


@pytest.mark.slow
def test_a_process_of_its_own(tmp_path):
    script, sent = tmp_path / "program.py", tmp_path / "sent"
    script.write_text(f"{SCRIPT}\nimport cloudpickle\ncloudpickle.dump(fib, open({str(sent)!r}, 'wb'))\n")
    subprocess.run([sys.executable, str(script)], check=True, timeout=200)
    script.unlink()
    read = f"import pickle; print(pickle.load(open({str(sent)!r}, 'rb')).run([3, 7]).value.numpy())"
    found = subprocess.run([sys.executable, "-c", read], check=True, capture_output=True, text=True, timeout=200)
    assert found.stdout.split() == ["[", "3", "21]"]


@pcbatch.autobatch
def fib(n):
    assert n < 30, f"{n} is too many"
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


def made(kind):
    """A run of each kind, some lane of which has failed."""
    options = {"native": {}, "lockstep": {"form": "lockstep"}, "trace": {"trace": 50}, "slices": {"progress": True}}
    return fib.options(**options[kind]).run([3, 7, 40])


@pytest.mark.parametrize(
    "kind", ["native", "trace", *(pytest.param(k, marks=pytest.mark.slow) for k in ("lockstep", "slices"))]
)
def test_runs_without_their_program(kind):
    run = made(kind)
    again = pickle.loads(pickle.dumps(run))
    for each in (again, pickle.loads(pickle.dumps(again))):
        assert np.asarray(each.value).tolist() == [3, 21, 0]
        assert each.status.tolist() == run.status.tolist()
        assert each.errors == run.errors
        assert [str(error) for error in each.errors] == [str(error) for error in run.errors]
        assert (each.executions, each.utilization) == (run.executions, run.utilization)
        assert (each.trips, each.block_runs, each.seconds) == (run.trips, run.block_runs, run.seconds)
        assert each.lane_steps.tolist() == run.lane_steps.tolist()
        assert (each.report(), each.as_json(), repr(each)) == (run.report(), run.as_json(), repr(run))
        assert (each.result(1), each.interrupted) == (21, False)
        with pytest.raises(LaneError, match="40 is too many"):
            each.check()
        for what in (each.profile, lambda each=each: each.save("run.npz")):
            with pytest.raises(UsageError, match=r"PCB576: this run of fib .* needs the program"):
                what()
    if kind == "trace":
        assert again.trace == run.trace
    else:
        with pytest.raises(UsageError, match="PCB561"):
            again.trace  # noqa: B018
    assert copy.copy(run) is run
    assert copy.deepcopy([run])[0] is run


def _positive(x):
    assert x > 0
    return x


def test_errors_keep_their_runs():
    """And nothing is run anew for them."""
    with pytest.raises(LaneError) as caught:
        fib([3, 40])
    error = pickle.loads(pickle.dumps(caught.value))
    assert (type(error), str(error), repr(error)) == (LaneError, str(caught.value), repr(caught.value))
    assert np.asarray(error.run.value).tolist() == [3, 0]
    assert error.run.status.tolist() == [LaneStatus.OK, LaneStatus.ASSERTION]
    with pytest.raises(UsageError, match=r"PCB576: .*what its blocks did, which was not counted"):
        error.run.executions  # noqa: B018
    with pytest.raises(LaneError) as caught:
        pcbatch.autobatch(_positive, form="lockstep")([3, -1])
    error = pickle.loads(pickle.dumps(caught.value))
    assert repr(error.run) == "<pcbatch.Run of _positive: 1 of 2 lanes failed, from a pickle>"
    stopped = pcbatch.RunInterruptedError(made("native"))
    again = pickle.loads(pickle.dumps(stopped))
    assert (str(again), again.run.status.tolist()) == (str(stopped), stopped.run.status.tolist())


def test_an_error_arrives_though_its_results_cannot():
    from typing import NamedTuple

    class Pair(NamedTuple):
        a: float
        b: float

    @pcbatch.autobatch
    def pair(x):
        assert x > 0
        return Pair(x, 2 * x)

    with pytest.raises(LaneError) as caught:
        pair([1.0, -1.0])
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert not hasattr(error, "run")
