"""The programs here are data: pytest must not import them in search of doctests (half of them are refused)."""

collect_ignore_glob = ["programs/*.py", "refusals/*.py"]
