"""Functions on arrays made at random whose derived gradient was once wrong; each with the seed of its arguments."""

ONCE_WRONG = {
    1209: """def f(x, w, v, b, p, c=0.6):
    n, m = x.shape
    a, d, e, k = 0.3, x[0, 0] * w[0], 1.0, 1
    y = np.empty_like(x)
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] * w[j]
    t = np.zeros(m)
    for i2 in range(n):
        new1 = np.zeros(m)
        for j3 in range(m):
            new1[j3] = 0.7 * np.sin(t[j3 - 1] + (d if t[-1] > 0.39 else 0.5 * t[-1]))
        t = new1
    for j4 in range(n):
        if j4 > 0:
            q5 = 0
            while d < 1.3 and q5 < 4:
                q5 += 1
                if j4 == 1:
                    e = 0.7 * math.sin((np.sin(x[j4 - 1, -1]) + (e) ** 2))
                elif j4 > 0 and (0.69 if v[j4] > 0.74 else 0.5 * v[j4]) > 0.44:
                    t[0] = 0.7 * math.sin(t[0])
                else:
                    t[m - 1] *= 0.7 * np.tanh((np.sin(a) + (e if 0.67 > 0.56 else 0.5 * 0.67)))
                    d = 0.7 * np.tanh(x[k % n, -1])
                for j6 in range(0, m, 2):
                    if j4 > 0:
                        row7 = y[j4 - 1]
                        if j6 > 0:
                            a *= 0.7 * math.sin((e) ** 2)
                            continue
                        y[j4, j6] = 0.5 * np.sin(np.sum(row7))
                        break
                    y[n - 1 - j4] += np.sin(np.maximum(y[j4 - 1], (y[j4] * (0.66 / (1.5 + (b[0]) ** 2)))))
            break
        for i9 in range(n):
            new8 = np.zeros(m)
            for j10 in range(m):
                new8[j10] = 0.7 * np.sin(t[j10 - 1] + np.maximum(w[j10 - 1], w[j10]))
            t = new8 * 0.9
        fill(y[-1], 0.7 * np.sin(w[k % m] * 1.13 / (1.5 + (t[k % m]) ** 2)))
    y[k % n, k % m] = 0.7 * math.sin(((t[m - 1]) ** 2 + x[0, m - 1] / (1.5 + (0.50) ** 2)))
    for i in range(m):
        a = 0.7 * np.sin(np.maximum(0.41, b[0]) / (1.5 + (1.09) ** 2))
    y[0, 0] += a * d + e * t[0] + t[m - 1]
    return y
""",
    3625: """def f(x, w, v, b, p, c=0.6):
    n, m = x.shape
    a, d, e, k = 0.3, x[0, 0] * w[0], 1.0, 1
    y = np.empty_like(x)
    y[:] = np.cos(x)
    t = w * 0.5
    e = 0.7 * math.sin(math.sin(1.04))
    k = p[0]
    k = k * 2 + 1
    for j in range(1, m):
        y[n - 1, (j + 1) % m] += 0.7 * np.tanh(c)
        t[j] -= 0.7 * np.tanh(0.70)
        for j1 in range(m):
            for j2 in range(m):
                e += 0.7 * np.sin(1.15)
            t[j - 1] = 0.7 * math.sin(math.sin(t[j]) * min(d, 0.90))
    e = 0.7 * np.tanh((bend(y[n - 1, -1])) ** 2)
    y[0, 0] += a * d + e * t[0] + t[m - 1]
    return y, t
""",
}
