"""How public objects show themselves, travel between processes, share a cache between threads, and talk to a log."""

from __future__ import annotations

import copy
import gc
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import threading
import typing
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import CompileError, LaneError, UsageError
from pcbatch.function.cache import Stats
from pcbatch.function.compilation_cache import SIGNATURES
from pcbatch.options import BACKENDS, STRATEGIES, Options, OptionValues, ScheduleName
from pcbatch.runtime.schedules import SCHEDULES
from tests.api.halvings import BATCH, fresh
from tests.schedules import GATHERING, RANDOM

ROOT = Path(__file__).parents[2]


@pcbatch.autobatch(jit=False)
def quotient(a: int, b: int = 2, table: object = np.arange(1000)):
    assert a < 100, "too large"
    return a // b


def slow(n):
    return n + 1


fast = pcbatch.autobatch(slow, jit=False)


# -- showing themselves ------------------------------------------------------------------------------------------------


def test_reprs() -> None:
    run = quotient.options(in_axes={"table": None}).run(BATCH, np.array([1, 0, 2, 5], np.int32))
    shown = {
        "<pcbatch.Batched quotient(a, b=2, table=..) jit=False>": quotient,
        "<pcbatch.Batched quotient(a, b=2, table=..) jit=False, max_steps=9>": quotient.options(max_steps=9),
        "<pcbatch.Run of quotient: 1 of 4 lanes failed, 1 trips, 2 block runs, 100% of the rows of use>": run,
        "<pcbatch.Utilization: 100% of 8 rows>": run.utilization,
        "<pcbatch.LaneError: 1 of 4 lanes of quotient failed>": LaneError(run),
        "<pcbatch.Stats: 2 compilations of 1 signatures, traced in 0.123 s, compiled in 4.57 s>": Stats(
            2, 1, 0.12345, 4.5678
        ),
    }
    assert {repr(value): type(value) for value in shown.values()} == {text: type(v) for text, v in shown.items()}


def test_reprs_of_large_batches_are_short() -> None:
    run = fresh().run(np.full(5000, 3, np.int32))
    assert len(repr(run)) < 100
    assert len(run.report()) < 1000
    assert "and 4980 more lanes" in run.report()


# -- options as type checkers know them --------------------------------------------------------------------------------


def test_the_typed_options_are_the_options() -> None:
    assert list(OptionValues.__annotations__) == list(vars(Options()))
    assert set(typing.get_args(ScheduleName)) == {"auto", *SCHEDULES} - {RANDOM, GATHERING}
    assert set(STRATEGIES) == {"pc", "local", "hybrid", "depth", "agenda"}
    assert set(BACKENDS) == {"tensorflow", "reference"}


def test_help_shows_every_option() -> None:
    import inspect

    parameters = inspect.signature(pcbatch.autobatch).parameters
    assert list(parameters) == ["fn", *vars(Options())]
    assert parameters["jit"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["jit"].default is True
    assert list(inspect.signature(pcbatch.Batched.options).parameters) == ["self", *vars(Options())]


@pytest.mark.parametrize("options", [{"max_steps": 5}, {}], ids=["options", "none"])
def test_what_is_batched_is_not_batched_again(options) -> None:
    with pytest.raises(UsageError, match=r"PCB570: fast is a batched function already; fast\.options"):
        pcbatch.autobatch(pcbatch.autobatch(slow, name="fast"), **options)


# -- between processes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_by_name(protocol) -> None:
    for function in (quotient, quotient.options(max_steps=9, name="q"), fast, fast.options(schedule="earliest")):
        assert pickle.loads(pickle.dumps(function, protocol)) is function


def test_copies_are_the_function() -> None:
    assert copy.copy(quotient) is quotient
    assert copy.deepcopy({"f": quotient})["f"] is quotient


def test_a_local_function_is_not_pickled() -> None:
    with pytest.raises(pickle.PicklingError, match=r"PCB571: .*halvings cannot be found .*defined inside a function"):
        pickle.dumps(fresh())


def test_a_name_that_means_something_else_is_not_pickled(monkeypatch) -> None:
    before, kept = quotient, pickle.dumps(fast)
    monkeypatch.setattr(sys.modules[__name__], "quotient", slow)
    with pytest.raises(UsageError, match=r"PCB571: .*that name is something else now"):
        pickle.dumps(before)
    monkeypatch.setattr(sys.modules[__name__], "fast", slow)
    with pytest.raises(UsageError, match=r"PCB571: the module .* has no batched function fast"):
        pickle.loads(kept)


def errors():
    """One of each public error, from real mistakes."""

    @pcbatch.autobatch(jit=False)
    def wrong(xs):
        return 1 if xs > 0 else 2

    for function, args in ((quotient, (BATCH + 97,)), (wrong, (np.ones((2, 3)),)), (quotient, ())):
        try:
            function.options(in_axes={"table": None} if function is quotient else 0)(*args)
        except pcbatch.PcbatchError as error:
            yield error


def test_errors_survive_a_pickle() -> None:
    """Else a pool of processes hangs on them."""
    made = list(errors())
    assert [type(error).__mro__[1] for error in made] == [pcbatch.PcbatchError, CompileError, UsageError]
    for error in made:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
    assert pickle.loads(pickle.dumps(made[1])).diagnostics == made[1].diagnostics
    assert pickle.loads(pickle.dumps(made[0])).run.status.tolist() == made[0].run.status.tolist()


# -- settings of TensorFlow's ------------------------------------------------------------------------------------------


def test_running_functions_eagerly_is_for_the_users_own() -> None:
    """A switch for debugging: with it on a batched function is still one program, alone and in a tf.function."""
    halvings, sliced = fresh(), fresh().options(progress=True)
    outer = tf.function(lambda n: halvings(n) + 1, autograph=False)
    tf.config.run_functions_eagerly(True)
    try:
        results = [halvings(BATCH), sliced(BATCH), outer(BATCH) - 1]
        halvings.check(np.tile(BATCH, 2))
        assert tf.config.functions_run_eagerly()
    finally:
        tf.config.run_functions_eagerly(False)
    assert [np.asarray(result).tolist() for result in results] == [[1, 2, 2, 2]] * 3
    halvings(BATCH)
    assert halvings.stats().compilations == 2


# -- one example -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_one_example_fails_as_python_does(dtype) -> None:
    """What TensorFlow raises for tensors is ZeroDivisionError and IndexError, at the user's line."""
    number = np.ones(1, dtype)[0]

    @pcbatch.autobatch(jit=False)
    def rest(a, b, xs):
        quotient = a // b
        return xs[a] + quotient % b

    for arguments, error in (((number, number - number), ZeroDivisionError), ((number, number), IndexError)):
        with pytest.raises(error) as raised:
            rest.single(*arguments, np.ones(1, dtype))
        assert any(frame.name == "rest" for frame in raised.traceback)


def test_an_empty_path_names_no_file(capsys) -> None:
    for path in ("", "a\0b"):
        with pytest.raises(UsageError, match="PCB504: resume must be None or a path"):
            fresh().options(resume=path)
        with pytest.raises(UsageError, match="PCB595: a file cannot be called"):
            fresh().options(progress=True).run(BATCH).save(path)


# -- between threads ---------------------------------------------------------------------------------------------------


def together(count, action):
    """`action(number)` in as many threads as there are numbers, all starting at the same moment."""
    barrier = threading.Barrier(count)

    def started(number):
        barrier.wait()
        return action(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(started, range(count)))


def test_two_threads_that_call_first_compile_once() -> None:
    halvings = fresh()
    results = together(4, lambda number: np.asarray(halvings(BATCH + 8 * (number % 2))).tolist())
    assert results == [[1, 2, 2, 2], [3, 3, 3, 3]] * 2
    assert (halvings.stats().compilations, halvings.stats().cache_entries) == (1, 1)


def test_threads_with_signatures_of_their_own() -> None:
    halvings = fresh()
    dtypes = [np.int8, np.int16, np.int32, np.int64]
    results = together(8, lambda number: halvings(BATCH[: 2 + number // 4].astype(dtypes[number % 4])))
    assert [np.asarray(result).tolist() for result in results] == [[1, 2]] * 4 + [[1, 2, 2]] * 4
    assert halvings.stats().cache_entries == 4
    assert 4 <= halvings.stats().compilations <= 8, "a program for 3 lanes serves 2"


def test_threads_that_ask_for_the_same_options_get_the_same_function() -> None:
    halvings = fresh()
    assert len(set(map(id, together(8, lambda number: halvings.options(max_steps=100))))) == 1


def test_a_refusal_in_one_thread_leaves_the_others_alone() -> None:
    halvings = fresh()

    def called(number):
        if number % 2:
            with pytest.raises(CompileError, match="PCB302"):
                halvings(np.ones((2, 3), np.int32))
            return None
        return np.asarray(halvings(BATCH)).tolist()

    assert together(4, called) == [[1, 2, 2, 2], None] * 2


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_the_cache_is_bounded() -> None:
    """What was used longest ago goes first; statistics keep counting."""

    @pcbatch.autobatch(backend="reference")
    def total(xs):
        return tf.reduce_sum(xs)

    assert total.session.compiled.limit == SIGNATURES
    total.session.compiled.limit = 3
    for size in range(4):
        total.source(np.ones((2, size), np.float32))
        total.source(np.ones((2, 0), np.float32))  # used again and again
    assert total.stats().cache_entries == 3
    assert len(total.session.statistics) == 4
    total.source(np.ones((2, 0), np.float32))
    assert len(total.session.statistics) == 4
    total.source(np.ones((2, 1), np.float32))
    assert len(total.session.statistics) == 5


def test_many_sets_of_options_are_not_kept() -> None:
    limited = fresh()
    for limit in range(2 * SIGNATURES):
        limited.options(max_steps=limit)
    assert len(limited._family) == SIGNATURES
    assert limited.options() is limited


def test_captured_arrays_and_arguments_are_let_go() -> None:
    """A compiled program keeps the types of what it reads, not the arrays of the first call."""
    names = {"W": np.ones(1000, np.float32)}

    @pcbatch.autobatch(jit=False)
    def weighed(x):
        return x * tf.reduce_sum(names["W"])

    batch = np.ones(3, np.float32)
    assert np.asarray(weighed(batch)).tolist() == [1000.0] * 3
    kept = [weakref.ref(names["W"]), weakref.ref(batch)]
    del batch
    names["W"] = np.full(1000, 2.0, np.float32)
    gc.collect()
    assert [ref() for ref in kept] == [None, None]
    assert np.asarray(weighed(np.ones(3, np.float32))).tolist() == [2000.0] * 3
    assert weighed.stats().compilations == 1


# -- the log -----------------------------------------------------------------------------------------------------------


def test_compilations_are_logged(caplog) -> None:
    halvings = fresh()
    with caplog.at_level(logging.DEBUG, "pcbatch"):
        halvings(BATCH)
        halvings(BATCH)
    texts = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "pcbatch"]
    assert [level for level, _ in texts] == ["DEBUG", "INFO"]
    assert texts[0][1] == "halvings: generated code for (n: int32[])"
    assert texts[1][1].startswith("halvings: compiled (n: int32[]) for 4 lanes in ")


# -- what the library leaves alone -------------------------------------------------------------------------------------

QUIET = """
import json, os, sys
before, path = dict(os.environ), list(sys.path)
import pcbatch, pcbatch.nuts, pcbatch.random
import tensorflow as tf
after_tensorflow = dict(os.environ)
import numpy as np
sys.path.insert(0, ROOT)
from tests.corpus.gcd import gcd
import logging
imported = dict(os.environ)
gcd.options(jit=False)(np.array([12, 18]), np.array([8, 12]))
gcd.ir("optimized")
from tests.adjoint.programs import loop
x = tf.constant([[3.0, 9.0, 1.0]], tf.float64)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = loop.options(jit=False, tape="replay")(x, np.array([2]))
tape.gradient(y, x)
print(json.dumps([imported == dict(os.environ), path == sys.path[1:], logging.getLogger().handlers == [],
                  logging.getLogger("pcbatch").level]))
"""


def test_running_changes_neither_environment_nor_path_nor_log() -> None:
    code = QUIET.replace("ROOT", repr(str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout) == [True, True, True, 0]
    assert "halvings" not in done.stderr
    told = [line for line in done.stderr.splitlines() if re.match("[EWF][0-9]{4} ", line)]
    assert [line for line in told if "graph" in line] == [], "TensorFlow's optimiser of graphs finds nothing wrong"


def test_only_what_a_user_asks_for_and_the_import_of_tensorflow_change_the_environment() -> None:
    """TensorFlow sets variables of its own when it is imported, so this is read off the source.

    The cache that a user asks for tells XLA where it is until TensorFlow has started, see `test_disk_processes.py`; and
    TF_CPP_MIN_LOG_LEVEL is set for that import alone, see `test_quiet.py`. `pcbatch.gpu(device_loops=True)` adds two
    flags of XLA's, see `test_device_loops.py`.
    """
    changing = re.compile(r"environ\[[^]]*\] =|environ\.(?!get\b)\w+|putenv")
    files = (ROOT / "pcbatch").rglob("*.py")
    touching = [str(path.relative_to(ROOT)) for path in files if changing.search(path.read_text(encoding="utf-8"))]
    assert sorted(touching) == [
        "pcbatch/device_loops.py",
        "pcbatch/quiet.py",
        "pcbatch/runtime/store/cache_session.py",
    ]
