"""paddle.fluid.optimizer and paddle.fluid.regularizer: Paddle 1's names, of classes and of their parameters."""

from app import optimizer, regularizer
from app.compat.table import table

OPTIMIZERS = table(
    optimizer,
    """
    SGD SGDOptimizer = SGD(learning_rate, parameter_list:parameters, regularization:weight_decay, grad_clip, name)
    Momentum MomentumOptimizer = Momentum(learning_rate, momentum, parameter_list:parameters, use_nesterov, \
        regularization:weight_decay, grad_clip, name)
    Adam AdamOptimizer = Adam(learning_rate, beta1, beta2, epsilon, parameter_list:parameters, \
        regularization:weight_decay, grad_clip, name, lazy_mode)
    Adagrad AdagradOptimizer = Adagrad(learning_rate, epsilon, parameter_list:parameters, \
        regularization:weight_decay, grad_clip, name, initial_accumulator_value)
    Adadelta AdadeltaOptimizer = Adadelta(learning_rate, epsilon, rho, parameter_list:parameters, \
        regularization:weight_decay, grad_clip, name)
    RMSPropOptimizer = RMSProp(learning_rate, rho, epsilon, momentum, centered, parameter_list:parameters, \
        regularization:weight_decay, grad_clip, name)
    """,
)
"""The optimisers."""

REGULARIZERS = table(
    regularizer,
    """
    L1Decay L1DecayRegularizer = L1Decay(regularization_coeff:coeff)
    L2Decay L2DecayRegularizer = L2Decay(regularization_coeff:coeff)
    """,
)
"""The regularizers."""
