"""15. Writing into what belongs to others.

Arrays that an operator gets are read-only: others read them, too. This one wants to change its input. Let it
change a copy.
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
