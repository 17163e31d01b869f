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
torch app.compat.torch._size Size
torch app.compat.torch._tensor Tensor
torch app.compat.torch.nn._activations log_softmax softmax
torch.accelerator app.compat.torch._device current_accelerator device_count is_available
torch.autograd app.compat.torch.autograd *
torch.autograd app enable_grad is_grad_enabled no_grad set_grad_enabled
torch.autograd app.autograd Function
torch.autograd app.compat.torch._globals inference_mode
torch.autograd app.compat.torch.autograd.gradcheck gradcheck gradgradcheck
torch.autograd.function app.autograd Function once_differentiable
torch.autograd.function app.custom.pylayer.operator FunctionCtx=PyLayerContext
torch.autograd.functional app.compat.torch.autograd.functional *
torch.autograd.gradcheck app.compat.torch.autograd.gradcheck *
torch.autograd.gradcheck app.errors GradcheckError
torch.backends.cuda app.compat.torch._device is_available is_built=is_available
torch.backends.mps app.compat.torch._device is_available is_built=is_available
torch.cuda app.compat.torch._device device_count is_available manual_seed manual_seed_all=manual_seed
torch.distributed app.compat.torch.distributed *
torch.distributed app.distributed all_gather all_gather_object barrier get_rank get_world_size is_initialized
torch.library app.compat.torch.library CustomOpDef custom_op
torch.linalg app.compat.torch._matrices:LINALG *
torch.onnx app.compat.torch._onnx export
torch.multiprocessing app.compat.torch.multiprocessing spawn
torch.nn app.compat.torch.nn._containers *
torch.nn app.compat.torch.nn._layers *
torch.nn app.compat.torch.nn._layers:MODULES *
torch.nn app.compat.torch.nn._module Module
torch.nn app.compat.torch.nn.parameter Parameter
torch.nn.functional app.compat.torch.nn._activations:ACTIVATIONS *
torch.nn.functional app.compat.torch.nn._activations *
torch.nn.functional app.compat.torch.nn._images *
torch.nn.functional app.compat.torch.nn._losses *
torch.nn.functional app.compat.torch.nn.functional *
torch.nn.init app.compat.torch.nn.init *
torch.nn.parallel app.compat.torch.nn.parallel DistributedDataParallel
torch.nn.parameter app.compat.torch.nn.parameter Parameter
torch.nn.utils app.nn.utils *
torch.optim app.compat.torch.optim._optimizers Adadelta Adagrad Adam AdamW Optimizer RMSprop SGD
torch.optim.lr_scheduler app.compat.torch.optim._schedulers *
torch.testing app.compat.torch.testing assert_close
torch.utils.data app.compat.torch.utils.data *
torch.utils.data app.io ChainDataset ConcatDataset Dataset DistributedSampler IterableDataset RandomSampler Sampler
    SequentialSampler=SequenceSampler Subset SubsetRandomSampler WeightedRandomSampler get_worker_info random_split
torch.utils.data.distributed app.io DistributedSampler
"""

make_modules(_MODULES)
add_methods()
