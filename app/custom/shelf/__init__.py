"""Custom operators to use and to learn from, a file each. A configuration names them `custom.<file>`."""
