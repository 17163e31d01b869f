"""PyTorch eager, batches from a DataLoader"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.contenders.torch_eager import network, test
from benchmarks.work import run_epochs, scaled


def train(data, work):
    torch.manual_seed(work.seed)
    images, labels = torch.from_numpy(scaled(data.train_images)), torch.from_numpy(data.train_labels)
    tests, truth = torch.from_numpy(scaled(data.test_images)), torch.from_numpy(data.test_labels)
    loader = DataLoader(TensorDataset(images, labels), batch_size=work.batch, shuffle=True)
    model = network(work, nn.ReLU)
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=work.rate)

    def train_epoch():
        for image, label in loader:
            optimizer.zero_grad()
            loss(model(image), label).backward()
            optimizer.step()

    return run_epochs(work, train_epoch, lambda: test(model, tests, truth))
