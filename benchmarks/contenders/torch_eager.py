"""PyTorch eager"""

from functools import partial

import torch
from torch import nn

from benchmarks.work import run_epochs, scaled


def train(data, work, activation=nn.ReLU, prepare=lambda step: step):
    torch.manual_seed(work.seed)
    if work.slope is not None:
        activation = partial(Leaky, work.slope)
    images, labels = torch.from_numpy(scaled(data.train_images)), torch.from_numpy(data.train_labels)
    tests, truth = torch.from_numpy(scaled(data.test_images)), torch.from_numpy(data.test_labels)
    model = network(work, activation)
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=work.rate)

    @prepare
    def step(image, label):
        optimizer.zero_grad()
        loss(model(image), label).backward()
        optimizer.step()

    def train_epoch():
        for rows in torch.randperm(len(images)).split(work.batch):
            step(images.index_select(0, rows), labels.index_select(0, rows))

    return run_epochs(work, train_epoch, lambda: test(model, tests, truth))


class Leaky(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return torch.where(x > 0, x, self.slope * x)


def network(work, activation):
    layers = []
    for a, b in zip(work.widths[:-1], work.widths[1:], strict=True):
        layers += [nn.Linear(a, b), activation()]
        nn.init.xavier_uniform_(layers[-2].weight)
        nn.init.zeros_(layers[-2].bias)
    return nn.Sequential(*layers[:-1])


@torch.no_grad()
def test(model, images, labels):
    return (model(images).argmax(1) == labels).float().mean().item()
