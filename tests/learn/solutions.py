"""A solution of each exercise: what its file has in the place of something else."""

SOLUTIONS: dict[str, list[tuple[str, str]]] = {
    "01_wrong_factor.py": [("return dy * x * x", "return 3 * dy * x * x")],
    "02_missing_term.py": [("return dy * np.tanh(x)", "return dy * (np.tanh(x) + x / np.cosh(x) ** 2)")],
    "03_two_inputs.py": [("return dy, dy", "return 2 * dy * x * w, dy * x * x")],
    "04_broadcast.py": [("return dy, dy", "return dy, dy.sum(axis=0)")],
    "05_kink.py": [("return dy", "return dy * (abs(x) < 1)")],
    "06_straight_through.py": [
        ("@rounded.backward", "@rounded.backward(surrogate=True)"),
        ("return np.zeros_like(dy)", "return dy * (abs(x) <= 1)"),
    ],
    "07_setting.py": [
        ("def power_grad(x, dy):", "def power_grad(x, dy, exponent):"),
        ("return dy * 2 * x", "return dy * exponent * x ** (exponent - 1)"),
    ],
    "08_mean.py": [("return np.zeros_like(x)", "return np.repeat(dy[:, None], x.shape[1], axis=1) / x.shape[1]")],
    "09_two_outputs.py": [
        (
            "return dlength * x / length, dlength * y / length",
            "return dlength * x / length + 2 * dsquare * x, dlength * y / length + 2 * dsquare * y",
        )
    ],
    "10_softmax.py": [("return y * dy", "return y * (dy - (dy * y).sum(axis=-1, keepdims=True))")],
    "11_large_numbers.py": [
        (
            "return np.log(np.exp(x).sum(axis=1))",
            "return x.max(axis=1) + np.log(np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1))",
        )
    ],
    "12_layer_norm.py": [
        (
            "return dy * w / deviation, np.zeros_like(u.sum(axis=0))",
            "g = dy * w\n"
            "    g = g - g.mean(axis=1, keepdims=True) - u * (g * u).mean(axis=1, keepdims=True)\n"
            "    return g / deviation, (dy * u).sum(axis=0)",
        )
    ],
    "13_recursion.py": [
        (
            "        for t in range(x.shape[1]):\n            dx[i, t] = (1 - keep) * dy[i, t]",
            "        last = 0.0\n"
            "        for t in range(x.shape[1] - 1, -1, -1):\n"
            "            last = keep * last + dy[i, t]\n"
            "            dx[i, t] = (1 - keep) * last",
        )
    ],
    "14_second_derivative.py": [
        ("ctx.square = (x * x).detach()", "ctx.save_for_backward(x)"),
        ("return dy * 3 * ctx.square", "(x,) = ctx.saved_tensor()\n        return dy * 3 * x * x"),
    ],
    "15_in_place.py": [
        ("    x[x < 0] *= 0.25\n    return x", "    y = x.copy()\n    y[x < 0] *= 0.25\n    return y"),
        ("    dy[x < 0] *= 0.25\n    return dy", "    dx = dy.copy()\n    dx[x < 0] *= 0.25\n    return dx"),
    ],
    "16_row_by_row.py": [
        ("return x - x.mean()", "return x - x.mean(axis=-1, keepdims=True)"),
        ("return dy - dy.mean()", "return dy - dy.mean(axis=-1, keepdims=True)"),
    ],
    "17_pylayer.py": [
        (
            'raise NotImplementedError("write forward")',
            "ctx.save_for_backward(x)\n        return x * opsmith.tanh(opsmith.log1p(opsmith.exp(x)))",
        ),
        (
            'raise NotImplementedError("write backward")',
            "(x,) = ctx.saved_tensor()\n"
            "        t = opsmith.tanh(opsmith.log1p(opsmith.exp(x)))\n"
            "        return dy * (t + x * (1 - t * t) * opsmith.sigmoid(x))",
        ),
    ],
    "18_inlined.py": [
        ("@opsmith.custom_op\n", "@opsmith.custom_op(elementwise=True)\n"),
        (
            "y = np.empty_like(x)\n    for i in range(len(x)):\n        y[i] = x[i] / (1 + np.abs(x[i]))\n    return y",
            "return x / (1 + abs(x))",
        ),
    ],
    "19_compiled.py": [
        ("import opsmith\n", "import opsmith\nfrom numba import njit\n"),
        ("@opsmith.custom_op\n", "@opsmith.custom_op\n@njit\n"),
        ("@running_maximum.backward\n", "@running_maximum.backward\n@njit\n"),
        ("enumerate(x.tolist())", "enumerate(x)"),
    ],
    "20_attention.py": [
        (
            "return np.zeros_like(q), np.zeros_like(k), p.T @ dy",
            "dp = dy @ v.T\n"
            "    ds = p * (dp - (dp * p).sum(axis=1, keepdims=True))\n"
            "    return ds @ k, ds.T @ q, p.T @ dy",
        )
    ],
}
