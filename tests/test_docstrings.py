"""First sentences of docstrings, of those below constants and fields, too: their first word and their length."""

import ast
import functools
import re
import statistics

import pytest

from tests.test_architecture import trees

pytestmark = pytest.mark.xdist_group("architecture")  # each module is read once
CLAUSE = re.compile(r"(What|Whether|How|Which|That|Where|When|Who)\b")
SENTENCE = re.compile(r".*?(?<!e\.g)(?<!i\.e)(?<!\.)[.!?](?=\s+[^\sa-z]|$)")
WORDS = 14


def docstrings(node):
    """The strings that stand as statements, each with its line."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Expr(ast.Constant(str(text))):
                yield child.lineno, text
            case ast.stmt() | ast.excepthandler() | ast.match_case():
                yield from docstrings(child)


def first_sentence(text):
    """The first sentence on one line; an abbreviation or `..` does not end it."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    found = SENTENCE.match(paragraph)
    return found[0] if found else paragraph


@functools.cache
def first_sentences():
    """The first sentences, by module and line."""
    return {f"{name}:{line}": first_sentence(text) for name, tree in trees().items() for line, text in docstrings(tree)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Return `a .. b`. Or not.", "Return `a .. b`."),
        ("The lanes, e.g. 64, of a\n    run.\n\n    More.", "The lanes, e.g. 64, of a run."),
        ("Write 2.5 numbers.", "Write 2.5 numbers."),
        ("Is it so? `x` is.", "Is it so?"),
        ("No stop", "No stop"),
    ],
)
def test_first_sentence(text, sentence):
    assert first_sentence(text) == sentence


def test_docstrings_below_fields_and_in_functions_are_found():
    text = '"""A module."""\nX = 1\n"""A constant."""\nclass C:\n    """A class."""\n    x: int\n    """A field."""\n'
    text += '    def __init__(self):\n        self.y = 1\n        """An attribute."""\n'
    found = {each for _, each in docstrings(ast.parse(text))}
    assert found == {"A module.", "A constant.", "A class.", "A field.", "An attribute."}


def test_first_words():
    """A docstring begins with a verb or a noun: a clause in its place says what a thing is not called."""
    bad = [f"{place}: {sentence}" for place, sentence in first_sentences().items() if CLAUSE.match(sentence)]
    assert bad == []


def test_first_sentences_are_short():
    mean = statistics.mean(len(each.split()) for each in first_sentences().values())
    assert mean <= WORDS, f"{mean:.2f} words"
