"""Parameters and their transforms."""
