"""torch: PyTorch's names, as far as dense and convolutional networks go"""

from app.compat.facade import make_modules
from app.compat.torch._tensor import add_methods

__version__ = "2.13.0"  # the release whose behaviour tests/compat/pytorch records

_MODULES = """
torch app.compat.torch._table:FUNCTIONS *
torch app.compat.torch._creation:CREATORS *
torch app.compat.torch._dtype:NAMED *
torch app.compat.torch._dtype dtype finfo get_default_dtype iinfo set_default_dtype
torch app enable_grad is_grad_enabled no_grad set_grad_enabled
torch app.compat.torch._compile compile
torch app.compat.torch._device device
torch app.compat.torch._globals *
torch app.compat.torch._printing set_printoptions
torch app.compat.torch._random *
torch app.compat.torch._random default_generator
torch app.compat.torch._serialization load save
torch app.compat.torch._settings are_deterministic_algorithms_enabled get_default_device get_num_threads
    set_default_device set_float32_matmul_precision set_num_threads use_deterministic_algorithms
torch app.compat.torch._size Size
torch app.compat.torch._tensor Tensor
torch app.compat.torch.nn._activations log_softmax softmax
torch.accelerator app.compat.torch._device current_accelerator device_count is_available
torch.autograd app.compat.torch.autograd *
torch.autograd app enable_grad is_grad_enabled no_grad set_grad_enabled
torch.autograd app.autograd Function
torch.autograd app.compat.torch._globals inference_mode
torch.autograd app.tensor.anomaly detect_anomaly set_detect_anomaly
torch.autograd app.compat.torch.autograd:GRADCHECK *
torch.autograd.function app.autograd Function once_differentiable
torch.autograd.function app.custom.pylayer.operator FunctionCtx=PyLayerContext
torch.autograd.functional app.compat.torch.autograd.functional hessian jacobian
torch.autograd.gradcheck app.compat.torch.autograd:GRADCHECK *
torch.autograd.gradcheck app.errors GradcheckError
torch.autograd.variable app.compat.torch.autograd Variable
torch.backends.cuda app.compat.torch._device is_available is_built=is_available
torch.backends.cudnn app.compat.torch._settings:CUDNN *
torch.backends.mps app.compat.torch._device is_available is_built=is_available
torch.cuda app.compat.torch._device device_count is_available manual_seed manual_seed_all=manual_seed
torch.distributed app.compat.torch.distributed *
torch.distributed app.distributed all_gather all_gather_object barrier get_rank get_world_size is_initialized
torch.func app.compat.torch.autograd.functional grad
torch app.compat.torch.library ops
torch.library app.compat.torch.library CustomOpDef custom_op opcheck
torch.linalg app.compat.torch._matrices:LINALG *
torch.onnx app.compat.torch._onnx export
torch.nn app.compat.torch.nn._containers *
torch.nn app.compat.torch.nn._layers *
torch.nn app.compat.torch.nn._layers:MODULES *
torch.nn app.compat.torch.nn._module Module
torch.nn app.compat.torch.nn.parameter Parameter
torch.nn.modules torch.nn
torch.nn.modules.activation app.compat.torch.nn._layers:MODULES *
torch.nn.modules.container app.compat.torch.nn._containers *
torch.nn.modules.conv app.compat.torch.nn._layers Conv2d
torch.nn.modules.linear app.compat.torch.nn._layers Identity Linear
torch.nn.modules.loss app.compat.torch.nn._layers:MODULES *
torch.nn.modules.module app.compat.torch.nn._module Module
torch.nn.functional app.compat.torch.nn._activations:ACTIVATIONS *
torch.nn.functional app.compat.torch.nn._activations *
torch.nn.functional app.compat.torch.nn._images *
torch.nn.functional app.compat.torch.nn._losses:LOSSES *
torch.nn.functional app.compat.torch.nn._losses cross_entropy
torch.nn.functional app.compat.torch.nn.functional:ROWS *
torch.nn.functional app.compat.torch.nn.functional *
torch.nn.init app.compat.torch.nn.init *
torch.nn.parallel app.compat.torch.nn.parallel DistributedDataParallel
torch.nn.parameter app.compat.torch.nn.parameter Parameter
torch.nn.utils app.nn.utils *
torch.optim app.compat.torch.optim._optimizers Adadelta Adagrad Adam AdamW Optimizer RMSprop SGD
torch.optim.lr_scheduler app.compat.torch.optim._schedulers *
torch.optim.lr_scheduler app.compat.torch.optim._schedulers _LRScheduler=LRScheduler
torch.optim.optimizer app.compat.torch.optim._optimizers Optimizer
torch.utils.data app.compat.torch.utils.data *
torch.utils.data app.io ConcatDataset Dataset DistributedSampler IterableDataset RandomSampler Sampler
    SequentialSampler=SequenceSampler Subset get_worker_info random_split
torch.utils.data.dataloader app.compat.torch.utils.data DataLoader default_collate
torch.utils.data.dataset app.compat.torch.utils.data TensorDataset
torch.utils.data.dataset app.io ConcatDataset Dataset IterableDataset Subset random_split
torch.utils.data.distributed app.io DistributedSampler
torch.utils.data.sampler app.compat.torch.utils.data BatchSampler
torch.utils.data.sampler app.io RandomSampler Sampler SequentialSampler=SequenceSampler
torch.utils.tensorboard app.compat.torch.utils.tensorboard SummaryWriter
"""

make_modules(_MODULES)
add_methods()
