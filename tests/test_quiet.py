"""The first screen: no log of TensorFlow's at its import, no warning of ArviZ's, and the targets of `make`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from pcbatch import quiet
from pcbatch.nuts.results import summaries

ROOT = Path(__file__).parent.parent
LINES = {
    "heading": "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I": "I0000 00:00:1795912449.848250   13028 port.cc:153] oneDNN custom operations are on.",
    "W": "W0000 00:00:1795912449.848632   13028 gpu_device.cc:2342] Cannot dlopen some GPU libraries.",
    "E": "E0000 00:00:1795912450.003942   13028 cuda_dnn.cc:8310] Unable to register cuDNN factory",
    "other": "a line of the user's",
}
OLDER = {
    "I": "2026-11-29 00:45:12.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.",
    "E": "2026-11-29 00:45:12.123456: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:477] Unable",
}


@pytest.mark.parametrize(
    ("level", "kept"), [(0, ["heading", "I", "W", "E", "other"]), (1, ["W", "E", "other"]), (3, ["other"])]
)
def test_lines_by_their_level(level, kept):
    log = "".join(f"{line}\n" for line in LINES.values()).encode()
    assert quiet.kept(log, level).decode().splitlines() == [LINES[name] for name in kept]
    older = "".join(f"{line}\n" for line in OLDER.values()).encode()
    assert quiet.kept(older, level).decode().splitlines() == [OLDER[name] for name in kept if name in OLDER]


LOUD = f"""
import contextlib
import os
for line in {[*LINES.values()]!r}:
    with contextlib.suppress(OSError):
        os.write(2, line.encode() + b"\\n")
print("level", os.environ.get("TF_CPP_MIN_LOG_LEVEL"))
if os.environ.get("FAILS"):
    raise ImportError("no such library")
"""


@pytest.fixture
def imported(tmp_path):
    """Run a program beside a TensorFlow that writes the lines above and does nothing else."""
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text(LOUD)

    def run(code, redirection="", **variables):
        environment = {name: value for name, value in os.environ.items() if name != quiet.VARIABLE}
        environment |= {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), **variables}
        command = f'exec "{sys.executable}" -c "$CODE" {redirection}'
        environment["CODE"] = f"import pcbatch.quiet\npcbatch.quiet.DEVICES = ()\n{code}"
        return subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, check=False)

    return run


def test_importing_tensorflow_is_quiet_whoever_does_it(imported):
    done = imported("import tensorflow, os; print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'))")
    assert done.stderr.splitlines() == [LINES["other"]]
    assert done.stdout.split() == ["level", "3", "None"], "the variable is as it was afterwards"


def test_a_level_of_the_users_holds(imported):
    done = imported("import os, tensorflow; print(os.environ['TF_CPP_MIN_LOG_LEVEL'])", TF_CPP_MIN_LOG_LEVEL="1")
    assert done.stderr.splitlines() == [LINES["W"], LINES["E"], LINES["other"]]
    assert done.stdout.split() == ["level", "1", "1"]
    for later in ("", "import os; os.environ['TF_CPP_MIN_LOG_LEVEL'] = '0'\n"):
        done = imported(f"{later}import tensorflow", **({} if later else {"TF_CPP_MIN_LOG_LEVEL": "0"}))
        assert done.stderr.splitlines() == [*LINES.values()]
    done = imported("import tensorflow", TF_CPP_MIN_LOG_LEVEL="loud")
    assert done.stderr.splitlines() == [*LINES.values()], "what it means is for TensorFlow to say"


def test_where_there_is_a_gpu_warnings_are_shown(imported):
    done = imported("pcbatch.quiet.DEVICES = ('/dev/null',)\nimport tensorflow")
    assert done.stderr.splitlines() == [LINES["W"], LINES["E"], LINES["other"]]


def test_an_import_that_fails_says_all(imported):
    done = imported("import tensorflow", FAILS="yes")
    assert done.stderr.splitlines()[: len(LINES)] == [*LINES.values()]
    assert "ImportError: no such library" in done.stderr
    again = "try:\n    import tensorflow\nexcept ImportError:\n    pass\ndel os.environ['FAILS']\nimport tensorflow"
    done = imported(f"import os\n{again}", FAILS="yes")
    assert done.stderr.splitlines() == [*LINES.values(), LINES["other"]]


def test_who_only_looks_for_tensorflow_changes_nothing(imported):
    code = "import importlib.util\nassert importlib.util.find_spec('tensorflow').loader\nimport tensorflow, sys\n"
    done = imported(code + "print(tensorflow.__spec__.loader.__dict__.keys(), [*map(repr, sys.meta_path)])")
    assert done.stderr.splitlines() == [LINES["other"]]
    assert "exec_module" not in done.stdout
    assert "pcbatch" not in done.stdout


def test_other_ways_to_load_tensorflow(imported):
    code = """
import importlib.machinery, sys

class Loader:
    __slots__ = ()
    def create_module(self, spec): return None
    def exec_module(self, module): print("loaded")

class Finder:
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, Loader()) if name == "tensorflow" else None

sys.meta_path[1:1] = [object(), Finder()]
import tensorflow
"""
    assert (imported(code).stdout, imported(code).stderr) == ("loaded\n", "")


def test_a_process_without_standard_error(imported):
    assert imported("import tensorflow", redirection="2>&-").stdout.split() == ["level", "3"]


@pytest.mark.slow
def test_the_real_tensorflow_says_nothing():
    environment = {name: value for name, value in os.environ.items() if name != quiet.VARIABLE}
    code = (
        "import pcbatch, tensorflow as tf\n@tf.function(jit_compile=True)\ndef f(x): return x + 1\nprint(f(1).numpy())"
    )
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "2\n"
    assert re.findall("^[IWEF][0-9]{4} .*|^WARNING.*", done.stderr, re.MULTILINE) == []


def test_arviz_warns_of_its_own_future_to_those_who_import_it(tmp_path, monkeypatch):
    (tmp_path / "arviz.py").write_text("import warnings\nwarnings.warn('a major refactor', FutureWarning)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "arviz", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert summaries._arviz().__file__ == str(tmp_path / "arviz.py")
    sys.modules.pop("arviz")


def test_the_demo_imports_pcbatch_before_tensorflow():
    text = (ROOT / "examples" / "nuts" / "breast_cancer.py").read_text()
    names = [re.split(r"[ .]", line)[1] for line in text.splitlines() if re.match("(from|import) ", line)]
    assert names.index("pcbatch") < names.index("tensorflow")


def test_bare_make_lists_the_targets():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    printed = subprocess.run(["make"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    assert {line.split()[1] for line in printed.splitlines()} == {*phony} - {"help"}
    assert all(len(line.split(maxsplit=2)) == 3 for line in printed.splitlines())
