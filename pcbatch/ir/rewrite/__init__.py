"""What passes share to rebuild programs."""
