"""The machine that steps blocks for all lanes."""
