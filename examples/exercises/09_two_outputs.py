"""9. Two outputs.

`polar` gives the length and the square of the length of a point (x, y). Backward gets the gradient of each
output, named after it: dlength and dsquare. Both outputs depend on both inputs.
"""

import numpy as np

import opsmith


@opsmith.custom_op(outputs=["length", "square"])
def polar(x, y):
    square = x * x + y * y + 1
    return np.sqrt(square), square


@polar.backward
def polar_grad(x, y, length, dlength, dsquare):
    return dlength * x / length, dlength * y / length
