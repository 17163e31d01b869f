"""1. A wrong factor.

The backward function of `cube` is almost right. `opsmith learn 1` says by how much it is off. Mend it, and run
`opsmith learn 1` again.
"""

import opsmith


@opsmith.custom_op
def cube(x):
    return x * x * x


@cube.backward
def cube_grad(x, dy):
    return dy * x * x
