"""paddle: the names of Paddle 2 and, in `paddle.fluid`, of Paddle 1"""

from app.compat.facade import make_modules

__version__ = "2.6.0"  # the release whose names these are

_MODULES = """
paddle.tensor app
    arange assign bernoulli clone diag empty empty_like eye full full_like linspace logspace meshgrid multinomial normal
    ones ones_like rand randint randint_like randn randperm standard_normal tril triu uniform zeros zeros_like abs acos
    acosh add add_n asin asinh atan atan2 atanh ceil clip cos cosh deg2rad divide erf exp expm1 floor floor_divide
    floor_mod fmax fmin frac lerp log log10 log1p log2 logit maximum minimum mod multiply hypot logaddexp
    nan_to_num neg pow rad2deg reciprocal remainder round rsqrt scale sigmoid sign sin sinh sqrt square subtract tan
    tanh trunc allclose bitwise_and bitwise_not bitwise_or bitwise_xor equal equal_all greater_equal greater_than
    isclose isfinite isinf isnan less_equal less_than logical_and logical_not logical_or logical_xor not_equal where all
    amax amin any argmax argmin count_nonzero cumsum logsumexp max mean min norm prod std sum var diff argsort sort topk
    unique nonzero addmm bmm dist dot einsum inner matmul mm mv outer t trace broadcast_shape broadcast_tensors
    broadcast_to cast chunk concat diagonal expand expand_as flatten flip gather gather_nd hstack index_add index_sample
    index_select masked_fill masked_select moveaxis numel put_along_axis rank repeat_interleave reshape reverse=flip
    roll row_stack scatter shape slice split squeeze stack swapaxes take take_along_axis tile tolist transpose
    tril_indices triu_indices unbind unflatten unsqueeze unstack view_as vstack get_rng_state set_rng_state
paddle.tensor app.compat.paddle._fluid.layers increment
paddle paddle.tensor *
paddle app Tensor to_tensor is_tensor seed save load Model summary ParamAttr create_parameter
    grad no_grad enable_grad set_grad_enabled is_grad_enabled
    enable_static disable_static in_dynamic_mode get_default_dtype set_default_dtype
    bool uint8 int8 int16 int32 int64 float16 float32 float64
paddle app.compat.paddle._fluid.flags get_flags set_flags
paddle app.data.readers batch
paddle app.device CPUPlace CUDAPlace get_device is_compiled_with_cuda set_device
paddle app.distributed DataParallel
paddle app.limits finfo iinfo
paddle.autograd app.autograd PyLayer backward enable_grad grad is_grad_enabled no_grad set_grad_enabled
paddle.autograd app.custom.pylayer.operator PyLayerContext
paddle.autograd.py_layer app.autograd PyLayer
paddle.autograd.py_layer app.custom.pylayer.operator PyLayerContext
paddle.base app.compat.paddle._fluid.flags enable_dygraph disable_dygraph in_dygraph_mode
paddle.base app.device CPUPlace CUDAPlace is_compiled_with_cuda
paddle.base app.graph Program Variable append_backward default_main_program default_startup_program
    gradients program_guard
paddle.base app.engine Scope global_scope scope_guard
paddle.base app.compat.paddle._fluid.executor Executor
paddle.base app.nn ParamAttr
paddle.base app.static BuildStrategy CompiledProgram DataFeeder ExecutionStrategy name_scope
paddle.base.backward app.graph append_backward gradients
paddle.base.compiler app.static BuildStrategy CompiledProgram ExecutionStrategy
paddle.base.core app.device CPUPlace CUDAPlace get_cuda_device_count=device_count is_compiled_with_cuda
paddle.base.core app.engine Scope
paddle.base.dygraph.nn app.compat.paddle._fluid.nn BatchNorm Conv2D Linear Pool2D
paddle.base.dygraph app.compat.paddle._fluid.dygraph *
paddle.base.dygraph app.compat.paddle._fluid.flags disable_dygraph enable_dygraph enabled=in_dygraph_mode
paddle.base.dygraph paddle.base.dygraph.nn *
paddle.base.dygraph app.nn Layer Sequential
paddle.base.dygraph app.tensor grad no_grad
paddle.base.executor app.engine global_scope scope_guard
paddle.base.executor app.compat.paddle._fluid.executor Executor
paddle.base.framework app.compat.paddle._fluid.flags get_flags in_dygraph_mode set_flags
paddle.base.framework app.device CPUPlace CUDAPlace
paddle.base.framework app.graph Block Operator Parameter Program Variable program_guard
    default_main_program default_startup_program
paddle.base.framework app.static name_scope
paddle.base.param_attr app.nn ParamAttr
paddle.base.unique_name app.graph.names generate guard
paddle.callbacks app.model.callbacks *
paddle.dataset.mnist app.compat.paddle._mnist *
paddle.device app.device get_device is_compiled_with_cuda set_device
paddle.device.cuda app.device device_count
paddle.distributed app.distributed ParallelEnv ReduceOp all_gather all_gather_object all_reduce barrier broadcast
    get_rank get_world_size init_parallel_env is_initialized reduce spawn
paddle.framework app ParamAttr create_parameter get_default_dtype seed set_default_dtype
paddle.framework app.compat.paddle._fluid.flags get_flags set_flags
paddle.framework app.device CPUPlace CUDAPlace
paddle.io app.io *
paddle.jit app.jit *
paddle.linalg app.linalg *
paddle.metric app.metric *
paddle.onnx app.compat.paddle._onnx export
paddle.nn app.nn *
paddle.nn app.compat.paddle._nn Embedding LayerNorm PReLU
paddle.nn.functional app.nn.functional *
paddle.nn.initializer app.nn.initializer *
paddle.nn.loss app.nn BCELoss BCEWithLogitsLoss CrossEntropyLoss HuberLoss KLDivLoss L1Loss MSELoss NLLLoss SmoothL1Loss
paddle.optimizer app.optimizer Adadelta Adagrad Adam AdamW Momentum Optimizer RMSProp SGD
paddle.optimizer.lr app.optimizer.lr *
paddle.reader app.data.readers buffered cache chain compose firstn map_readers shuffle
paddle.regularizer app.regularizer *
paddle.static app.static *
paddle.static.nn app.static create_parameter py_func
paddle.static.nn app.static.nn *
paddle.utils app.compat.paddle._fluid.flags run_check
paddle.version app.compat.paddle full_version=__version__
paddle.vision.datasets app.vision.datasets *
paddle.vision.models app.vision.models *
paddle.vision.transforms app.vision.transforms *
paddle.fluid paddle.base *
paddle.fluid app.static data load save
paddle.fluid app.static.nn embedding
paddle.fluid.average app.compat.paddle._fluid.metrics WeightedAverage
paddle.fluid.clip app.nn GradientClipByGlobalNorm=ClipGradByGlobalNorm GradientClipByNorm=ClipGradByNorm
    GradientClipByValue=ClipGradByValue
paddle.fluid.initializer app.nn.initializer Constant ConstantInitializer=Constant NumpyArrayInitializer=Assign
paddle.fluid.initializer app.compat.paddle._fluid.initializers
    MSRA MSRAInitializer=MSRA Normal NormalInitializer=Normal TruncatedNormal TruncatedNormalInitializer=TruncatedNormal
    Uniform UniformInitializer=Uniform Xavier XavierInitializer=Xavier
paddle.fluid.io app.compat.paddle._fluid.files load_inference_model load_params load_persistables
    save_inference_model save_params save_persistables
paddle.fluid.io app.data.readers batch buffered cache chain compose firstn map_readers shuffle
paddle.fluid.layers app.compat.paddle._fluid.layers:TAKEN *
paddle.fluid.layers app.compat.paddle._fluid.layers *
paddle.fluid.layers app.compat.paddle._fluid.layers sum=sums reduce_all reduce_any reduce_max reduce_mean reduce_min
    reduce_prod reduce_sum
paddle.fluid.layers app.compat.paddle._fluid.schedules *
paddle.fluid.learning_rate_scheduler app.compat.paddle._fluid.schedules *
paddle.fluid.metrics app.compat.paddle._fluid.metrics Accuracy
paddle.fluid.nets app.compat.paddle._fluid.nets simple_img_conv_pool
paddle.fluid.optimizer app.compat.paddle._fluid.optimizers:OPTIMIZERS *
paddle.fluid.regularizer app.compat.paddle._fluid.optimizers:REGULARIZERS *
"""

make_modules(_MODULES)
