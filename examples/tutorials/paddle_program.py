"""A Program that is built once and run many times, with NumPy functions in it as operators: py_func."""

import numpy as np
import paddle

paddle.enable_static()


def swish(x):
    return x / (1 + np.exp(-x))


# The gradient gets the input x, the result y and the gradient dy that arrives at the result.
def swish_grad(x, y, dy):
    s = 1 / (1 + np.exp(-x))
    return dy * (s + np.array(y) * (1 - s))


def watch(value):
    print("  in the middle of the run:", value.shape, value.dtype)


main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    x = paddle.static.data("x", [None, 3], "float32")
    hidden = paddle.static.nn.fc(x, 4, weight_attr=paddle.nn.initializer.Constant(0.5), name="hidden")
    # The shape and type of a result must be declared before the function is hooked in.
    out = main.current_block().create_var(name="swish", dtype=hidden.dtype, shape=hidden.shape)
    y = paddle.static.py_func(swish, hidden, out, backward_func=swish_grad)
    paddle.static.py_func(watch, y, None)  # no result: it only looks
    loss = paddle.mean(y)
    paddle.optimizer.SGD(learning_rate=1.0).minimize(loss)

print(y)
print([op.type for op in startup.global_block().ops])

exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(startup)
feed = {"x": np.array([[1, 2, 3], [0, 1, -1]], "float32")}
for _ in range(2):
    (value,) = exe.run(main, feed=feed, fetch_list=[loss])
    print("loss", value)

# The weights live in a scope, and can be looked at.
print(paddle.static.global_scope().find_var("hidden.b_0").get_tensor().shape())

# A copy without the backward pass, for use.
test = main.clone(for_test=True)
values, gradient = exe.run(main, feed=feed, fetch_list=["swish", "swish@GRAD"])
print(exe.run(test, feed=feed, fetch_list=[y])[0].shape, gradient.tolist()[0])

# What a wrong program says.
try:
    exe.run(main, feed={"X": feed["x"]}, fetch_list=[loss])
except Exception as error:
    print("refused:", error)

# Prints:
# var swish : float32[-1, 4]
# ['fill_constant', 'fill_constant', 'fill_constant']
#   in the middle of the run: (2, 4) float32
# loss 1.428862
#   in the middle of the run: (2, 4) float32
# loss …
# [4]
#   in the middle of the run: (2, 4) float32
#   in the middle of the run: (2, 4) float32
# (2, 4) [0.125, 0.125, 0.125, 0.125]
# refused: nothing was fed for x; fed were X
