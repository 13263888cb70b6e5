"""What blocks cost, and what follows from it."""
