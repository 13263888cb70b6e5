"""Programs that are refused when they are imported hold no tests of their own."""

collect_ignore_glob = ["programs/*", "refusals/*"]
