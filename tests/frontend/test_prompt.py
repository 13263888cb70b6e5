"""Functions typed at Python's prompt: from 3.13 they have a source, before that the refusal says what to do."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
TYPED = (
    "from pcbatch.frontend import read_function",
    "def double(x):\n    return 2 * x\n",
    "print('READ', read_function(double).span.text)",
)


def at_the_prompt(lines: tuple[str, ...], until: str) -> str:
    """What an interactive Python in a terminal prints for `lines`, until there is something that matches `until`."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHON_HISTORY": os.devnull}
    process = subprocess.Popen(
        [sys.executable, "-q", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, env=environment, close_fds=True
    )
    os.close(terminal)
    heard = ""
    pending = list(lines)
    deadline = time.monotonic() + 120  # a broken prompt must not hang the tests
    try:
        while not re.search(until, heard) and process.poll() is None and time.monotonic() < deadline:
            if select.select([controller], [], [], 1.0)[0]:
                heard += os.read(controller, 65536).decode(errors="replace")
            elif pending:  # it is waiting
                os.write(controller, pending.pop(0).encode() + b"\n")
    finally:
        process.kill()
        process.wait()
        os.close(controller)
    return heard


def test_a_function_typed_at_the_prompt() -> None:
    heard = at_the_prompt(TYPED, r"READ def double\(x\):|PCB\d+:[\s\S]*>>> ")
    if sys.version_info >= (3, 13):
        assert re.search(r"READ def double\(x\):", heard), heard
    else:
        assert "PCB100: the source of `double` cannot be read: <stdin> has no text" in heard
        assert "from Python 3.13, the interactive prompt" in heard


def test_code_given_on_the_command_line() -> None:
    """`python -c` has a text from Python 3.13 only, too."""
    code = "\n".join(TYPED)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    if sys.version_info >= (3, 13):
        assert done.stdout == "READ def double(x):\n", done.stderr
    else:
        assert "PCB100: the source of `double` cannot be read: <string> has no text" in done.stderr
