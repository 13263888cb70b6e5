"""Reports of runs, for users."""
