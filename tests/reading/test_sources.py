"""Sources of functions: each is of its own file, whatever other file has the same text."""

import pcbatch

TEXT = "import pcbatch\n\n\n@pcbatch.autobatch\ndef f(x):\n    assert x > 0\n    return x\n"


def test_equal_code_in_two_files_is_told_of_its_own_file(tmp_path):
    for name in ("one.py", "other.py"):
        path = tmp_path / name
        path.write_text(TEXT)
        scope = {}
        exec(compile(TEXT, str(path), "exec"), scope)
        assert isinstance(scope["f"], pcbatch.Batched)
        (error,) = scope["f"].run([0, 1]).errors
        assert error.span.file == str(path)
