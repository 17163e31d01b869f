"""11. Large numbers.

exp(1000) is infinite, although log(sum(exp(x))) is about 1000. Write it so that every row of finite numbers
has a finite result: subtract the largest number of the row first. The gradient is right if y is.
"""

import numpy as np

import opsmith


@opsmith.custom_op
def log_sum_exp(x):
    return np.log(np.exp(x).sum(axis=1))


@log_sum_exp.backward
def log_sum_exp_grad(x, y, dy):
    return np.exp(x - y[:, None]) * dy[:, None]
