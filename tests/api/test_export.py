"""`f.export` and `pcbatch.exported`: programs in files that JAX runs alone.

What JAX gets is run by TensorFlow here, as a text, so that tests need no JAX; those that do are in `test_exported.py`.
"""

from __future__ import annotations

import sys
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError
from pcbatch.commands.cli import main
from pcbatch.function.exporting import _depths
from pcbatch.ir.machine import LaneStatus
from pcbatch.runtime.export import file, stablehlo
from pcbatch.runtime.export.stablehlo import Sample
from pcbatch.runtime.machine.state import Limits
from tests.exporting import run_text

WEIGHTS = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
BIAS = tf.Variable([0.5] * 8)


class State(NamedTuple):
    x: object
    n: object


@pcbatch.autobatch
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@pcbatch.autobatch
def collatz(n):
    assert n > 0, f"{n} is not positive"
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@pcbatch.autobatch
def network(x, n, scale=2.0):
    while n > 0:
        x = tf.tanh(tf.linalg.matvec(WEIGHTS, x) + BIAS)
        n -= 1
    return State(x * scale, n)


@pcbatch.autobatch
def straight(x, y):
    return {"sum": tf.reduce_sum(y) + x, "wide": tf.cast(x, tf.float64)}


@pcbatch.autobatch(max_depth=301)
def deep(n):
    return 0 if n <= 0 else 1 + deep(n - 1)


@pcbatch.autobatch(static_argnames="size", in_axes={"table": None, "i": 0, "size": None})
def looked_up(table, i, size):
    return tf.reduce_sum(table[:size]) + table[i]


ROWS = np.random.default_rng(1).random((70, 8)).astype(np.float32)
CASES = {
    "recursion": (fibonacci, [np.arange(70, dtype=np.int32) % 9]),
    "loop": (collatz, [np.arange(70, dtype=np.int32)]),
    "captured": (network, [ROWS, np.arange(70, dtype=np.int32) % 4]),
    "straight": (straight, [ROWS[:, 0], ROWS]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_gives_what_the_function_gives_for_any_number_of_lanes(name, tmp_path):
    function, whole = CASES[name]
    function.export(tmp_path / "f.pcb", *(each[:3] for each in whole), platforms="cpu")
    contents = file.read(tmp_path / "f.pcb")
    assert contents.lanes[0] <= 2, "fitted to any number"
    defaults = [leaf for leaves in contents.defaults.values() for leaf in leaves]
    for lanes, room in ((1, 2), (5, 5), (70, 70)):
        batch = [each[:lanes] for each in whole]
        run = function.run(*batch)
        found = run_text(contents, [*batch, *defaults], lanes, room, 300)
        values = tf.nest.flatten(run.value)
        for got, wanted in zip(found, values, strict=False):
            assert got.dtype == wanted.dtype.as_numpy_dtype
            np.testing.assert_allclose(got.astype(float), np.asarray(wanted).astype(float), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found[len(values)], run.status)
        np.testing.assert_array_equal(found[len(values) + 3], run.lane_steps)


def test_stacks_have_the_size_that_is_asked_for(tmp_path):
    deep.export(tmp_path / "f.pcb", [3], platforms=["cpu"])
    contents = file.read(tmp_path / "f.pcb")
    assert contents.depths[-1] == 301
    depths = np.array([0, 40, 300, 400], np.int32)
    for depth in contents.depths:
        value, status, *_ = run_text(contents, [depths], 4, 4, depth)
        fits = depths < depth
        np.testing.assert_array_equal(value[fits], depths[fits])
        np.testing.assert_array_equal(status == LaneStatus.MAX_DEPTH, ~fits)


@pytest.mark.parametrize("limit", [1, 2, 16, 17, 301, 8191, 8192])
def test_depths_grow_to_the_largest_all_even_or_all_odd(limit):
    depths = _depths(Limits.of(limit, None))
    assert (depths[-1], {depth % 2 for depth in depths}) == (limit, {limit % 2})
    assert sorted({*depths}) == depths
    assert limit < 100 or len(depths) > 2


def test_arguments_of_all_kinds(tmp_path):
    table = np.arange(6, dtype=np.float32)
    looked_up.export(tmp_path / "f.pcb", table, [1, 2], size=3)
    contents = file.read(tmp_path / "f.pcb")
    assert (contents.statics, contents.for_all, [*contents.texts]) == ({"size": "3"}, ["table"], ["cpu", "cuda"])
    (value, *_) = run_text(contents, [table, np.array([5, 0], np.int32)], 2, 2, 8192)
    np.testing.assert_array_equal(value, [3 + 5, 3 + 0])


def test_specs_stand_for_arguments(tmp_path):
    collatz.export(tmp_path / "f.pcb", tf.TensorSpec([None], tf.int64), platforms="cpu")
    assert str(file.read(tmp_path / "f.pcb").parameters["n"]) == "int64[]"


def test_programs_for_gpus_have_nothing_that_is_tuned_to_cpus(tmp_path):
    network.export(tmp_path / "f.pcb", ROWS[:3], [1, 2, 3])
    contents = file.read(tmp_path / "f.pcb")
    assert contents.texts["cpu"] != contents.texts["cuda"]
    assert not any(each.shape == (256,) for each in contents.captured["cuda"]), "nobody stops a GPU's loop"


def test_results_of_any_structure_are_told(tmp_path):
    network.export(tmp_path / "f.pcb", ROWS[:3], [1, 2, 3], platforms="cpu")
    structure = file.read(tmp_path / "f.pcb").program.structure
    assert str(structure).startswith("State(x=float32[8]")
    with mock.patch.dict(sys.modules, {__name__: None}):
        other = file.read(tmp_path / "f.pcb").program.structure.constructor
    assert (other is State, other.__name__, other._fields) == (False, "State", ("x", "n"))


def _asks_python(x):
    return tf.numpy_function(np.sin, [x], tf.float32)


@pcbatch.autobatch
def in_python(x):
    return tf.ensure_shape(_asks_python(x), [])


def test_what_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"PCB582: platforms are one or more of 'cpu', .* not \('gpu',\)"):
        collatz.export(tmp_path / "f.pcb", [1], platforms="gpu")
    with pytest.raises(UsageError, match=r"PCB582: collatz.export writes a file; call it outside of a graph"):
        tf.function(lambda: collatz.export(tmp_path / "f.pcb", [1]))()
    with pytest.raises(pcbatch.PcbatchError, match=r"PCB"):
        in_python.export(tmp_path / "f.pcb", [1.0], platforms="cpu")
    with pytest.raises(UsageError, match=r"PCB595"):
        collatz.export("", [1])
    with pytest.raises(OSError, match="nowhere"):
        collatz.export(tmp_path / "nowhere" / "f.pcb", [1], platforms="cpu")
    assert not [*tmp_path.iterdir()]


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "f.pcb"
    straight.export(path, [1.0], ROWS[:1], platforms="cpu")
    whole = path.read_bytes()
    path.write_bytes(whole[:200])
    with pytest.raises(UsageError, match=r"PCB590: .*f.pcb is no exported program of pcbatch, or its end is missing"):
        pcbatch.exported.load(path)
    path.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    with pytest.raises(UsageError, match=r"PCB590: .*damaged"):
        pcbatch.exported.load(path)
    with mock.patch.object(file, "FORMAT", 0):
        straight.export(path, [1.0], ROWS[:1], platforms="cpu")
    with pytest.raises(UsageError, match=r"PCB591: .* reads format 1: export the function again"):
        pcbatch.exported.load(path)


def test_where_there_is_no_jax_it_says_so(tmp_path):
    straight.export(tmp_path / "f.pcb", [1.0], ROWS[:1], platforms="cpu")
    loaded = pcbatch.exported.load(tmp_path / "f.pcb")
    assert repr(loaded) == "<pcbatch.Exported straight(x: float32[], y: float32[8]) for cpu, any number of lanes>"
    with mock.patch.dict(sys.modules, {"jax": None}), pytest.raises(UsageError, match=r"PCB581: .*pip install"):
        loaded([1.0], ROWS[:1])


def test_the_command_line_exports(tmp_path, capsys, monkeypatch):
    (tmp_path / "file.py").write_text(
        "import pcbatch\n\n\n@pcbatch.autobatch\ndef double(x):\n    return 2 * x\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["export", "file.py:double", "--args", "[[1, 2]]", "-o", "double.pcb", "--platforms", "cpu"]) == 0
    assert capsys.readouterr().err == "pcbatch: wrote double.pcb: double for cpu\n"
    assert [*file.read("double.pcb").texts] == ["cpu"]
    for arguments, code in (
        (["file.py", "--args", "[[1]]", "-o", "x"], "PCB524"),
        (["file.py:double", "--args", "1", "-o", "x"], "PCB521"),
        (["file.py:double", "--args", "[[1]]", "-o", "no/x"], "PCB574"),
        (["file.py:double", "--args", "[[1]]", "-o", "x", "--platforms", "gpu"], "PCB582"),
    ):
        assert main(["export", *arguments]) == 2
        assert code in capsys.readouterr().err


# -- texts that fit several numbers of lanes ---------------------------------------------------------------------------


def _samples(line):
    return [
        Sample(lanes, depth, line(lanes, depth)) for lanes, depth in ((2, 20), (3, 20), (67, 20), (3, 50), (67, 50))
    ]


def test_sizes_are_found():
    text = stablehlo.fitted(_samples(lambda n, d: f"tensor<{n}x{d + 1}xi32> [0:{n * (d + 1)}] -> {7 * n - 3}"))
    assert stablehlo.varies(text) == (True, True)
    assert stablehlo.filled(text, 1000, 8) == "tensor<1000x9xi32> [0:9000] -> 6997\n"
    constant = stablehlo.fitted(_samples(lambda n, d: "tensor<3xi32>"))
    assert (constant, stablehlo.varies(constant)) == ("tensor<3xi32>\n", (False, False))


def test_other_sizes_are_not():
    for line in (
        lambda n, d: f"{min(n, 32)}",
        lambda n, d: f"{n * n}",
        lambda n, d: "\n".join(["x"] * n),
        lambda n, d: f"{'a' if n > 5 else 'b'} {n}",
    ):
        assert stablehlo.fitted(_samples(line)) is None


def test_counts_that_are_written_out_become_operations():
    def line(n, d):
        numbers = 5 + 3 * np.arange(n, dtype=np.int32)
        words = f'"0x{numbers.tobytes().hex().upper()}"' if n > 50 else f"[{', '.join(map(str, numbers))}]"
        return f"  %c_1 = stablehlo.constant dense<{words}> : tensor<{n}xi32>"

    text = stablehlo.fitted(_samples(line))
    assert text is not None
    assert "stablehlo.iota dim = 0 : tensor<9xi32>" in stablehlo.filled(text, 9, 1)
    assert "%c_1 = stablehlo.add" in text
    squares = lambda n, d: line(n, d).replace("[5, 8", "[5, 9")  # noqa: E731
    assert stablehlo.fitted(_samples(squares)) is None


@pytest.mark.parametrize(
    ("dtype", "row"), [("f32", [0.5, 1.5, -2.0]), ("i32", [[1, 2], [3, 4]]), ("i1", [True, False, True]), ("i64", 7)]
)
def test_rows_that_are_written_out_become_one(dtype, row):
    kind = {"f32": np.float32, "i32": np.int32, "i1": bool, "i64": np.int64}[dtype]
    sizes = "".join(f"{size}x" for size in np.shape(row))

    def line(n, d):
        rows = np.array([row] * n, kind)
        content = np.packbits(rows, bitorder="little") if kind is bool else rows
        words = str(rows.tolist()).lower() if rows.size < 100 else f'"0x{content.tobytes().hex().upper()}"'
        return f"  %c_1 = stablehlo.constant dense<{words}> : tensor<{n}x{sizes}{dtype}>"

    text = stablehlo.filled(stablehlo.fitted(_samples(line)), 9, 1)
    assert f"dense<{str(row).lower()}> : tensor<{sizes}{dtype}>" in text
    assert f"-> tensor<9x{sizes}{dtype}>" in text
    differing = lambda n, d: line(n, d).replace("dense<[", "dense<[9" if dtype == "i64" else "dense<[[9], ")  # noqa: E731
    assert stablehlo.fitted(_samples(differing)) is None


def test_names_and_places_do_not_count():
    text = """#loc1 = loc("x")
module @a_inference_12 attributes {mhlo.is_dynamic = false} {
  func.func private @while_3.1(%arg0: tensor<i32> loc("a (b)")) -> tensor<i32> {
    return %arg0 : tensor<i32> loc(fused["f(x)", "g.py":1:2])
  } loc(#loc)
  func.func public @main(%arg0: tensor<i32>) -> tensor<i32> {
    %0 = call @while_3.1(%arg0) : (tensor<i32>) -> tensor<i32> loc(#loc1)
    return %0 : tensor<i32>
  }
} loc(#loc)
#loc = loc(unknown)
"""
    assert (
        stablehlo.plain(text)
        == """module @pcbatch {
  func.func private @f0(%arg0: tensor<i32>) -> tensor<i32> {
    return %arg0 : tensor<i32>
  }
  func.func public @main(%arg0: tensor<i32>) -> tensor<i32> {
    %0 = call @f0(%arg0) : (tensor<i32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
"""
    )


# -- further programs --------------------------------------------------------------------------------------------------


class Model:
    def __init__(self):
        self.weights, self.scale = np.arange(3, dtype=np.float32), 2

    @pcbatch.autobatch
    def score(self, x):
        total = 0.0
        for i in range(3):
            if x[i] > 0.5:
                total += x[i] * self.weights[i] * self.scale
        return total


@pcbatch.autobatch
def squares(n):
    found = pcbatch.bounded([], tf.int32, 8)
    for i in range(n):
        found.append(i * i)
    return sum(found)


@pcbatch.autobatch
def ranked(x):
    ordered, n = tf.sort(x), 0
    while n < 7 and ordered[n] < 0.5:
        n += 1
    return ordered, n


@pcbatch.autobatch(in_axes={"d": {"a": 0, "b": None}})
def mixed(d):
    return d["a"] * d["b"]


@pcbatch.autobatch(max_steps=5)
def limited(n):
    while n > 0:
        n -= 1
    return n


FURTHER = {
    "a method": (Model().score, [ROWS[:, :3]]),
    "a bounded list": (squares, [np.arange(70, dtype=np.int32) % 7]),
    "a sort": (ranked, [ROWS]),
    "a limit": (limited, [np.arange(70, dtype=np.int32) % 9]),
    "bfloat16": (limited, [tf.cast(np.arange(70) % 4, tf.bfloat16).numpy()]),
    "uint8": (limited, [np.arange(70, dtype=np.uint8) % 4]),
    "one output": (deep, [np.arange(70, dtype=np.int32)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FURTHER)
def test_further_programs(name, tmp_path, monkeypatch):
    monkeypatch.setitem(CASES, name, FURTHER[name])
    test_the_text_gives_what_the_function_gives_for_any_number_of_lanes(name, tmp_path)


def test_arguments_of_which_a_part_is_shared(tmp_path):
    mixed.export(tmp_path / "f.pcb", {"a": ROWS[:3, 0], "b": 2}, platforms="cpu")
    (value, *_) = run_text(file.read(tmp_path / "f.pcb"), [ROWS[:5, 0], np.int32(3)], 5, 5, 8192)
    np.testing.assert_array_equal(value, ROWS[:5, 0] * 3)
