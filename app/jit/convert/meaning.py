"""What converted source calls by the name `_jit`."""

from app.jit.convert.branch import NOTHING, choose, if_, plain
from app.jit.convert.call import call
from app.jit.convert.items import shape, with_item
from app.jit.convert.logic import and_, assert_, chain, not_, or_
from app.jit.convert.loop import for_, while_
from app.jit.convert.state import State

__all__ = [
    "NOTHING",
    "State",
    "and_",
    "assert_",
    "call",
    "chain",
    "choose",
    "for_",
    "if_",
    "not_",
    "or_",
    "plain",
    "shape",
    "while_",
    "with_item",
]
