"""15. Writing into what belongs to others.

The inputs of an operator are read-only, because others read them, too. This one writes into its input. Make it
write into a copy.
"""

import opsmith


@opsmith.custom_op
def rectified(x):
    x[x < 0] *= 0.25
    return x


@rectified.backward
def rectified_grad(x, dy):
    dy[x < 0] *= 0.25
    return dy
