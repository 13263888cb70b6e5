"""`pcbatch.shard` on executors: threads, spawned processes, and a cluster of Dask's where that is installed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneError, UsageError
from pcbatch.function.sharding import workers_of

ROOT = Path(__file__).parents[2]


class State(NamedTuple):
    steps: object
    rest: object


@pcbatch.autobatch
def hailstone(n, limit=200):
    assert n > 0, f"{n} is not positive"
    steps = 0
    while n != 1 and steps < limit:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return State(steps, {"n": n})


@pcbatch.autobatch
def walk(key, x):
    while abs(x) < 3:
        key, now = pcbatch.random.split(key)
        x += pcbatch.random.normal(now)
    return x


@pcbatch.autobatch(in_axes={"table": None, "i": {"at": 0, "by": None}})
def looked_up(table, i, *, twice=False):
    found = table[i["at"]] * i["by"]
    return found * 2 if twice else found


NUMBERS = np.arange(1, 31, dtype=np.int32)
NUMBERS[[4, 20]] = 0


class Threads(Executor):
    """Threads that are not known as such: what they get and give is pickled."""

    def __init__(self, threads):
        self.threads, self._max_workers = threads, threads._max_workers

    def submit(self, function, /, *args):
        return self.threads.submit(lambda: pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(args))))))


@pytest.fixture(scope="module")
def executor():
    with ThreadPoolExecutor(3) as threads:
        yield Threads(threads)


def same(one, other):
    assert type(one.value) is type(other.value)
    for a, b in zip(tf.nest.flatten(one.value), tf.nest.flatten(other.value), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.status, other.status)
    np.testing.assert_array_equal(one.lane_steps, other.lane_steps)
    assert one.errors == other.errors


@pytest.mark.parametrize("shards", [None, 1, 4, 100])
def test_values_statuses_and_errors_are_those_of_one_batch(executor, shards):
    sharded = pcbatch.shard(hailstone, executor, shards)
    whole = hailstone.run(NUMBERS)
    same(sharded.run(NUMBERS), whole)
    assert [fault.lane for fault in sharded.run(NUMBERS).errors] == [4, 20]
    with pytest.raises(LaneError, match="2 of 30 lanes of hailstone failed") as failed:
        sharded(NUMBERS)
    same(failed.value.run, whole)
    np.testing.assert_array_equal(sharded(NUMBERS[:4], limit=2).steps, hailstone(NUMBERS[:4], limit=2).steps)


def test_lanes_keep_their_keys_and_bits(executor):
    keys = np.asarray(pcbatch.random.split(pcbatch.random.key(0), 20))
    starts = np.linspace(-1, 1, 20, dtype=np.float32)
    np.testing.assert_array_equal(pcbatch.shard(walk, executor)(keys, starts), walk(keys, starts))


def test_what_all_lanes_share_goes_to_all_parts(executor):
    table, given = tf.range(5.0), {"at": [4, 0, 2, 1, 3], "by": 3}
    for more in ({}, {"twice": True}):
        found = pcbatch.shard(looked_up, executor)(table, given, **more)
        np.testing.assert_array_equal(found, looked_up(table, given, **more))
    f = looked_up.options(in_axes={"i": None, "table": None})
    given = {"at": 4, "by": 3}
    assert pcbatch.shard(f, executor)(table, given, lanes=5).numpy().tolist() == [12.0] * 5


def test_results_come_as_the_function_gives_them(executor):
    sharded = pcbatch.shard(hailstone, executor)
    assert isinstance(sharded([27, 7]).steps, tf.Tensor)
    assert isinstance(sharded.options(output="numpy")([27, 7]).steps, np.ndarray)
    assert sharded([]).steps.shape == (0,)
    run = sharded.run(NUMBERS)
    assert repr(run) == "<pcbatch.Run of hailstone: 2 of 30 lanes failed, from 3 parts>"
    same(pickle.loads(pickle.dumps(run)), run)
    with pytest.raises(UsageError, match=r"PCB576: this run of hailstone comes out of 3 parts"):
        run.profile()
    assert repr(sharded) == f"<pcbatch.Sharded {hailstone!r} on Threads>"


def test_progress_is_shown_by_parts(executor, capfd):
    pcbatch.shard(hailstone.options(progress=True), executor)(NUMBERS[:4])
    assert "hailstone: 100%" in capfd.readouterr().err


class Fake(Executor):
    """An executor whose workers do as they are told."""

    def __init__(self, do):
        self.do = do
        self.futures = []

    def submit(self, function, /, *args):
        future = Future()
        self.futures.append(future)
        self.do(len(self.futures), future, lambda: function(*args))
        return future


def test_threads_get_what_is_given():
    @pcbatch.autobatch
    def nobody_finds(n):
        return 2 * n

    with ThreadPoolExecutor(2) as threads:
        assert pcbatch.shard(nobody_finds, threads)([1, 2, 3]).numpy().tolist() == [2, 4, 6]
        with pytest.raises(UsageError, match="PCB571"):
            pcbatch.shard(nobody_finds, Threads(threads))([1, 2, 3])


def test_what_fails_gives_the_other_parts_up():
    def do(number, future, run):
        if number == 2:
            future.set_exception(BrokenExecutor("it was killed"))

    executor = Fake(do)
    with pytest.raises(UsageError, match=r"PCB584: a worker of Fake died \(it was killed\), and it does not run parts"):
        pcbatch.shard(hailstone, executor, 3)(NUMBERS[:4])

    def interrupt(number, future, run):
        if number == 2:
            future.set_exception(KeyboardInterrupt())

    executor = Fake(interrupt)
    with pytest.raises(KeyboardInterrupt):
        pcbatch.shard(hailstone, executor, 3)(NUMBERS[:4])
    assert [future.cancelled() for future in executor.futures] == [True, False, True]


def test_refusals(executor):
    for give, text in (
        (lambda: pcbatch.shard(abs, executor), "PCB584: shard takes a batched function"),
        (lambda: pcbatch.shard(hailstone, 3), "PCB584: an executor has `submit`"),
        (lambda: pcbatch.shard(hailstone, executor, 0), "PCB584: shards must be"),
        (lambda: pcbatch.shard(hailstone.options(trace=3), executor)([1]), "PCB584: hailstone runs in parts"),
        (lambda: tf.function(lambda: pcbatch.shard(hailstone, executor)([1]))(), "PCB584: .* outside of a graph"),
        (lambda: pcbatch.shard(hailstone, executor)(), "PCB510"),
        (lambda: pcbatch.shard(hailstone, executor)(NUMBERS, NUMBERS[:2]), "PCB513"),
    ):
        with pytest.raises(UsageError, match=text):
            give()
    with pytest.raises(pcbatch.CompileError, match="PCB"):
        pcbatch.shard(hailstone, executor)([1.5 + 1j])


def test_the_number_of_parts_is_that_of_workers(executor):
    assert workers_of(executor) == 3
    assert workers_of(Fake(None)) == os.cpu_count()


# -- processes ---------------------------------------------------------------------------------------------------------

SCRIPT = """
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

import pcbatch


@pcbatch.autobatch
def spent(n):
    total = 0
    while n > 0:
        total = (total * 3 + n) % 1000003
        n -= 1
    return total


def pool():
    return ProcessPoolExecutor(3, mp_context=get_context("spawn"))
"""


def running(tmp_path, code):
    """A process that runs a script."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + textwrap.dedent(code), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]]), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        [sys.executable, str(path)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.slow
def test_on_three_spawned_processes(tmp_path):
    process = running(
        tmp_path,
        """
        if __name__ == "__main__":
            with pool() as executor:
                numbers = np.arange(30, dtype=np.int32)
                sharded = pcbatch.shard(spent, executor)
                np.testing.assert_array_equal(sharded(numbers), spent(numbers))
                np.testing.assert_array_equal(sharded(numbers), spent(numbers))  # by what workers have compiled
        """,
    )
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0, error


@pytest.mark.slow
def test_ctrl_c_leaves_no_worker_at_work(tmp_path):
    process = running(
        tmp_path,
        """
        if __name__ == "__main__":
            with pool() as executor:
                sharded = pcbatch.shard(spent, executor)
                sharded(np.arange(30, dtype=np.int32))
                print(*executor._processes, flush=True)
                try:
                    sharded(np.full(300, 2**31 - 1, np.int32))
                except KeyboardInterrupt:
                    executor.shutdown()
        """,
    )
    workers = process.stdout.readline().split()
    time.sleep(3)
    os.kill(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=300)  # it would take hours
    assert process.returncode == 0, error
    assert not [each for each in workers if os.path.exists(f"/proc/{each}")]


@pytest.mark.slow
def test_a_worker_of_dask_that_is_killed_in_mid_run(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed: the extra `dask`")
    process = running(
        tmp_path,
        """
        import signal
        import threading

        def kill_one(client):
            while not any(client.processing().values()):
                time.sleep(0.05)
            time.sleep(1)
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            print("killed", flush=True)

        if __name__ == "__main__":
            from distributed import Client, LocalCluster

            cluster = LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None)
            with cluster, Client(cluster) as client:
                sharded = pcbatch.shard(spent, client.get_executor(), 6)
                numbers = np.arange(30, dtype=np.int32)
                np.testing.assert_array_equal(sharded(numbers), spent(numbers))
                long = np.full(12, 300_000_000, np.int32)
                killer = threading.Thread(target=kill_one, args=(client,))
                killer.start()
                found = sharded(long)
                killer.join()
                np.testing.assert_array_equal(found, spent(long[:1]).numpy()[0])
                print("equal", flush=True)
        """,
    )
    output, error = process.communicate(timeout=400)
    assert process.returncode == 0, error[-3000:]
    assert output.split() == ["killed", "equal"]
