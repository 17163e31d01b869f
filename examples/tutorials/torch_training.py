"""PyTorch: a network learns MNIST: data set, loader, loss, optimiser, schedule, loop, and a file to go on from."""

import os
import tempfile

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, Subset, random_split
from torchvision import datasets, transforms
from torchvision.transforms import Lambda, ToTensor

torch.manual_seed(1)

training_data = datasets.MNIST(root="data", train=True, download=True, transform=ToTensor())
test_data = datasets.MNIST(
    root="data",
    train=False,
    download=True,
    transform=transforms.Compose([ToTensor(), transforms.Normalize((0.1307,), (0.3081,))]),
    target_transform=Lambda(lambda y: torch.zeros(10, dtype=torch.float).scatter_(0, torch.tensor(y), value=1)),
)
image, label = training_data[0]
print(image.shape, image.dtype, float(image.min()), float(image.max()), label in range(10))
image, label = test_data[0]
print(image.shape, label.sum(), label.shape)


class Standardised(Dataset):
    """A data set of one's own over another."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        image, label = self.dataset[index]
        return (image - 0.1307) / 0.3081, label


part, validation, _ = random_split(
    Standardised(training_data),
    [3000, 1000, len(training_data) - 4000],
    generator=torch.Generator().manual_seed(42),
)
train_loader = DataLoader(part, batch_size=50, shuffle=True)
valid_loader = DataLoader(validation, batch_size=250)
test_loader = DataLoader(Subset(test_data, range(1000)), batch_size=250)
features, labels = next(iter(train_loader))
print(f"batches of {features.size()} and {labels.size()}, {len(train_loader)} of them")

device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(
    [{"params": model[1].parameters()}, {"params": model[3].parameters(), "weight_decay": 1e-4}],
    lr=0.1,
    momentum=0.9,
)
scheduler = StepLR(optimizer, step_size=2, gamma=0.1)


def train(loader):
    model.train()
    for batch, (X, y) in enumerate(loader):
        loss = loss_fn(model(X.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 30 == 0:
            print(f"loss {loss.item():.1f} [{batch * len(X):4d}/{len(loader.dataset)}]")


def accuracy(loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for X, y in loader:
            classes = y.argmax(1) if y.dim() == 2 else y
            right += (model(X).argmax(1) == classes).type(torch.float).sum().item()
    return right / len(loader.dataset)


for epoch in range(3):
    train(train_loader)
    scheduler.step()
    rates = [f"{rate:.3f}" for rate in scheduler.get_last_lr()]
    print(f"epoch {epoch}: above 0.8: {accuracy(valid_loader) > 0.8}, rates from here {rates}")
print("test above 0.85:", accuracy(test_loader) > 0.85)

# What was learned goes into a file, and another network goes on from it.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    checkpoint = {"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(checkpoint, path)
    loaded = torch.load(path, weights_only=True)
again = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))
print(again.load_state_dict(loaded["model"]), loaded["epoch"], loaded["optimizer"]["param_groups"][1]["weight_decay"])
optimizer.load_state_dict(loaded["optimizer"])
print(torch.equal(again(image), model(image)))

# Prints:
# torch.Size([1, 28, 28]) torch.float32 0.0 1.0 True
# torch.Size([1, 28, 28]) tensor(1.) torch.Size([10])
# batches of torch.Size([50, 1, 28, 28]) and torch.Size([50]), 60 of them
# loss 2.3 [   0/3000]
# loss … [1500/3000]
# epoch 0: above 0.8: True, rates from here ['0.100', '0.100']
# loss … [   0/3000]
# loss … [1500/3000]
# epoch 1: above 0.8: True, rates from here ['0.010', '0.010']
# loss … [   0/3000]
# loss … [1500/3000]
# epoch 2: above 0.8: True, rates from here ['0.010', '0.010']
# test above 0.85: True
# <All keys matched successfully> 3 0.0001
# True
