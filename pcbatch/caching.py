"""`pcbatch.cache`: keep compiled programs on disk, for the next process."""

from __future__ import annotations

import os

from pcbatch.runtime.store import cache_session


def cache(folder: str | os.PathLike[str] | None, *, max_bytes: int = cache_session.LIMIT) -> None:
    """Keep compiled programs in `folder`, and take from there what another process has compiled.

    A program is found if its text, all that was read while it was traced, its options, the types and the number of
    lanes, the versions of pcbatch and of all installed packages, the processor and the flags are the same; the result
    has the same bits then. What cannot be kept, such as a `pcbatch.primitive` with a batched form or code that calls
    Python by `tf.py_function`, is compiled as ever. `f.stats()` counts `hits` and `misses`. A damaged file is a miss.

    Call it before TensorFlow's first operation: only then does XLA keep what it has compiled there. The environment
    variable PCBATCH_CACHE does the same when pcbatch is imported. Several processes may share a folder. It belongs to
    you alone (mode 0700), since what is in it is run.

    Arguments:
        folder: the path of a folder, made if it is not there; None for no cache from now on.
        max_bytes: if the folder grows beyond, programs used longest ago are removed (default: a gigabyte).

    Raises:
        UsageError: PCB575, the folder cannot be used.
    """
    cache_session.use(folder, max_bytes)
