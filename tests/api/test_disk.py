"""Compiled programs on disk: what is the same is found again, with the same answer; what differs in anything is not.

These tests play the second process in this one: the program is imported anew, under another name. Whether XLA finds
what it has compiled shows in real processes only: `test_disk_processes`.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.invariants import moved_inside, portable
from pcbatch.runtime.llvm import compiler
from pcbatch.runtime.llvm.translation import Translation
from pcbatch.runtime.store import cache_session
from pcbatch.runtime.store import folder as records
from pcbatch.runtime.store.folder import Entry, Folder

ROOT = Path(__file__).parent.parent.parent
numbers = itertools.count()

POWERS = """
import numpy as np
import tensorflow as tf
import pcbatch

RATE = 1.5
TABLE = tf.range(200.0)


class Shift:
    by = 0.25


SHIFT = Shift()


def helper(x):
    return x * RATE + SHIFT.by + TABLE[3]


@pcbatch.autobatch
def powers(n, x):
    while n > 0:
        assert x < 1000.0, "too large"
        x = helper(x)
        n = n - 1
    return x
"""
IN_LOCKSTEP = POWERS.replace("@pcbatch.autobatch\n", '@pcbatch.autobatch(form="lockstep")\n')
N = tf.constant([3, 0, 7, 5])
X = tf.constant([1.0, 2.0, 0.5, 900.0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(cache_session.Store, "miss_compiled", lambda store: None)  # XLA has read its flags long ago
    path = tmp_path / "cache"
    pcbatch.cache(path)
    yield path
    pcbatch.cache(None)


def loaded(tmp_path: Path, text: str) -> Any:
    """A module of this text, as another process would import it."""
    name = "disk_program"
    path = tmp_path / str(next(numbers)) / f"{name}.py"
    path.parent.mkdir()
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def found(function: Any) -> tuple[int, int]:
    stats = function.stats()
    return stats.hits, stats.misses


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*/program"))


def checked(function: Any, *batch: Any) -> Any:
    """A run, each lane compared with the plain function."""
    run = function.run(*batch)
    for lane, example in enumerate(zip(*batch, strict=True)):
        if run.status[lane] == pcbatch.LaneStatus.OK:
            np.testing.assert_allclose(run.value[lane], function.single(*example), rtol=1e-6)
    return run


def test_a_program_is_found_again_and_gives_the_same(tmp_path: Path, folder: Path) -> None:
    first, again = loaded(tmp_path, POWERS).powers, loaded(tmp_path, POWERS).powers
    one, two = checked(first, N, X), checked(again, N, X)
    assert found(first) == (0, 1)
    assert found(again) == (1, 0)
    assert first.stats().compilations == 1
    assert again.stats().compilations == 0
    assert one.value.numpy().tobytes() == two.value.numpy().tobytes()
    assert [error.message for error in one.errors] == [error.message for error in two.errors]
    assert len(one.errors) == 1
    assert list(one.status) == list(two.status)
    assert "1 of 1 found on disk" in repr(again.stats())
    assert folder.stat().st_mode & 0o777 == 0o700


SWINGS = """
import pcbatch
import tensorflow as tf


@pcbatch.autobatch
def swings(n, x):
    while n > 0:
        x = x + RATE * tf.sin(x)
        n = n - 1
    return x
"""


def test_no_call_waits_until_its_program_is_written(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, put = threading.Event(), Entry.put_program

    def slow(entry: Entry, parts: Any) -> None:
        assert written.wait(60)
        put(entry, parts)

    monkeypatch.setattr(Entry, "put_program", slow)
    before = {*threading.enumerate()}  # another test's may be at work
    checked(loaded(tmp_path, POWERS).powers, N, X)
    (writing,) = [each for each in threading.enumerate() if each.name == "pcbatch-cache" and each not in before]
    assert not writing.daemon, "Python waits for it before it ends"
    written.set()
    again = loaded(tmp_path, POWERS).powers
    checked(again, N, X)
    assert found(again) == (1, 0), "a process finds what it has just kept"


def test_a_call_with_a_cache_makes_no_native_code_again(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it lower pieces to XLA's text, or read the files of pcbatch."""
    checked(loaded(tmp_path, POWERS).powers, N, X)
    calls: list[str] = []
    for owner, name in ((compiler, "object_code"), (Translation, "function")):
        monkeypatch.setattr(owner, name, lambda *_, name=name: calls.append(name))
    monkeypatch.setattr(Path, "read_bytes", lambda path: calls.append(str(path)))
    cache_session.current()._folder = None  # type: ignore[union-attr]
    again = loaded(tmp_path, POWERS).powers
    again.run(N, X)
    assert found(again) == (1, 0)
    assert not calls


def test_a_file_that_is_written_again_makes_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "room"
    inner.mkdir()
    (inner / "module.py").write_text("one = 1")
    monkeypatch.setattr(cache_session, "OWN", str(tmp_path))
    digests = [cache_session.environment_digest()]
    (inner / "notes.txt").write_text("nothing that runs")
    assert cache_session.environment_digest() == digests[0]
    os.utime(inner / "module.py", ns=(0, 5))
    digests.append(cache_session.environment_digest())
    (inner / "module.py").write_text("one = 11")
    os.utime(inner / "module.py", ns=(0, 5))
    digests.append(cache_session.environment_digest())
    (inner / "module.py").rename(inner / "other.py")
    digests.append(cache_session.environment_digest())
    assert len({*digests}) == 4


def test_native_gradients_are_found_again(tmp_path: Path, folder: Path) -> None:
    def gradient(rate: float) -> tuple[bytes, tuple[int, int]]:
        swings = loaded(tmp_path, SWINGS.replace("RATE", str(rate))).swings
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.reduce_sum(swings(N, X))
        return tape.gradient(y, X).numpy().tobytes(), found(swings)

    first, again, other = gradient(0.5), gradient(0.5), gradient(0.25)
    assert first == (again[0], (0, 2))
    assert again[1] == (2, 0)
    assert other[0] != first[0]
    assert other[1] == (0, 2)


OTHERS = {
    "a global": ("RATE = 1.5", "RATE = 1.25"),
    "an attribute": ("by = 0.25", "by = 0.5"),
    "a helper": ("x * RATE", "x - RATE"),
    "the function": ("n = n - 1", "n = n - 2"),
    "a limit": ("@pcbatch.autobatch", "@pcbatch.autobatch(max_steps=4)"),
    "the form": ("@pcbatch.autobatch", "@pcbatch.autobatch(form='lockstep')"),
}


@pytest.mark.slow
def test_what_differs_in_anything_is_not_found(tmp_path: Path, folder: Path) -> None:
    checked(loaded(tmp_path, POWERS).powers, N, X)
    for what, (old, new) in OTHERS.items():
        assert old in POWERS
        other = loaded(tmp_path, POWERS.replace(old, new)).powers
        checked(other, N, X)
        assert found(other) == (0, 1), what
    other = loaded(tmp_path, POWERS.replace("tf.range(200.0)", "tf.range(200.0) + 1")).powers
    checked(other, N, X)
    assert found(other) == (1, 0), "a tensor is handed to the program"
    same = loaded(tmp_path, POWERS).powers
    for batch in ((N[:3], X[:3]), (tf.cast(N, tf.int64), X)):
        checked(same, *batch)
    assert found(same) == (1, 1), "native code serves any number of lanes, but no other dtypes"
    again = loaded(tmp_path, POWERS).powers
    checked(again, N, X)
    assert found(again) == (1, 0)


@pytest.mark.slow
def test_what_changes_while_it_is_alive_is_not_found_either(tmp_path: Path, folder: Path) -> None:
    module = loaded(tmp_path, POWERS)
    checked(module.powers, N, X)
    module.SHIFT.by = 7.0
    checked(module.powers, N, X)
    module.SHIFT.by = 0.25
    checked(module.powers, N, X)
    assert found(module.powers)[1] >= 2


READS = """
import numpy as np
import tensorflow as tf
import pcbatch


def table():
    return np.loadtxt("TABLE", dtype=np.float32)


@pcbatch.autobatch
def scaled(n, x):
    while n > 0:
        x = x + tf.reduce_sum(table())
        n = n - 1
    return x
"""


def test_what_a_library_reads_of_a_file_is_an_operand(tmp_path: Path, folder: Path) -> None:
    """Each process reads it once; the program is the same for other numbers."""
    seen = []
    for text in ("1 2 3", "1 2 3", "4 5 6"):
        (tmp_path / "table.txt").write_text(text)
        scaled = loaded(tmp_path, READS.replace("TABLE", str(tmp_path / "table.txt"))).scaled
        checked(scaled, N, X)
        seen.append(found(scaled))
    assert seen == [(0, 1), (1, 0), (1, 0)]


VARIABLES = """
import tensorflow as tf
import pcbatch

W = tf.Variable([{}] * 200)


def slope(x):
    with tf.GradientTape() as tape:
        y = x * tf.reduce_sum(W ** 2)
    return tape.gradient(y, W)[0]


@pcbatch.autobatch
def descend(n, x):
    while n > 0:
        x = x - 0.001 * slope(x)
        n = n - 1
    return x
"""


@pytest.mark.slow
def test_variables_are_read_anew(tmp_path: Path, folder: Path) -> None:
    for value in (1.0, 1.0, 2.0):
        descend = loaded(tmp_path, VARIABLES.format(value)).descend
        checked(descend, N, X)
        assert sum(found(descend)) == 1


BATCHED = """
import tensorflow as tf
import pcbatch


def batched(x):
    return 2 * x


@pcbatch.primitive(batched=batched)
def double(x):
    return 2 * x


@pcbatch.autobatch(form="lockstep")
def doubled(n, x):
    while n > 0:
        x = double(x)
        n = n - 1
    return x
"""


def test_what_is_code_of_the_users_for_all_lanes_is_not_kept(tmp_path: Path, folder: Path) -> None:
    """Its text is in no trace for one example."""
    for _ in range(2):
        doubled = loaded(tmp_path, BATCHED).doubled
        checked(doubled, N, X)
        assert found(doubled) == (0, 1)
    assert not entries(folder)


def test_a_damaged_file_is_a_miss(tmp_path: Path, folder: Path) -> None:
    checked(loaded(tmp_path, POWERS).powers, N, X)
    (program,) = entries(folder)
    whole = program.read_bytes()
    half = len(whole) // 2
    damaged = {
        "nothing": b"",
        "half": whole[:half],
        "a bit": whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :],
        "more": whole + b"\0",
        "none": None,
    }
    for what, content in damaged.items():
        if content is None:
            program.unlink()
        else:
            program.write_bytes(content)
        powers = loaded(tmp_path, POWERS).powers
        checked(powers, N, X)
        assert found(powers) == (0, 1), what
        anew = loaded(tmp_path, POWERS).powers
        checked(anew, N, X)
        assert found(anew) == (1, 0), f"{what}: it is written anew"


def test_a_record_in_the_place_of_another_is_a_miss(tmp_path: Path, folder: Path) -> None:
    powers = loaded(tmp_path, IN_LOCKSTEP).powers
    checked(powers, N, X)
    checked(powers, tf.tile(N, [3]), tf.tile(X, [3]))
    one, two = entries(folder)
    one.write_bytes(two.read_bytes())
    again = loaded(tmp_path, IN_LOCKSTEP).powers
    checked(again, N, X)
    checked(again, tf.tile(N, [3]), tf.tile(X, [3]))
    assert found(again) == (1, 1)


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are others there")
def test_what_others_own_or_may_write_to_is_a_miss(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def calls() -> tuple[int, int]:
        powers = loaded(tmp_path, POWERS).powers
        checked(powers, N, X)
        return found(powers)

    assert calls() == (0, 1)
    (program,) = entries(folder)
    assert program.parent.stat().st_mode & 0o777 == program.parent.parent.stat().st_mode & 0o777 == 0o700
    for place, mode in ((program, 0o600), (program.parent, 0o700), (program.parent.parent, 0o700)):
        place.chmod(0o722 if place.is_dir() else 0o622)
        if place.is_dir():
            with pytest.warns(RuntimeWarning, match="cannot be written: a folder in it is another user's"):
                assert calls() == (0, 1), place
            cache_session.current()._warned = False
        else:
            assert calls() == (0, 1), place
        place.chmod(mode)
        assert calls() == (1, 0), place
    program.rename(tmp_path / "elsewhere")
    program.symlink_to(tmp_path / "elsewhere")
    assert calls() == (0, 1)
    assert calls() == (1, 0)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        assert calls() == (0, 1)


def test_what_tensorflow_cannot_run_is_run_as_it_is_traced(tmp_path: Path, folder: Path) -> None:
    """A file whose checksum is right and which is nonsense."""
    from pcbatch.runtime.store.folder import read, write

    checked(loaded(tmp_path, IN_LOCKSTEP).powers, N, X)
    (program,) = entries(folder)
    key, header, library, *rest = read(str(program))
    wrong = json.dumps({**json.loads(header), "main": "no_such_function"}).encode()
    write(str(program), [key, wrong, library, *rest])
    powers = loaded(tmp_path, IN_LOCKSTEP).powers
    checked(powers, N, X)
    checked(powers, N, X)
    assert not entries(folder), "nobody else is to find it"
    for parts in ([key, b"{", library], [key, header, b"\xff\xff"], [key], [key, b"[]", library], [key, header]):
        write(str(program), parts) if program.parent.exists() else None
    checked(loaded(tmp_path, IN_LOCKSTEP).powers, N, X)


@pytest.mark.slow
def test_the_oldest_make_room(tmp_path: Path, folder: Path) -> None:
    checked(loaded(tmp_path, IN_LOCKSTEP).powers, N, X)
    (first,) = entries(folder)
    size = sum(each.stat().st_size for each in first.parent.iterdir())
    pcbatch.cache(folder, max_bytes=int(2.5 * size))
    checked(loaded(tmp_path, IN_LOCKSTEP).powers, N[:2], X[:2])
    for age, path in enumerate(entries(folder)):
        os.utime(path.parent, (age + (path == first), age + (path == first)))
    os.utime(first.parent, (100, 100))  # the other one was used longer ago
    checked(loaded(tmp_path, IN_LOCKSTEP).powers, N[:3], X[:3])
    left = entries(folder)
    assert len(left) == 2
    assert first in left


def test_without_a_cache_nothing_is_written(tmp_path: Path, folder: Path) -> None:
    pcbatch.cache(None)
    powers = loaded(tmp_path, POWERS).powers
    checked(powers, N, X)
    assert found(powers) == (0, 0)
    assert "disk" not in repr(powers.stats())
    assert not entries(folder)


def test_a_folder_that_is_gone_fails_nothing(tmp_path: Path, folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)
    folder.write_text("a file in its place")
    powers = loaded(tmp_path, POWERS).powers
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        checked(powers, N, X)
    checked(powers, N[:2], X[:2])


def test_where_there_is_no_room_xla_writes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_session.XLA_FLAGS, "")
    monkeypatch.setattr(cache_session.tempfile, "tempdir", str(tmp_path / "passing"))
    monkeypatch.setattr(cache_session.os, "access", lambda path, mode: str(tmp_path) in path)
    (tmp_path / "passing").mkdir()
    (tmp_path / "cache").mkdir()
    for leave in (lambda each: each.close(), lambda each: cache_session.sweep(str(tmp_path / "cache"))):
        each = cache_session.Executables(str(tmp_path / "cache"))
        store = cache_session.Store(str(tmp_path / "cache"), 1 << 20, each)
        store.give_way(ValueError("something else"))
        assert not Path(each.path).is_symlink()
        with pytest.warns(RuntimeWarning, match="cannot be written"):
            store.give_way(OSError(f"{each.path}/xla.pb; No space left on device"))
        store.give_way(OSError(each.path))  # once more changes nothing
        (Path(each.path) / "some.pb").write_bytes(b"compiled")
        assert each.new() == {"some.pb": b"compiled"}
        assert [path.name for path in (tmp_path / "passing").glob("*/*")] == ["some.pb"]
        monkeypatch.setattr(cache_session, "_runs", lambda process: False)
        leave(each)
        assert not [*(tmp_path / "passing").iterdir(), *(tmp_path / "cache").iterdir()]


@pytest.mark.parametrize("bad", [3, "", "a\0b", b"bytes"])
def test_what_is_no_folder_is_refused(bad: Any) -> None:
    with pytest.raises(pcbatch.UsageError, match="PCB575"):
        pcbatch.cache(bad)


def test_a_folder_that_others_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(pcbatch.UsageError, match="PCB575"):
        pcbatch.cache(tmp_path / "file")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(pcbatch.UsageError, match=r"PCB575: .* others may write to it"):
        pcbatch.cache(tmp_path / "open")
    with pytest.raises(pcbatch.UsageError, match="PCB575"):
        pcbatch.cache(tmp_path / "new", max_bytes=0)


RECURSIVE = """
import tensorflow as tf
import pcbatch


@pcbatch.autobatch(form="lockstep")
def depth(n):
    if n <= 0:
        return 0
    return 1 + depth(n - 1) + 0 * n
"""


@pytest.mark.slow
def test_stacks_grow_in_a_program_that_was_found(tmp_path: Path, folder: Path) -> None:
    first, again = loaded(tmp_path, RECURSIVE).depth, loaded(tmp_path, RECURSIVE).depth
    for each in (first, again):
        assert list(each([3, 5]).numpy()) == [3, 5]
        assert list(each([3, 100]).numpy()) == [3, 100]
    assert found(again) == (1, 0)


CAPTURED = """
import numpy as np
import tensorflow as tf
import pcbatch

W = np.array([{}, 2.0], np.float32)
V = tf.Variable({})


@pcbatch.autobatch(form="FORM")
def weighted(n, x):
    while n > 0:
        x = x + 0.5 * W[0] * V
        n = n - 1
    return x
"""


@pytest.mark.parametrize("form", ["native", "lockstep"])
def test_captured_arrays_are_those_of_the_process(form: str, tmp_path: Path, folder: Path) -> None:
    for value in (1.0, 3.0):
        module = loaded(tmp_path, CAPTURED.format(value, value).replace("FORM", form))
        checked(module.weighted, N, X)
        module.V.assign(7.0)
        module.W[0] = 5.0
        checked(module.weighted, N, X)
    assert found(module.weighted) == (1, 0), "arrays are operands: the same program, another number"


NOTED = """
import tensorflow as tf
import pcbatch


@pcbatch.autobatch(form="lockstep")
def grown(n, x):
    while n > 0:
        turns = (tf.TensorShape([]), x.shape)  # so that the loop stays an operation
        x = tf.while_loop(lambda c, _: c < n, lambda c, s: (c + 1, s * 1.5), (0, x), turns)[1]
        n = n - 2
    return x
"""


def test_notes_come_from_disk_too(tmp_path: Path, folder: Path) -> None:
    """They are found out while a program is traced; where the text has moved, it is traced anew."""
    path = tmp_path / "noted.py"
    seen = []
    for text in (NOTED, NOTED, f"# a line{NOTED}"):
        path.write_text(text)
        linecache.checkcache(str(path))
        spec = importlib.util.spec_from_file_location("noted", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["noted"] = module
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        spec.loader.exec_module(module)
        sys.dont_write_bytecode = before
        checked(module.grown, N, X)
        (note,) = module.grown.stats().notes
        assert note in str(module.grown.run(N, X).profile())
        seen.append((note, *found(module.grown)))
    (first, *missed), (again, *hit), (moved, *other) = seen
    assert first == again
    assert "runs lane after lane" in moved
    assert (missed, hit) == ([0, 1], [1, 0])
    assert moved == first or other == [0, 1]


def test_a_warning_tells_that_the_variable_names_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PCBATCH_CACHE", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match=r"PCBATCH_CACHE is of no use: PCB575: .*file"):
        cache_session.use_environment()
    assert cache_session.current() is None


SHORT = """
import pcbatch


@pcbatch.autobatch(jit=JIT)
def halved(x):
    assert x < 100.0, "too large"
    return x * 0.5 + 1.0
"""


@pytest.mark.parametrize("jit", ["True", "False", "'auto'"])
def test_straight_lines_are_found_with_their_jit(jit: str, tmp_path: Path, folder: Path) -> None:
    runs, forms = [], []
    for _ in range(2):
        halved = loaded(tmp_path, SHORT.replace("JIT", jit)).halved
        runs.append(checked(halved, X))
        checked(halved, X)  # by its plan, if that makes calls of it
        halved(X[:2])
        halved(X[:2])
        forms.append(halved.stats().forms)
    assert found(halved)[1] == 0
    assert found(halved)[0] > 0
    assert forms[0] == forms[1]
    assert [error.span.line for error in runs[0].errors] == [error.span.line for error in runs[1].errors]
    for other in {"True", "False"} - {jit}:
        function = loaded(tmp_path, SHORT.replace("JIT", other)).halved
        checked(function, X)
        assert found(function) == (0, 1), other


def test_constants_are_moved_into_all_that_xla_would_move_them_into() -> None:
    """XLA does it in an order that is another one in each process; so its programs had other names."""
    inner = tf.function(lambda p, x, a, b: tf.cond(p, lambda: x + a, lambda: x - b), autograph=False)

    def nested(x: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
        def turn(i: Any, y: Any, k: Any) -> Any:
            return (i + 1, *tf.while_loop(lambda z, _: z < 3.0, lambda z, c: (z + c, c), (y, k)))

        return tf.while_loop(lambda i, y, k: i < 3, turn, (tf.constant(0), x, kept))[1]

    @tf.function(autograph=False)
    def outer(x: tf.Tensor) -> tf.Tensor:
        return inner(x > 0.0, x, tf.constant(2.0), tf.constant(3.0)) + nested(x, tf.constant(5.0))

    main, definitions = private.definitions(outer.get_concrete_function(tf.TensorSpec([])))
    moved = {each.signature.name: each for each in moved_inside(main, definitions)}
    (call,) = (node for node in moved[main].node_def if node.op.endswith("PartitionedCall"))
    called = moved[call.attr["f"].func.name]
    assert len(called.signature.input_arg) == len(call.attr["Tin"].list.type) == 2, "no constant is given to it"
    (branch,) = (node for node in called.node_def if node.op.endswith("If"))
    assert len([each for each in branch.input if not each.startswith("^")]) == 2
    (loop,) = (node for node in moved[main].node_def if node.op.endswith("While"))
    kinds = {node.name: node.op for node in moved[main].node_def}
    values = [
        node.attr["value"].tensor.float_val
        for node in moved[main].node_def
        if node.name in {each.partition(":")[0] for each in loop.input} and kinds[node.name] == "Const"
    ]
    assert [5.0] not in [list(value) for value in values], "what a loop inside keeps is kept"
    new, every = portable(main, moved.values())
    for definition in every:
        private.define(definition)
    for x in (-1.0, 1.0):
        (found,) = private.call_defined(new, [tf.constant(x)], 1)
        assert float(found) == float(outer(tf.constant(x)))


def test_a_folder_that_another_process_removes_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Folder(str(tmp_path), "environment", 1 << 20).entry("ab")
    write, removed = records.write, []

    def late(path: str, parts: Any) -> None:
        if not removed:
            removed.append(path)
            entry.remove()
            (tmp_path / "environment").rmdir()
        write(path, parts)

    monkeypatch.setattr(records, "write", late)
    entry.put_program([b"program"])
    assert removed
    assert entry.program() == [b"program"]


TAPED = """
import numpy as np
import tensorflow as tf
import pcbatch

WEIGHTS = tf.Variable([[0.5, -0.25], [1.0, 0.75]])
SLOPE = 2.0


@tf.custom_gradient
def scaled(x):
    return x + 0.0, lambda upstream: upstream * SLOPE


@pcbatch.autobatch(form="lockstep")
def turns(n, x):
    while n > 0:
        x = scaled(tf.tanh(tf.linalg.matvec(WEIGHTS, x)))
        n = n - 1
    return x


def gradients():
    with tf.GradientTape() as tape:
        result = turns(np.array([2, 0, 3], np.int32), np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    return tape.gradient(result, WEIGHTS).numpy()
"""


def test_taped_programs_are_found_again_unless_a_derivative_differs(tmp_path: Path, folder: Path) -> None:
    first, again = loaded(tmp_path, TAPED), loaded(tmp_path, TAPED)
    one, two = first.gradients(), again.gradients()
    assert found(first.turns) == (0, 2)  # the run, and its way back
    assert found(again.turns) == (2, 0)
    assert again.turns.stats().compilations == 0
    assert one.tobytes() == two.tobytes()
    again.WEIGHTS.assign([[0.25, 0.5], [-1.0, 0.5]])  # variables are read at each call, not kept
    assert np.abs(again.gradients() - two).max() > 0.1
    steeper = loaded(tmp_path, TAPED.replace("SLOPE = 2.0", "SLOPE = 3.0"))
    with tf.GradientTape() as tape:
        last = [steeper.turns.single(n, x) for n, x in ((2, [1.0, 2.0]), (3, [5.0, 6.0]))]
    np.testing.assert_allclose(steeper.gradients(), tape.gradient(last, steeper.WEIGHTS), rtol=1e-5)
    assert found(steeper.turns) == (0, 2)  # it computes the same, and is another one all the same
