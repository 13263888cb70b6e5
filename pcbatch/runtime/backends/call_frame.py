"""The call frame of XLA's foreign function interface, version 0, by which a handler is called.

Offsets in bytes into the structures of `xla/ffi/api/c_api.h`; pointers and lengths are words of 64 bits. A handler gets
the address of a frame, and returns that of an error, or 0.
"""

MAJOR = 0
"""The version that these offsets are of."""
EXTENSION, API, STAGE, ARGUMENTS, RESULTS = 8, 16, 32, 72, 112
"""Offsets in a frame: pointers to the first extension and to the table of functions; the stage, int32; lists of
pointers to buffers."""
EXECUTE = 3
"""The stage at which there are buffers."""
DATA, SIZES = 24, 40
"""Offsets in a buffer: pointers to its elements, and to its lengths, int64."""
KIND, METADATA = 8, 24
"""Offsets in an extension: its kind, int32; in one that asks for `ABOUT`, the place of the answer."""
ABOUT = 1
"""The kind of extension by which XLA asks a handler about itself, instead of calling it."""
ABOUT_MAJOR, ABOUT_MINOR, ABOUT_TRAITS = 24, 28, 32
"""Offsets in the answer: int32."""
API_MAJOR, API_MINOR, API_ERROR, API_REGISTER = 32, 36, 48, 72
"""Offsets in the table of functions: its version, int32, and pointers to the functions that make an error and that
register a handler."""
ERROR_BYTES, ERROR_MESSAGE, ERROR_KIND, INTERNAL = 32, 16, 24, 13
"""Layout of the struct that creates an error: its size in the first word, then the message and the kind, int32."""
