"""8. A reduction.

Each number of a row contributes equally to its mean. Backward gets one number for each row, and returns a matrix.
"""

import numpy as np

import opsmith


@opsmith.custom_op
def mean_of_rows(x):
    return x.mean(axis=1)


@mean_of_rows.backward
def mean_of_rows_grad(x, dy):
    return np.zeros_like(x)
