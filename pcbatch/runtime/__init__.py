"""The runtime: tables of compiled blocks, the machine that steps them, schedules, and array-library backends."""
