"""Training where little can be relied on: no home, no locale, a read-only place, one core, no compiler, a bad clock."""

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from runs_of_train import QUICK_END, Run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
STRANGE = "with spaces, zażółć gęślą 数字"
SHORT = ("train.epochs=2", "train.batch_size=8", "train.log_every=3", "model.hidden=[5]", *QUICK_END)

READ_ONLY = """
import errno, os, sys
HERE = sys.argv.pop(1)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
def refuse(event, given):
    paths = []
    if event == "open" and isinstance(given[2], int) and given[2] & WRITING:
        paths = given[:1]
    elif event in ["os." + name for name in ("mkdir", "rename", "remove", "rmdir", "link", "symlink", "truncate")]:
        paths = given[:2]
    for path in paths:
        if isinstance(path, (str, bytes)) and os.path.abspath(os.fsdecode(path)).startswith(HERE + os.sep):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
sys.addaudithook(refuse)
"""
"""Makes a folder read-only, for this process: permissions would not keep out a superuser, as tests often run by one."""

ONE_CORE = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
"""

JUMPING = """
import itertools, sys, time
jumps = itertools.cycle([0.0, 1e9, -1e6, 86400.0, -1e8])
real = time.time
time.time = lambda: real() + next(jumps)
time.time_ns = lambda: int(time.time() * 1e9)
"""
"""A clock that is set forth and back between any two looks at it."""

NATIVE = """
native = misbehaving(numba.njit(lambda x: x.copy()))
"""
TRAIN = "from app.experiment.train_command import main; sys.exit(main())"


@pytest.fixture
def python(tmp_path):
    """Starts Python with this code and little else, in a folder with a name that is not ASCII."""
    folder = tmp_path / STRANGE
    folder.mkdir()

    def start(code, *words, path=ROOT, **environment):
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(path), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    return start


def printed(process, note=""):
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert re.fullmatch(note, err), err
    return out


def events(folder, kind):
    return [m for m in Run(0, "", "", folder).metrics if m["event"] == kind]


def test_a_read_only_installation_trains_without_a_home_in_any_path_and_in_the_c_locale(
    python, installed, images, tmp_path
):
    site = Path(shutil.copytree(installed, tmp_path / "a site with spaces äß"))
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*")}
    data = tmp_path / "dätä"
    shutil.copytree(images, data)
    operators = tmp_path / STRANGE / "meine ops äöü.py"
    text = Path(__file__).with_name("misbehaving_operators.py").read_text()
    operators.write_text(text.replace("import app\n", "import opsmith as app\n") + NATIVE)
    config = shutil.copy(ROOT / "configs" / "quick.yaml", tmp_path / STRANGE / "größer.yaml")
    words = (str(site), "--config", config, f"data.source={data}", "output=läuft gut", *SHORT, "engine=reference")
    own = (f"model.activation={operators.name}:native", "baseline=custom.legendre3")  # of the site
    nowhere = {"XDG_CACHE_HOME": str(site / "cache"), "MPLCONFIGDIR": str(tmp_path)}
    locale = {"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0"}
    default = "from app.run.config import load_config; from app.run.options import DEFAULT; print(load_config(DEFAULT))"
    code = f"{default}\n{TRAIN}".replace("from app.", "from opsmith.")
    process = python(f"{READ_ONLY}{code}", *words, *own, path=site, **locale, **nowhere)
    out = printed(process, "note: compiled code cannot be kept, .* set OPSMITH_CACHE to one\n")
    assert "baseline='relu'" in out
    assert "epoch 2/2" in out
    run = tmp_path / STRANGE / "läuft gut"
    assert [m["epoch"] for m in events(run, "epoch")] == [0, 0, 1, 1]
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*")} == before


def test_without_a_compiler_on_one_core_and_with_a_clock_that_jumps_the_results_are_the_same(
    python, train, images, tmp_path
):
    words = (f"data.source={images}", *SHORT, "output=hindered")
    hindered = python(ONE_CORE + JUMPING + TRAIN, *words, NUMBA_DISABLE_JIT="1")
    assert "operator by operator: NUMBA_DISABLE_JIT switches compiling off" in printed(hindered)
    usual = train(*SHORT, folder="usual")
    assert events(tmp_path / STRANGE / "hindered", "iteration") == events(usual.folder, "iteration")
    seconds = [m["seconds"] for m in events(tmp_path / STRANGE / "hindered", "epoch")]
    assert len(seconds) == 4
    assert all(math.isfinite(s) and 0 < s < 100 for s in seconds)
