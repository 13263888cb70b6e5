"""The NumPy backend: the machine's operations carried out at once, pieces in a Python loop over the lanes.

Nothing is traced and nothing is compiled, so the machine's own tests take a fraction of the time. It is strict where a
compiler would be: shapes and dtypes stay as they are through conditions and loops, and an index that leaves its array
is an error. Users cannot choose it: it takes hand-made pieces, of operations that NumPy's values and Python's know.
"""

from tests.runtime.numpy_backend.backend import NumPyBackend as NumPyBackend
