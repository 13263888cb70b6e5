"""What a GPU makes of programs, in five minutes: right results first, then times of each form."""
