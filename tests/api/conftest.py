"""What mypy reads and nothing runs, and what tests run in a process of its own, hold no tests themselves."""

collect_ignore = ["typed_usage.py", "beside.py"]
