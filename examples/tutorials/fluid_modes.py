"""Paddle 1: the same three operators run at once in the dynamic mode, and become lines of a Program in the static."""

import numpy as np
import paddle.fluid as fluid

numbers = np.array([[-1.0, 2.0], [3.0, -4.0]], dtype="float32")

# Dynamic: every line is run when it is read.
with fluid.dygraph.guard():
    x = fluid.dygraph.to_variable(numbers)
    x.stop_gradient = False
    y = fluid.layers.relu(x)
    loss = fluid.layers.reduce_sum(y)
    loss.backward()
    print(loss.numpy(), x.gradient().tolist())

    layer = fluid.dygraph.Linear(2, 1, param_attr=fluid.initializer.Constant(1.0), act="sigmoid")
    optimizer = fluid.optimizer.SGD(learning_rate=0.5, parameter_list=layer.parameters())
    for _ in range(2):
        loss = fluid.layers.mean(fluid.layers.square_error_cost(layer(x), fluid.layers.zeros([2, 1], "float32")))
        loss.backward()
        optimizer.minimize(loss)
        layer.clear_gradients()
        print("loss", loss.numpy())

# Static: every line adds to a Program, and nothing is computed until an Executor runs it.
main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup):
    x = fluid.data(name="x", shape=[None, 2], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    scores = fluid.layers.fc(input=fluid.layers.relu(x), size=3, bias_attr=False)
    loss = fluid.layers.reduce_mean(fluid.layers.softmax_with_cross_entropy(scores, label))
    pairs = fluid.backward.append_backward(loss)
print(main)
print([(parameter.name, gradient.name) for parameter, gradient in pairs])

exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
(gradient,) = exe.run(main, feed={"x": numbers, "label": np.array([[0], [2]])}, fetch_list=[pairs[0][1]])
print(gradient.shape, np.abs(gradient.sum(axis=1)).max() < 1e-6)

# Prints:
# [5.] [[0.0, 1.0], [1.0, 0.0]]
# loss [0.303388]
# loss [0.280773]
# { // block 0
#     var x : float32[-1, 2] data stop_gradient
#     var label : int64[-1, 1] data stop_gradient
# …
#     // forward
# …relu(x)
# …
#     // backward
# …
# }
# [('fc_0.w_0', 'fc_0.w_0@GRAD')]
# (2, 3) True
