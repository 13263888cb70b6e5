"""Other ways to run a program than the machine."""
