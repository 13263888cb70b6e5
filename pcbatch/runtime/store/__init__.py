"""Compiled programs on disk, for the next process: `cache_session` is where it begins. Knows no array library."""
