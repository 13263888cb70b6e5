"""Parts of the documentation site: pages, links, drawn tables. `make docs` builds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pcbatch
from benchmarks import readme, single, tapes
from tests.pages import check, sections
from tools import gallery, options, tables
from tools.site import errors
from tools.site.links import relinked

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert listed == pages | {"index.md", "contributing.md", "changelog.md"}


def test_every_public_name_has_a_description():
    text = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    described = set(re.findall(r"^::: pcbatch\.([\w.]+)$", text, re.MULTILINE))
    public = {*pcbatch.__all__, *(f"nuts.{name}" for name in pcbatch.nuts.__all__)}
    public |= {f"exported.{name}" for name in pcbatch.exported.__all__}
    modules = {"nuts", "exported", "__version__"}  # their names are listed; the others' are in the module's entry
    assert described == public - modules


def test_the_table_of_options_is_the_codes():
    assert options.PAGE.read_text(encoding="utf-8") == options.page(), "python -m tools.options writes docs/options.md"


@pytest.mark.parametrize("page", [page for page in tables.PAGES if "<!-- table: " in page.read_text("utf-8")], ids=str)
def test_tables_are_those_of_the_pages_of_figures(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- table: ") == len(tables.MARKED.findall(text))
    assert tables.drawn(page) == text, "python -m tools.tables draws it"


def test_the_readmes_line_is_the_figures_files():
    text = readme.PAGE.read_text(encoding="utf-8")
    assert readme.line() in text
    assert readme.drawn(text) == text, "python -m benchmarks.readme --draw measures anew"


def test_the_table_of_single_is_the_figures_files():
    text = single.PAGE.read_text(encoding="utf-8")
    assert single.table() in text
    assert single.drawn(text) == text, "python -m benchmarks.single --draw measures anew"


def test_the_table_of_tapes_is_the_figures_files():
    text = tapes.PAGE.read_text(encoding="utf-8")
    assert "| a recursion | 16,384 |" in text
    assert tapes.drawn(text) == text, "python -m benchmarks.tapes --draw measures anew"


def test_the_readmes_program_runs(tmp_path):
    (title,) = (title for title in sections(readme.PAGE) if title.startswith("A loop over examples"))
    check(sections(readme.PAGE)[title], tmp_path / "readme_program.py", "")


def test_the_gallery_has_every_example():
    text = gallery.PAGE.read_text(encoding="utf-8")
    names = {
        path.relative_to(ROOT / "examples").with_suffix("").as_posix() for path in (ROOT / "examples").rglob("*.py")
    }
    names.remove("training/running")  # what the models there have in common
    assert {name for names in gallery.GROUPS.values() for name in names} == names
    for name in names:
        title, look = gallery.told(name)
        assert f"### [{name}](../examples/{name}.py)\n\n{title}\n\n{look}\n" in text, (
            "python -m tools.gallery writes it"
        )


def test_each_error_has_a_page():
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    pages = errors.pages(text)
    assert set(pages) == set(re.findall(r"^## (PCB\d{3})", text, re.MULTILINE))
    assert all(page.startswith(f"# {code}: ") and "Works:" in page for code, page in pages.items())
    assert all(f"[{code}](#{code.lower()})" in errors.index(text) for code in pages)


def test_links_become_those_of_the_site():
    text = "[a](../README.md#x) [b](errors.md#pcb401-shapes) [c](../examples/gcd.py) [d](https://x.y) [e](#f) `[g](h)`"
    seen = []
    found = relinked(text, "docs/when.md", lambda path: seen.append(path) or f"files/{path}.md")
    assert found == (
        "[a](index.md#x) [b](errors/PCB401.md) [c](files/examples/gcd.py.md) [d](https://x.y) [e](#f) `[g](h)`"
    )
    assert seen == ["examples/gcd.py"]
    assert relinked("[a](glossary.md)", "docs/errors.md", str, "errors/PCB101.md") == "[a](../glossary.md)"
    assert relinked("[a](docs/errors.md)", "README.md", str) == "[a](errors.md)"


def test_the_readme_on_an_index_has_no_link_that_leads_nowhere():
    pytest.importorskip("hatchling")
    from tools.metadata import for_an_index

    text = "<!-- table: x -->\nsee [a table](docs/x.md#y) and [more](https://a.b)\n"
    assert for_an_index(text, None) == "see a table and [more](https://a.b)\n"
    there = for_an_index(text, "https://h/o/p/")
    assert there == "see [a table](https://h/o/p/blob/main/docs/x.md#y) and [more](https://a.b)\n"
    assert for_an_index("[`f(x)`](a.md) `[0]` (b)", None) == "`f(x)` `[0]` (b)"
    readme_text = for_an_index(readme.PAGE.read_text(encoding="utf-8"), None)
    assert not re.search(r"\]\((?!https?:)", re.sub(r"^```.*?^```$", "", readme_text, flags=re.DOTALL | re.MULTILINE))


def test_a_word_of_the_glossary_is_defined_once():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = [
        word
        for head in re.findall(r"^- (\*\*.*?)(?::|\()", text, re.MULTILINE)
        for word in re.findall(r"\*\*(.*?)\*\*", head)
    ]
    assert sorted(words) == sorted(set(words))
    assert len(words) > 75
