"""What a program reads from around it."""
