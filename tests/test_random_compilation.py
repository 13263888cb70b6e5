"""Compiling what reads a draw ends, for every size: LLVM once followed all paths through the rounds of Threefry.

Each test compiles in a process of its own, which a test can end: a compilation that hangs cannot be stopped otherwise.
"""

import subprocess
import sys
import textwrap

import pytest

LIMIT = 900
"""Seconds that a process may take; without the mending it takes years."""
IMPORTS = "import sys\nimport tensorflow as tf\nimport pcbatch\nfrom pcbatch import random\n"
SIZES = (1, 8, 24, 64, 1000)


def run(folder, code, *numbers):
    """Run `code` in another process; fails where it does, or where it does not end."""
    file = folder / "program.py"  # the compiler wants a function's source
    file.write_text(IMPORTS + textwrap.dedent(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file), *map(str, numbers)], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


READERS = """
    sizes = [int(each) for each in sys.argv[1:]]

    def categories(key):
        return [random.categorical(key, tf.zeros([n])) for n in sizes]

    def largest(key):
        return [tf.argmax(random.uniform(key, (n,))) for n in sizes if n % 8 == 0]

    keys = random.keys(0, 3)
    batched = pcbatch.autobatch(categories)(keys)
    for ours, theirs in zip(batched, categories(keys[1]), strict=True):
        assert ours[1] == theirs
    for ours, theirs in zip(tf.function(largest, jit_compile=True, autograph=False)(keys[0]), largest(keys[0])):
        assert ours == theirs
"""


@pytest.mark.slow
def test_the_largest_of_some_draws(tmp_path):
    run(tmp_path, READERS, *SIZES)


@pytest.mark.slow
def test_the_largest_of_up_to_64_draws(tmp_path):
    run(tmp_path, READERS, *range(1, 65))


@pytest.mark.slow
def test_every_draw_with_every_reader(tmp_path):
    run(
        tmp_path,
        """
        draws = [
            lambda key, n: random.uniform(key, (n,), tf.float64),
            lambda key, n: random.uniform(key, (n,), minval=-1.0, maxval=2.0),
            lambda key, n: random.normal(key, (n,)),
            lambda key, n: random.normal(key, (n,), tf.float64),
            lambda key, n: random.exponential(key, (n,)),
            lambda key, n: tf.cast(random.bernoulli(key, 0.5, (n,)), tf.float32),
            lambda key, n: random.randint(key, (n,), 0, 100, tf.int64),
            lambda key, n: tf.cast(random.split(key, n)[:, 1], tf.int32),
            lambda key, n: tf.cast(random.bits(key, (n,), tf.uint64), tf.int64),
            lambda key, n: tf.range(n) * random.randint(key, (), 0, 100),
            lambda key, n: tf.range(float(n)) * random.normal(key),
        ]
        readers = [tf.argmax, tf.argmin, tf.reduce_max, tf.reduce_min, tf.reduce_sum, tf.sort, tf.argsort, tf.cumsum]
        key = random.key(1)
        for draw in draws:
            for n in (8, 24, 1000):
                tf.function(lambda key: [reader(draw(key, n)) for reader in readers], jit_compile=True)(key)
    """,
    )
