"""torch.nn.parallel"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.compat.torch.nn._module import Module
from app.nn.parallel import Averaging


class DistributedDataParallel(Module):
    """A module that all ranks share: it starts with the values of rank 0, and gradients are averaged.

    Settings of devices and of communication have no effect.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ):
        super().__init__()
        self.module = module
        self._averaging = Averaging(module)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        if self.training:
            self._averaging.send_untrained()
        return self.module(*inputs, **named)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Do not average gradients in the block; the next backward pass after it averages them as well."""
        with self._averaging.paused():
            yield
