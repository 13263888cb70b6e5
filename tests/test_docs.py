"""The documentation prints what the command line prints; UPDATE_GOLDENS=1 writes it anew."""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
import os
import re
import runpy
import shlex
import textwrap
from pathlib import Path

import numpy as np
import pytest

import pcbatch
from examples.fibonacci import fibonacci
from pcbatch.commands.cli import main
from pcbatch.optimize.pipeline import CFG_PASSES, STACK_PASSES, machine_passes
from tests.optimize.stepping import outcomes
from tests.pages import check, check_row, rows, sections, sentences

ROOT = Path(__file__).parent.parent
BOX = re.compile(r"<!-- (run|file|sampler|signature): (.*?) -->\n```(\w*)\n(.*?)```\n", re.DOTALL)


SECONDS = re.compile(r"\b\d[\d.e-]* s\b")
"""How long something took, which is never the same."""


def printed(command: str) -> str:
    """What a box says: the command after a `$`, then its output, cut where the text says so."""
    words, _, cut = command.partition(" | first ")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(shlex.split(words)[1:]) == 0
    lines = SECONDS.sub(".. s", output.getvalue()).rstrip("\n").splitlines()
    if cut:
        lines = [*lines[: int(cut.split()[0])], "..."]
    return "\n".join([f"$ {words}", *lines]) + "\n"


def quoted(place: str) -> str:
    """A function of a file, or a method, with decorators, without the indentation that it has in another function."""
    path, name = place.split()
    text = (ROOT / path).read_text(encoding="utf-8")
    tree: ast.AST = ast.parse(text)
    owner, _, name = name.rpartition(".")
    if owner:
        (tree,) = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == owner)
    (found,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    first = min(node.lineno for node in (found, *found.decorator_list))
    return textwrap.dedent("\n".join(text.splitlines()[first - 1 : found.end_lineno])) + "\n"


def sampler(what: str) -> str:
    """A stage of the IR of one of the sampler's functions."""
    import tensorflow as tf

    from pcbatch.nuts.running.chain import make_sampler

    name, stage = what.split()
    made = make_sampler(lambda q, data: -tf.reduce_sum(q * q), dimensions=2, dtype=tf.float32, capacity=10)
    return getattr(made, name).ir(stage).strip("\n") + "\n"


PAGES = (*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")))
LINK = re.compile(r"\[[^]]*\]\(([^)\s#:]*)(?:#([^)\s]*))?\)")
FENCED = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a link may name behind `#`: headings in lower case, words joined by dashes."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {path}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {path}#{anchor}"


def test_debugging_shows_code_that_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    names = {"f": fibonacci.options(jit=False), "x": np.array([3, 7, 4, 5], np.int32)}
    for block in blocks:
        if "@pcbatch" in block:  # what is batched is read from its file
            (tmp_path / "program.py").write_text(f"import pcbatch\n\n{block}", encoding="utf-8")
            runpy.run_path(str(tmp_path / "program.py"))
            continue
        exec(compile(block, "docs/debugging.md", "exec"), names)
    assert len(blocks) >= 4
    printed = capsys.readouterr().out
    assert "program machine fibonacci" in printed
    assert ":7: y = 2.0000" in printed


LANGUAGE, CHANGED = ROOT / "docs" / "language.md", ROOT / "docs" / "changed.md"
PROGRAMS = sections(LANGUAGE) | sections(CHANGED)


@pytest.mark.parametrize("title", PROGRAMS)
def test_the_language_is_what_its_pages_show(title, tmp_path):
    check(PROGRAMS[title], tmp_path / "program_of_the_page.py")


@pytest.mark.parametrize(("bad", "code", "good"), rows(LANGUAGE))
def test_frequent_refusals_and_what_to_write(bad, code, good, tmp_path):
    check_row(bad, code, tmp_path / "refused_by_the_page.py")
    check_row(good, "", tmp_path / "written_by_the_page.py")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_sentences_are_short(page):
    """At most 25 words; code counts as one word."""
    long = [each for each in sentences(page) if len(each.split()) > 25]
    assert not long, "\n".join(long)


REFUSED = """import tensorflow as tf
import pcbatch

@pcbatch.autobatch
def padded(n):
    x = 0.0
    if n > 2:
        x = tf.zeros([3])
    return x
"""


def test_the_readme_shows_a_refusal_as_it_is(tmp_path):
    file = tmp_path / "example.py"
    file.write_text(REFUSED, encoding="utf-8")
    with pytest.raises(pcbatch.CompileError) as caught:
        runpy.run_path(str(file))["padded"].check([1, 3])
    shown = "\n".join(line.rstrip() for line in str(caught.value).replace(str(file), "example.py").splitlines())
    assert f"```\n{shown}\n```" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_recipe_for_finding_a_pass_sees_every_pass():
    example = np.array([9], np.int32)
    seen = list(outcomes(fibonacci, [example], list(example)))
    passes = {*CFG_PASSES, *STACK_PASSES, *machine_passes(lambda program, piece: frozenset(), ())}
    assert {name for name, _ in seen} == {"typed", "calls", "machine", *passes}
    assert {(outcome.status, int(outcome.value)) for _, outcome in seen} == {("OK", 55)}


def signature(name: str) -> str:
    """A function of the sampler's with all its parameters and their defaults, without types."""
    parameters = inspect.signature(getattr(pcbatch.nuts, name)).parameters.values()
    lines = []
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and "    *," not in lines:
            lines.append("    *,")
        lines.append(f"    {each.replace(annotation=each.empty)},".replace("'", '"'))
    return "\n".join([f"{name}(", *lines, ")"]) + "\n"


MAKERS = {"run": printed, "file": quoted, "sampler": sampler, "signature": signature}


@pytest.mark.parametrize(
    "page", ["docs/how-it-works.md", "docs/nuts.md", "docs/nuts-walkthrough.md", "CONTRIBUTING.md"]
)
def test_pages_show_what_is_printed(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = ROOT / page
    text = path.read_text(encoding="utf-8")

    def filled(match: re.Match[str]) -> str:
        kind, what, language, _ = match.groups()
        return f"<!-- {kind}: {what} -->\n```{language}\n{MAKERS[kind](what)}```\n"

    expected = BOX.sub(filled, text)
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(expected, encoding="utf-8")
    assert text == expected or os.environ.get("UPDATE_GOLDENS"), f"{page} has drifted; UPDATE_GOLDENS=1 rewrites it"
    assert len(BOX.findall(text)) == text.count("<!-- ")


def test_the_page_of_random_numbers_has_every_function_and_an_example_of_it():
    text = (ROOT / "docs" / "random.md").read_text(encoding="utf-8")
    _, examples = text.split("## An example of each")
    for name in pcbatch.random.__all__:
        signature = inspect.signature(getattr(pcbatch.random, name))
        given = [
            f"dtype=tf.{getattr(each.default, 'name', each.default).removeprefix('tf.')}"
            if each.name == "dtype"
            else f"{each.name}={each.default!r}"
            for each in _optional(signature)
        ]
        needed = [p.name for p in signature.parameters.values() if p.default is p.empty]
        assert f"`{name}({', '.join([*needed, *given])})`" in text, name
        assert f"{name}(" in examples, name
    found = doctest.DocTestParser().get_doctest(examples, {"np": np}, "random.md", None, 0)
    assert doctest.DocTestRunner().run(found).failed == 0


def _optional(signature: inspect.Signature) -> list[inspect.Parameter]:
    return [each for each in signature.parameters.values() if each.default is not each.empty]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/trees.md", "docs/gradients.md", "docs/training.md"])
def test_the_code_of_a_page_runs_as_one_program(page, tmp_path, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    program = tmp_path / "program.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    runpy.run_path(str(program))
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print\(.*\)  # (\S+)", "\n".join(blocks), re.MULTILINE)
    assert promised
    assert all(any(line.startswith(start) for line in printed) for start in promised)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pcbatch.nuts.SamplerWarning")
def test_the_code_of_the_samplers_page_runs(tmp_path, monkeypatch):
    """The code that is one program: the first model and what is done with it, up to other processes."""
    text, _, _ = (ROOT / "docs" / "nuts.md").read_text(encoding="utf-8").partition("## Other processes")
    *blocks, goes_on = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "program.py").write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(tmp_path / "program.py"))
    samples = names["samples"]
    assert samples.extra["contrast"].shape == (4, 1000)
    assert abs(samples["weights"].mean(axis=(0, 1)) - [2.0, 0.0, -1.0]).max() < 0.3
    exec(goes_on, names)
    assert names["samples"]["weights"].shape == (4, 2000, 3)


SHOWN_AS = {"mean": ".2f", "sd": ".2f", "mcse_mean": ".3f", "mcse_sd": ".3f", "ess_bulk": ".1f", "ess_tail": ".1f"}
"""Digits of the table on the sampler's page; three of what is not here."""


@pytest.mark.slow
def test_the_samplers_page_shows_the_table_of_its_first_program(tmp_path):
    """Draws depend on how a machine rounds, so what is shown need only be near; UPDATE_GOLDENS=1 writes it."""
    path = ROOT / "docs" / "nuts.md"
    text = path.read_text(encoding="utf-8")
    program, shown = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE).groups()
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    table = runpy.run_path(str(tmp_path / "program.py"))["samples"].summary()
    digits = {name: f"{{:{SHOWN_AS.get(name, '.3f')}}}".format for name in table}
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text.replace(shown, table.to_string(formatters=digits) + "\n"), encoding="utf-8")
        return
    head, *rows = (line.split() for line in shown.splitlines())
    assert head == [*table]
    assert [row[0] for row in rows] == [*table.index]
    found = np.array([[float(each) for each in row[1:]] for row in rows])
    near = table[["mean", "sd"]].to_numpy()
    np.testing.assert_allclose(found[:, :2], near, atol=0.01)
    np.testing.assert_allclose(found[:, 4:6], table[["ess_bulk", "ess_tail"]].to_numpy(), rtol=0.25)


def test_slow_tests_are_there():
    """A test that `slow.txt` names is a function of the file that it names."""
    for line in (ROOT / "tests" / "slow.txt").read_text().splitlines():
        path, _, name = line.partition("::")
        assert f"def {name.split('[')[0]}(" in (ROOT / path).read_text(), line


STEP = re.compile(r"^1\. \[`([\w.]+)`\]\(\.\./(pcbatch/[\w/]+\.py)\): ", re.MULTILINE)


def walks() -> dict[str, list[tuple[str, str]]]:
    """The steps of each walk through the code, functions and their files, by its heading."""
    text = (ROOT / "docs/how-it-works.md").read_text(encoding="utf-8").partition("## 9. Walks")[2]
    _, *parts = re.split(r"^### (.*)$", text, flags=re.MULTILINE)
    return {name: STEP.findall(part) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def test_walks_lead_through_functions_that_are_there() -> None:
    found = walks()
    assert len(found) == 3
    for steps in found.values():
        assert 10 <= len(steps) <= 15
        for name, path in steps:
            nodes: list[ast.AST] = [ast.parse((ROOT / path).read_text(encoding="utf-8"))]
            for part in name.split("."):
                nodes = [
                    each
                    for node in nodes
                    for each in ast.iter_child_nodes(node)
                    if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == part
                ]
            assert nodes, f"{path} has no {name}"
