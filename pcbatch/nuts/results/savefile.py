"""Saved samples: draws, settings, data and where the chains stand, in one npz file without pickle.

The file names the density by module and qualified name, and has a digest of its code. Nothing is imported or run for a
name: a density is one that the caller has handed over, here or earlier in this process, and a class is one that is
loaded. The structures of parameters and data are written as nested JSON objects:

```
structure ::= {"shape": [..]} | {"kind": kind, "names": [..], "parts": [structure..]}
kind      ::= "dict" | "tuple" | "list" | "module:Class"
```
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import saving
from pcbatch.errors import UsageError
from pcbatch.nuts.parameters.bijectors import BUILT_IN
from pcbatch.nuts.parameters.foreign import Foreign
from pcbatch.nuts.parameters.models import Joint
from pcbatch.nuts.parameters.parameters import Layout, Leaf, Node, arrays_of, layout_of, leaves, made
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.results.draws import GROUPS, Draws
from pcbatch.runtime.resume import savefile
from pcbatch.runtime.resume.checkpoint import python_version
from pcbatch.version import __version__

KIND, FORMAT = "samples", 3
"""The version goes up with every change of the header or of the arrays' names."""
FORM = {
    "format": str,
    "version": int,
    "pcbatch": str,
    "python": str,
    "settings": {str: object},
    "density": {"name": str, "digest": str},
    "parameters": object,
    "bijectors": [(type(None), list)],
    "whole": bool,
    "data": object,
    "done": savefile.count,
    "cost": [savefile.count],
    "failed": {str: str},
}
"""The fields of a header."""
PLAIN = {"dict": dict, "tuple": tuple, "list": list}


def save(samples: Draws, path: str | os.PathLike[str]) -> None:
    """`Samples.save`."""
    origin = samples.origin
    arrays = {f"{group}/{name}": array for group in GROUPS for name, array in getattr(samples, group).items()}
    arrays |= {f"state/{name}": np.asarray(array) for name, array in named_arrays(origin.state)}
    arrays |= {f"pool/{name}": np.asarray(array) for name, array in named_arrays(origin.pool)}
    arrays |= {f"data/{name}": np.asarray(array) for name, array in named_arrays(origin.data)}
    arrays["keys"] = np.asarray(origin.keys)
    header = {
        "format": KIND,
        "version": FORMAT,
        "pcbatch": __version__,
        "python": python_version(),
        "settings": samples.settings.as_json(),
        "density": described_density(origin.density),
        "parameters": written_layout(origin.transform.layout),
        "bijectors": [_written_bijector(each) for each in origin.transform.bijectors],
        "whole": origin.transform.whole,
        "data": None if origin.data is None else written_layout(layout_of(origin.data)),
        "done": origin.done,
        "cost": [samples.cost.gradients, samples.cost.rows],
        "failed": {str(chain): message for chain, message in samples.failed.items()},
    }
    saving.write(path, header, arrays)


def named_arrays(structure: Any) -> list[tuple[str, Any]]:
    """The arrays of a structure by name, none of None."""
    if structure is None:
        return []
    names = (name for name, _ in leaves(layout_of(structure)))
    return list(zip(names, arrays_of(structure), strict=True))


@dataclass(frozen=True)
class Saved:
    """A file's contents."""

    path: str
    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]

    def group(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of a group, by name."""
        return {key.partition("/")[2]: array for key, array in self.arrays.items() if key.partition("/")[0] == name}

    def data(self) -> Any:
        """The data, in its structure."""
        if self.header["data"] is None:
            return None
        layout, arrays = self.read_layout(self.header["data"]), self.group("data")
        wanted = [(name, leaf.shape) for name, leaf in leaves(layout)]
        numbers = all(array.dtype.kind in "biufc" for array in arrays.values())
        if not numbers or [(name, array.shape) for name, array in arrays.items()] != wanted:
            raise self.refusal("PCB592", f"the arrays of their data are not {wanted!r:.200}")
        return self._filled(layout, iter(arrays.values()))

    def transform(self, dtype: str, given: Mapping[str, Any] | Joint | None = None) -> Transform:
        """The parameters' structure and bijectors; those that are not pcbatch's are `given`.

        UsageError PCB558 where one of these does not fit, PCB592 where one is missing.
        """
        layout = self.read_layout(self.header["parameters"])
        try:
            handed = Transform.of(layout, given, tf.as_dtype(dtype))
        except UsageError as error:
            raise self.refusal("PCB592", error.message) from None
        if handed.whole != self.header["whole"]:
            raise self.refusal(
                "PCB592",
                "they are of a model of TensorFlow Probability" if self.header["whole"] else "they are not of a model",
                "hand over what they were drawn from: nuts.resume(path, log_density=..)",
            )
        found = []
        names = ["parameters"] if handed.whole else [name for name, _ in leaves(layout)]
        for name, written, other in zip(names, self.header["bijectors"], handed.bijectors, strict=True):
            own = other if written == [FOREIGN] else _read_bijector(written)
            if written == [FOREIGN] and not isinstance(other, Foreign):
                raise self.refusal(
                    "PCB592",
                    f"the bijector of {name!r:.60} is none of pcbatch's, and the file does not have it",
                    f"hand it over: nuts.resume(path, bijectors={{{name!r:.60}: ..}})",
                )
            if other not in (None, own):
                raise self.refusal("PCB592", f"the bijector of {name!r:.60} is {own!r}, not {other!r:.100}")
            found.append(own)
        transform = Transform(layout, tuple(found), handed.whole)
        _ = transform.free  # ValueError where a bijector does not fit
        return transform

    def read_layout(self, written: Mapping[str, Any]) -> Layout:
        """A layout from what `written_layout` wrote."""
        if "shape" in written:
            savefile.check(written, {"shape": [savefile.count]}, "a layout")
            return Leaf(tuple(written["shape"]))
        savefile.check(written, {"kind": str, "names": [str], "parts": [dict]}, "a layout")
        kind = PLAIN.get(written["kind"]) or self._class(written["kind"])
        names, parts = tuple(written["names"]), tuple(map(self.read_layout, written["parts"]))
        if len(set(names)) != len(parts) or len(names) != len(parts) or not _is_kind(kind, names):
            raise ValueError(f"{written['kind']!r:.60} is no structure of {names!r:.100}")
        return Node(kind, names, parts)

    def density(self, given: Any) -> Any:
        """The density: `given`, or the one of its name that was sampled here; PCB592 if it is not what it was."""
        named = self.header["density"]
        found = given if given is not None else _handed_over.get(named["name"], lambda: None)()
        if found is None:
            raise self.refusal(
                "PCB592",
                f"this process has not sampled their density, {named['name']!r:.100}",
                "import that function, and write nuts.resume(path, log_density=..) with it",
            )
        if not callable(found) or saving.function_digest(found) != named["digest"]:
            raise self.refusal(
                "PCB592",
                f"{named['name']} is another density now, in its code or in what it reads from around it",
                "go on with the density that they were drawn from, or draw new samples from this one",
            )
        return found

    def refusal(self, code: str, why: str, help: str = "") -> UsageError:
        """The error that says why sampling cannot go on."""
        what_to_do = f"\n  help: {help}" if help else ""
        return UsageError(code, f"the samples in {self.path} cannot go on here: {why}{what_to_do}")

    def _class(self, place: str) -> Any:
        """The object that `module:path` names in a loaded module, found without running code; PCB592 if none."""
        module, _, path = place.partition(":")
        found: Any = sys.modules.get(module)
        for name in path.split("."):
            names = _names(found)
            if name not in names:
                raise self.refusal(
                    "PCB592",
                    f"{path!r:.60} of {module!r:.60}, a class of their data or parameters, is not there",
                    "import the module, or define the class, before nuts.resume: it imports nothing by itself",
                )
            found = names[name]
        return found

    def _filled(self, layout: Layout, arrays: Any) -> Any:
        if isinstance(layout, Leaf):
            return next(arrays)
        return made(layout.kind, layout.names, [self._filled(part, arrays) for part in layout.layouts])


def read(path: str | os.PathLike[str]) -> Saved:
    """The samples saved to `path`: OSError, UsageError PCB590 (damaged, something else) or PCB591 (another version)."""
    header, arrays = saving.read(path)
    saved = Saved(os.fspath(path), header, arrays)
    if header.get("format") != KIND:
        raise UsageError("PCB590", f"{saved.path} holds a run of a batched function, and no samples")
    for name, what, now in (("version", "in file format", FORMAT), ("python", "by Python", python_version())):
        if header.get(name) != now:
            raise saved.refusal("PCB591", f"they were saved {what} {header.get(name)!s:.60}, this is {now}")
    with saving.interpreting(saved.path):
        savefile.check(header, FORM)
    return saved


def _is_kind(kind: Any, names: tuple[str, ...]) -> bool:
    """Tell whether a structure can be of this class, and have parts of these names."""
    if not isinstance(kind, type):
        return False
    if is_dataclass(kind):
        return names == tuple(field.name for field in fields(kind))
    if hasattr(kind, "_fields"):
        return issubclass(kind, tuple) and names == tuple(getattr(kind, "_fields", ()))
    return issubclass(kind, dict) or kind in (tuple, list)


def _names(found: Any) -> Mapping[str, Any]:
    """The namespace of a module or a class, read directly, since a lookup by attribute may run code."""
    kind = ModuleType if isinstance(found, ModuleType) else type
    names: Mapping[str, Any] = vars(kind)["__dict__"].__get__(found) if isinstance(found, kind) else {}
    return names


_handed_over: dict[str, Callable[[], Any]] = {}
"""The densities that were sampled in this process, by the names that files have for them."""


def hand_over(density: Any) -> None:
    """Remember a density that somebody samples: files may name it, unless it is a partial function, as a model is."""
    if isinstance(density, functools.partial):
        return
    try:
        known: Callable[[], Any] = weakref.ref(density)
    except TypeError:
        return  # whoever goes on with it has to say so
    _handed_over[named(density)] = known


def named(density: Any) -> str:
    """The name of a density in a file."""
    return f"{density.__module__}:{getattr(density, '__qualname__', type(density).__qualname__)}"


def described_density(density: Any) -> dict[str, str]:
    """A density for JSON: where to find it, and a digest of what it is."""
    return {"name": named(density), "digest": saving.function_digest(density)}


def written_layout(layout: Layout) -> dict[str, Any]:
    """A layout for JSON."""
    if isinstance(layout, Leaf):
        return {"shape": list(layout.shape)}
    kind = next((name for name, plain in PLAIN.items() if layout.kind is plain), None)
    kind = kind or f"{layout.kind.__module__}:{layout.kind.__qualname__}"
    return {"kind": kind, "names": list(layout.names), "parts": [written_layout(part) for part in layout.layouts]}


FOREIGN = "foreign"
"""The name in a file of bijectors that are not pcbatch's."""


def _written_bijector(bijector: Any) -> list[Any] | None:
    if bijector is None:
        return None
    if isinstance(bijector, Foreign):
        return [FOREIGN]
    return [type(bijector).__name__, *(getattr(bijector, field.name) for field in fields(bijector))]


def _read_bijector(written: Sequence[Any] | None) -> Any:
    kinds = {kind.__name__: kind for kind in BUILT_IN}
    if written is None:
        return None
    name, *numbers = written
    savefile.check(numbers, [(int, float)], "a bijector")
    return kinds[name](*numbers)
