"""What mypy reads and nothing runs holds no tests of its own."""

collect_ignore = ["typed_usage.py"]
