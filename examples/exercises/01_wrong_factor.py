"""1. A wrong factor.

The backward function of `cube` is almost right. `opsmith check 01_wrong_factor.py` says by how much it is off.
Mend it.
"""

import opsmith


@opsmith.custom_op
def cube(x):
    return x * x * x


@cube.backward
def cube_grad(x, dy):
    return dy * x * x
