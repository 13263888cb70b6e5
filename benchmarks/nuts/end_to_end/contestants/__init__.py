"""The scripts of the contestants: each runs in a process of its own."""
