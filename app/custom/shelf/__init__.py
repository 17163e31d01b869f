"""Custom operators to use and to learn from, one in each file. A configuration names them `custom.<file>`."""
