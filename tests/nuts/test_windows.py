"""The windows of the warm-up are Stan's after the first stretch, which has some of its own."""

import numpy as np
import pytest

from pcbatch.nuts.adaptation.adaptation import CLOSE, LAST, STEP, WINDOW, plan, stretches


def stan(warmup):
    """First stretch, ends of windows and last stretch as Stan's `windowed_adaptation` counts them."""
    first, last, window = 75, max(50, warmup // 10), 25
    if first + window + last > warmup:
        first, last = int(0.15 * warmup), int(0.1 * warmup)
        window = warmup - (first + last)
    end, ends, final = first + window - 1, [], warmup - last - 1
    for counter in range(warmup):
        if counter != end:
            continue
        ends.append(counter)
        if end == final:
            continue
        window *= 2
        end = counter + window
        if end != final and end + 2 * window >= warmup - last:
            end = final
    return first, ends, last


@pytest.mark.parametrize("warmup", [20, 21, 57, 100, 149, 150, 200, 250, 300, 349, 350, 500, 999, 1000, 2000])
def test_windows_end_where_stans_do(warmup):
    windows, last = stretches(warmup)
    first, ends, expected = stan(warmup)
    found = np.cumsum(windows)
    assert first in found
    assert ((found[found > first] - 1).tolist(), last) == (ends, expected)


@pytest.mark.parametrize("warmup", [151, 160, 199])
def test_no_window_is_shorter_than_the_first(warmup):
    windows, last = stretches(warmup)
    assert windows[-1] == warmup - sum(windows[:-1]) - last >= 25
    assert sum(windows[:-1]) == stan(warmup)[0]


@pytest.mark.parametrize("warmup", [0, 1, 19, 20, 150, 1000])
def test_every_trajectory_has_its_action(warmup):
    actions = plan(warmup)
    assert actions.dtype == np.int32
    assert len(actions) == warmup
    assert (actions[-1:] == LAST).all()
    assert np.count_nonzero(actions == LAST) == min(warmup, 1)


def test_the_default_warm_up():
    actions = plan(1000).tolist()
    assert [place for place, action in enumerate(actions) if action == CLOSE] == [9, 29, 74, 99, 149, 249, 449, 899]
    assert actions[75:99] == [WINDOW] * 24
    assert actions[900:] == [STEP] * 99 + [LAST]
