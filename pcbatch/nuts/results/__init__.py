"""What sampling gives."""
