"""What a run says: in a terminal, in a log, to a program, and at its end."""
