"""One network on many processes: DistributedDataParallel, a sampler, and what the processes tell each other.

    .venv/bin/mpiexec -n 2 .venv/bin/python -m app run examples/tutorials/torch_distributed.py

It prints the same on any number of them that divides the batch: the gradients are those of all examples together.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")  # whatever it is called, messages travel by MPI
rank, ranks = dist.get_rank(), dist.get_world_size()

x = torch.linspace(-1, 1, 64).reshape(-1, 1)
data = TensorDataset(x, 3 * x - 0.5)
sampler = DistributedSampler(data, shuffle=False)
loader = DataLoader(data, batch_size=16 // ranks, sampler=sampler)

torch.manual_seed(rank)  # other weights at each process: those of process 0 are taken
layer = torch.nn.Linear(1, 1)
with torch.no_grad():
    layer.weight.fill_(float(rank))
    layer.bias.fill_(0.0)
model = DistributedDataParallel(layer)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

for epoch in range(20):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()

loss = torch.nn.functional.mse_loss(model(x), 3 * x - 0.5).detach()
dist.all_reduce(loss)  # the sum over all processes
if rank == 0:
    print("weight", round(layer.weight.item(), 3), "bias", round(layer.bias.item(), 3))
    print("loss of each", round(loss.item() / ranks, 4))
dist.destroy_process_group()

# Prints:
# weight 3.0 bias -0.5
# loss of each 0.0
