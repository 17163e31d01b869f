"""Draw a digit: a page of this machine's own, on which trained networks read what one draws while one draws it."""
