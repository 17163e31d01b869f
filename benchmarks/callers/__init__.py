"""One file each. The first line of a file's docstring is its row in the table; `call()` is what is timed."""
