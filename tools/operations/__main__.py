"""`python -m tools.operations`: try every operation and write docs/operations.md."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

from tqdm import tqdm

from tools.operations.catalogue import cases
from tools.operations.page import PAGE, page
from tools.operations.trial import tried

PAGE.write_text(page([tried(expression) for expression in tqdm(cases())]), encoding="utf-8")
