"""The "cfg" program of small functions: its text, its meaning, and that file and live function give the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Function
from pcbatch.ir.verifier import verify
from tests.frontend.helpers import FOLDER, fresh, load_live, program_of, program_of_live, programs
from tests.goldens import check_golden
from tests.ir.evaluation import copy_store, python_evaluate
from tests.ir.interpreter import interpret
from tests.ir.parser import parse_program

PROGRAMS = programs("programs")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
class TestProgram:
    def test_text(self, path: Path) -> None:
        check_golden(path.with_suffix(".txt"), print_program(program_of(path).program))

    def test_well_formed(self, path: Path) -> None:
        program = program_of(path).program
        verify(program)
        assert parse_program(print_program(program)) == program

    def test_live_function_gives_the_same(self, path: Path) -> None:
        static = program_of(path).program
        live = program_of_live(load_live(path)[static.entry.name])
        assert print_program(live, lines=True) == print_program(static, lines=True)
        assert live == static

    def test_meaning_is_pythons(self, path: Path) -> None:
        namespace = load_live(path)
        program = program_of(path).program
        plain = namespace[program.entry.name]
        evaluate = python_evaluate({function.name: namespace for function in program.functions})
        for arguments in namespace["EXAMPLES"]:
            outcome = interpret(program, fresh(arguments), evaluate, store)
            try:
                expected = plain(*fresh([nested(each) for each in arguments]))
            except Exception as error:  # whatever the program raises must be the lane's fault
                text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                assert outcome.message == text
                assert outcome.status != "OK"
            else:
                assert (outcome.status, outcome.message) == ("OK", "")
                assert (outcome.value, type(outcome.value)) == (expected, type(expected))

    def test_every_op_has_a_place(self, path: Path) -> None:
        program = program_of(path).program
        for block in program.blocks():
            for node in (*block.ops, block.terminator):
                assert node.span is not None, node
                assert node.span.file == str(path)
                assert node.span.text, node


class Matrix(list):
    """A list of lists that takes `m[i, j]`, as arrays do."""

    def __getitem__(self, index: Any) -> Any:
        return self[index[0]][index[1]] if isinstance(index, tuple) else super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, tuple):
            self[index[0]][index[1]] = value
        else:
            super().__setitem__(index, value)

    def __deepcopy__(self, memo: Any) -> Matrix:
        return Matrix([[*row] for row in self])


def nested(value: Any) -> Any:
    return Matrix(value) if isinstance(value, list) and value and isinstance(value[0], list) else value


def store(array: Any, indices: tuple[Any, ...], value: Any) -> Any:
    return nested(copy_store([*array] if isinstance(array, list) else array, indices, value))


def functions(path: Path) -> dict[str, Function]:
    return {function.name: function for function in program_of(path).program.functions}


def test_functions_that_are_not_reached_are_left_out() -> None:
    assert set(functions(FOLDER / "programs" / "dead_code.py")) == {"dead_code"}


def test_free_names_are_listed() -> None:
    """Constants of the module, and functions, are in the program; what is left are those that code reads."""
    assert functions(FOLDER / "programs" / "names.py")["names"].externs == ()
    assert functions(FOLDER / "programs" / "conditions.py")["conditions"].externs == ("math",)


def test_neither_tensorflow_nor_the_file_is_imported() -> None:
    path = FOLDER / "programs" / "fibonacci.py"
    script = (
        "import sys; from pcbatch.reading.static_module import read_file\n"
        f"read_file({str(path)!r}, 'fibonacci')\n"
        "assert not {'tensorflow', 'fibonacci'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=FOLDER.parents[1])
