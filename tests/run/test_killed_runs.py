"""A run that is killed and resumed gives the results of one that was not.

Fifty kills at random moments of runs on every engine are in tests/soak/.
"""

import os
import signal

import pytest
from runs_of_train import QUICK_END, TINY, assert_same_results

pytestmark = pytest.mark.slow

MORTAL = """
import os
import signal
import app

calls = 0

@app.custom_op
def mortal(x):
    global calls
    calls += 1
    if calls == int(os.environ.get("CALLS", 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    return x

@mortal.backward
def _(dout):
    return dout
"""


def test_a_run_that_is_killed_repeatedly_gives_the_results_of_one_that_was_not(type_it, train, images, tmp_path):
    (tmp_path / "my_ops.py").write_text(MORTAL)
    own = ("model.activation=my_ops.py:mortal", "train.optimizer=momentum", "train.epochs=6")
    assert train(*own, folder="whole").status == 0
    words = (f"data.source={images}", *TINY, *QUICK_END, *own, "output=run")
    for calls in ("12", "16", "20"):
        assert type_it(*words, env={**os.environ, "CALLS": calls}).status == -signal.SIGKILL
        words = ("--resume", "run", "--custom-op", "my_ops.py")
    assert type_it(*words).status == 0
    assert_same_results(tmp_path / "run", tmp_path / "whole")
