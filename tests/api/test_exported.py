"""`pcbatch.exported` in processes that have JAX, and in which TensorFlow and pcbatch's compiler cannot be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.api.test_export import ROWS, collatz, deep, fibonacci, looked_up, network
from tests.exporting import needs_jax

pytestmark = [needs_jax, pytest.mark.xdist_group("exported")]  # whose programs are made once, and one process

BLOCKED = """
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "keras", "llvmlite", "gast", "astunparse"):
            raise ImportError(f"{name} is blocked")


sys.meta_path.insert(0, Blocked())
import jax
import numpy as np
import pytest
import pcbatch
from pcbatch import LaneError, UsageError, exported
"""


SERVED = """
import json
import os
import traceback

for line in sys.stdin:
    folder, code = json.loads(line)
    os.chdir(folder)
    failed = ""
    try:
        exec(code, {**globals()})
        assert "tensorflow" not in sys.modules
    except BaseException:
        failed = traceback.format_exc()
    print(json.dumps(failed), flush=True)
"""


@pytest.fixture(scope="module")
def without_tensorflow():
    """Runs code in a folder, in a process that all tests here share."""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path[1:]]), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", BLOCKED + SERVED]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def run(code, folder):
            process.stdin.write(json.dumps([str(folder), textwrap.dedent(code)]) + "\n")
            process.stdin.flush()
            failed = json.loads(process.stdout.readline())
            assert not failed, failed

        yield run
        process.stdin.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Exported programs."""
    path = tmp_path_factory.mktemp("exported")
    fibonacci.export(path / "fibonacci.pcb", [3])
    collatz.export(path / "collatz.pcb", [3])
    network.export(path / "network.pcb", ROWS[:3], [1, 2, 3])
    looked_up.export(path / "looked_up.pcb", np.arange(6, dtype=np.float32), [1, 2], size=3)
    deep.export(path / "deep.pcb", [3], platforms="cpu")
    run = network.run(ROWS, np.arange(70, dtype=np.int32) % 4)
    np.savez(path / "network.npz", rows=ROWS, x=run.value.x, n=run.value.n)
    return path


def test_values_statuses_and_errors_of_any_number_of_lanes(folder, without_tensorflow):
    without_tensorflow(
        """
        fibonacci = exported.load("fibonacci.pcb")
        for lanes in (0, 1, 2, 30):
            numbers = np.arange(lanes, dtype=np.int32) % 9
            wanted = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21])[numbers]
            value = fibonacci(numbers)
            assert isinstance(value, jax.Array) and value.dtype == "int32"
            np.testing.assert_array_equal(value, wanted)
        collatz = exported.load("collatz.pcb")
        run = collatz.run([27, 0, 1])
        np.testing.assert_array_equal(run.value, [111, 0, 0])
        assert str(run.status) == "[OK ASSERTION OK]" and run.errors[0].message == "AssertionError: 0 is not positive"
        with pytest.raises(LaneError, match="1 of 3 lanes of collatz failed"):
            collatz([27, 0, 1])
        with pytest.raises(UsageError, match="PCB576: .* an exported program"):
            run.profile()
        assert repr(run) == "<pcbatch.Run of collatz: 1 of 3 lanes failed, from an exported program>"
        network, known = exported.load("network.pcb"), np.load("network.npz")
        state = network(known["rows"], np.arange(70, dtype=np.int32) % 4)
        assert type(state).__name__ == "State"
        np.testing.assert_allclose(state.x, known["x"], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(state.n, known["n"])
        half = network(jax.numpy.asarray(known["rows"]), [0] * 70, scale=1.0)
        np.testing.assert_array_equal(half.x, known["rows"])
        """,
        folder,
    )


def test_more_lanes_than_a_text_serves_run_in_parts(folder, without_tensorflow):
    without_tensorflow(
        """
        import dataclasses
        fibonacci = exported.load("fibonacci.pcb")
        few = exported.Exported(dataclasses.replace(fibonacci._contents, lanes=(4, 4)))
        numbers = np.arange(11, dtype=np.int32) % 9
        np.testing.assert_array_equal(few(numbers), fibonacci(numbers))
        np.testing.assert_array_equal(few(numbers[:1]), fibonacci(numbers[:1]))
        assert "4 lanes at a time" in repr(few)
        """,
        folder,
    )


def test_stacks_grow(folder, without_tensorflow):
    without_tensorflow(
        """
        deep = exported.load("deep.pcb")
        np.testing.assert_array_equal(deep([3, 300, 0]), [3, 300, 0])
        run = deep.run([3, 400])
        assert str(run.status) == "[OK MAX_DEPTH]" and int(run.value[0]) == 3
        np.testing.assert_array_equal(jax.jit(deep.call)(np.array([3, 299], np.int32))[0], [3, 299])
        """,
        folder,
    )


def test_inside_of_transformations(folder, without_tensorflow):
    without_tensorflow(
        """
        collatz, looked_up = exported.load("collatz.pcb"), exported.load("looked_up.pcb")
        value, status = jax.jit(lambda n: collatz.call(n + 1))(np.array([26, -1], np.int32))
        assert (value.tolist(), status.tolist()) == ([111, 0], [0, 1])
        with pytest.raises(UsageError, match=r"PCB581: .* collatz.call\\(..\\) gives them"):
            jax.jit(collatz)(np.array([1], np.int32))
        found = jax.jit(lambda t: looked_up.call(t, np.array([5, 0], np.int32))[0])(np.arange(6, dtype=np.float32))
        assert found.tolist() == [8, 3]
        wide = jax.export.export(jax.jit(collatz.call), platforms=["cpu"])(jax.ShapeDtypeStruct((2,), np.int32))
        assert wide.call(np.array([27, 1], np.int32))[0].tolist() == [111, 0]
        """,
        folder,
    )


def test_arguments_that_do_not_fit(folder, without_tensorflow):
    without_tensorflow(
        r"""
        collatz, looked_up = exported.load("collatz.pcb"), exported.load("looked_up.pcb")
        table = np.arange(6, dtype=np.float32)
        for call, text in (
            (lambda: collatz([2.5]), r"PCB515: collatz was exported for n: int32\[\], not numbers of float64"),
            (lambda: collatz(np.array([2])), r"PCB515: .*int64; n.astype\('int32'\) is one that does"),
            (lambda: collatz([2**40]), "PCB515: .*larger"),
            (lambda: collatz([[1], [2]]), r"PCB515: .*int32\[2, 1\]"),
            (lambda: collatz(), "PCB510: missing a required argument: 'n'"),
            (lambda: collatz(1), "PCB514"),
            (lambda: looked_up(table, [1], size=2), "PCB510: .*size is 3, as it was exported"),
            (lambda: looked_up(table[None], [1]), "PCB515: .* all lanes share one"),
            (lambda: looked_up(table, [[1], [1, 2]]), "PCB515"),
            (lambda: exported.load("network.pcb")(np.zeros((3, 8), "f"), [1, 2]), "PCB513"),
        ):
            with pytest.raises(UsageError, match=text):
                call()
        """,
        folder,
    )


def test_other_devices_are_told(folder, without_tensorflow):
    without_tensorflow(
        """
        import dataclasses
        collatz = exported.load("collatz.pcb")
        texts = {"cuda": collatz._contents.texts["cuda"]}
        other = exported.Exported(dataclasses.replace(collatz._contents, texts=texts))
        with pytest.raises(UsageError, match=r"PCB581: collatz was exported for cuda, and this is cpu; export it with"):
            other([1])
        """,
        folder,
    )


def test_numbers_of_64_bits(folder, without_tensorflow, tmp_path):
    collatz.export(tmp_path / "wide.pcb", tf.TensorSpec([None], tf.int64), platforms="cpu")
    without_tensorflow(
        """
        wide = exported.load("wide.pcb")
        assert wide(np.array([27])).tolist() == [111]
        assert wide(np.array([2**33])).tolist() == [33]
        """,
        tmp_path,
    )
