"""Tools for libraries that save runs of their own: a container of arrays that notices damage, digests of functions.

`write` and `read` are those of `Run.save` (npz without pickle, written whole or not at all, with a checksum);
what is made of a header is made within `interpreting(path)`: whatever goes wrong there is the file's fault (PCB590);
`function_digest` is the same in every process as long as a function, its helpers and what they read are the same.
"""

from pcbatch.function.identity import function_digest
from pcbatch.runtime.resume.savefile import interpreting, read, write

__all__ = ["function_digest", "interpreting", "read", "write"]
