"""Training without writing the loop: paddle.Model on handwritten digits."""

import paddle
from paddle.io import Subset
from paddle.vision.datasets import MNIST
from paddle.vision.transforms import Compose, Normalize, ToTensor

paddle.seed(0)

transform = Compose([ToTensor(), Normalize(mean=[0.5], std=[0.5])])
train = Subset(MNIST(mode="train", transform=transform), range(2000))
test = Subset(MNIST(mode="test", transform=transform), range(500))
image, label = train[0]
print(image.shape, label.shape, len(train), len(test))

network = paddle.nn.Sequential(
    paddle.nn.Flatten(),
    paddle.nn.Linear(784, 64),
    paddle.nn.ReLU(),
    paddle.nn.Linear(64, 10),
)
model = paddle.Model(network)
model.prepare(
    paddle.optimizer.Adam(learning_rate=0.002, parameters=model.parameters()),
    paddle.nn.CrossEntropyLoss(),
    paddle.metric.Accuracy(),
)
model.fit(train, epochs=2, batch_size=50, verbose=0)
result = model.evaluate(test, batch_size=100, verbose=0)
print(sorted(result), "three in four are right:", result["acc"] > 0.75)

(outputs,) = model.predict(test, batch_size=500, stack_outputs=True, verbose=0)
print(outputs.shape)
print(paddle.summary(network, (1, 1, 28, 28)))

# Prints:
# [1, 28, 28] (1,) 2000 500
# ['acc', 'loss'] three in four are right: True
# (500, 10)
# …
# {'total_params': 50890, 'trainable_params': 50890}
