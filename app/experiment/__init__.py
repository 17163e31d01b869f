"""A run together with its report: the functions `train`, `resume` and `compare`, and the commands that call them."""
