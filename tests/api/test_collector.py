"""The garbage collector is paused while a program is compiled, and as before afterwards."""

import gc

import pytest

import pcbatch
from pcbatch.runtime.machine import gc_pause

seen = []


@pcbatch.autobatch
def looks(x):
    return x + look(x)


def look(x):
    """What cannot be interpreted is called, so it runs while the program is compiled."""
    try:
        return x
    finally:
        seen.append(gc.isenabled())


@pytest.mark.parametrize("enabled", [True, False])
def test_paused(enabled):
    """Inside and afterwards, also after an error."""
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with gc_pause.paused(), gc_pause.paused():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
        with pytest.raises(ValueError, match="wrong"), gc_pause.paused():
            raise ValueError("wrong")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_compiling():
    """No cycle is collected while a user's operations are traced."""
    assert gc.isenabled()
    assert looks([1, 2]).numpy().tolist() == [2, 4]
    assert seen
    assert not any(seen)
    assert gc.isenabled()
