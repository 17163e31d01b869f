"""Schedules of the learning rate, and optimisers."""

import numpy as np
import paddle

paddle.seed(3)
rng = np.random.default_rng(3)
inputs = paddle.to_tensor(rng.normal(size=(64, 4)).astype("float32"))
wanted = paddle.to_tensor((rng.normal(size=(64, 4)) @ np.ones((4, 1)) * 0.01).astype("float32")) + inputs.sum(
    axis=1, keepdim=True
)


def learned(make, schedule=None, epochs=30):
    """The loss after some epochs, and the last rate."""
    network = paddle.nn.Linear(4, 1, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.1)))
    optimizer = make(schedule or 0.05, network.parameters())
    for _ in range(epochs):
        loss = paddle.nn.functional.mse_loss(network(inputs), wanted)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if schedule is not None:
            schedule.step()
    return float(loss), optimizer.get_lr()


lr = paddle.optimizer.lr
for schedule in (
    lr.ExponentialDecay(0.2, gamma=0.9),
    lr.PiecewiseDecay(boundaries=[10, 20], values=[0.2, 0.1, 0.05]),
    lr.CosineAnnealingDecay(0.2, T_max=30),
    lr.LinearWarmup(lr.StepDecay(0.2, 10), warmup_steps=5, start_lr=0.0, end_lr=0.2),
):
    loss, rate = learned(lambda rate, p: paddle.optimizer.SGD(rate, parameters=p), schedule)
    print(f"{type(schedule).__name__}: fell below 1: {loss < 1}, last rate {rate:.4f}")

for kind in ("Momentum", "Adam", "AdamW", "Adagrad", "RMSProp"):
    make = getattr(paddle.optimizer, kind)
    loss, _ = learned(lambda rate, p, make=make: make(rate, parameters=p), epochs=60)
    print(f"{kind}: fell below 2: {loss < 2}")

# What is remembered can be saved with the parameters
layer = paddle.nn.Linear(2, 1)
adam = paddle.optimizer.Adam(0.1, parameters=layer.parameters(), amsgrad=True)
layer(paddle.ones([1, 2])).sum().backward()
adam.step()
print(sorted(name.partition("w_0_")[2] for name in adam.state_dict() if "w_0_" in name))

# Prints:
# ExponentialDecay: fell below 1: True, last rate 0.0085
# PiecewiseDecay: fell below 1: True, last rate 0.0500
# CosineAnnealingDecay: fell below 1: True, last rate 0.0000
# LinearWarmup: fell below 1: True, last rate 0.0020
# Momentum: fell below 2: True
# Adam: fell below 2: True
# AdamW: fell below 2: True
# Adagrad: fell below 2: True
# RMSProp: fell below 2: True
# ['beta1_pow_acc_0', 'beta2_pow_acc_0', 'moment1_0', 'moment2_0', 'moment2_max_0']
