"""Running many chains."""
