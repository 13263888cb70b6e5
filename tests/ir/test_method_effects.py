"""What inference tells the frontend of a method, as a text and back."""

import pytest

from pcbatch.ir.method_effects import ANY, Effect, effects_in, is_of_effects, steps_to, text_of_effects


def test_effects_come_back_from_their_text():
    effects = {
        Effect("changes", (".rows", 0)),
        Effect("gives", (".m", '["it\'s"]'), ("['a b']", 1)),
        Effect("moves", (".old",), (".rows",)),
    }
    text = text_of_effects(effects)
    assert is_of_effects(text)
    assert set(effects_in(text)) == effects
    assert text == text_of_effects(sorted(effects, key=repr))


def test_no_effects_are_something_that_is_known():
    assert is_of_effects(text_of_effects([]))
    assert effects_in(text_of_effects([])) == []


@pytest.mark.parametrize("name", ["__setitem__", ".rows", ".move()"])
def test_names_of_methods_are_no_effects(name):
    assert not is_of_effects(name)


@pytest.mark.parametrize(
    ("key", "steps"),
    [(3, (3,)), ("k", ("['k']",)), (-1, (ANY,)), (True, (ANY,)), (1.5, (ANY,)), ((1, "k"), (1, "['k']"))],
)
def test_the_steps_to_an_entry(key, steps):
    assert steps_to(key) == steps
