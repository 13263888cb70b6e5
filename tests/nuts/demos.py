"""The scripts of `examples/nuts`, as modules."""

import importlib.util
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "nuts"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    return demo
