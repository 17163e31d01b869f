"""Settings of earlier releases: dropped where they have no effect, else refused, and read in the folder of a run."""

import msgspec
import pytest

from app.errors import ConfigError
from app.run.config import Config, load_config, load_kept_config
from app.run.options import CONFIGS
from app.run.resume import check_config

WITHOUT_EFFECT = "dist:\n  shape: allreduce\n  pieces: null\n  latency: 0\n  bandwidth: null\n  timeout: 60\n"
WITH_EFFECT = "dist:\n  shape: rows\n  pieces: 12\n  latency: 0.0\n  bandwidth: null\n"


def written(folder, text):
    (file := folder / "config.yaml").write_text(text)
    return file


def test_settings_without_effect_are_dropped(tmp_path):
    assert load_config(written(tmp_path, WITHOUT_EFFECT)) == load_config(
        written(tmp_path, "dist:\n  shape: allreduce\n  timeout: 60\n")
    )


@pytest.mark.parametrize(
    ("setting", "instead"),
    [
        ("shape: rows", "write allreduce, which gives the results of one process"),
        ("pieces: 12", "remove it: results are the same on any number of ranks"),
        ("latency: 0.1", "remove it: slower networks are not simulated"),
        ("bandwidth: 1000", "remove it: slower networks are not simulated"),
    ],
)
def test_settings_with_an_effect_are_refused_with_their_line(setting, instead, tmp_path):
    told = f"dist.{setting.replace(': ', '=')} is not supported any more; {instead}"
    with pytest.raises(ConfigError) as error:
        load_config(written(tmp_path, f"dist:\n  {setting}\n"))
    assert f"line 2, column 3: {told}" in str(error.value)
    override = f"dist.{setting.replace(': ', '=')}"
    with pytest.raises(ConfigError) as error:
        load_config(CONFIGS / "mpi.yaml", [override])
    assert str(error.value).startswith(f"the command line, {override}: {told}")


def test_the_configuration_of_an_earlier_run_is_read_and_what_is_gone_is_said(tmp_path):
    said = []
    config = load_kept_config(written(tmp_path, WITH_EFFECT), ["seed=3"], said.append)
    assert (config.dist.shape, config.seed) == ("allreduce", 3)
    assert said == [
        "note: the run was started with dist.pieces=12, dist.shape=rows, which is no longer supported; results from "
        "here on agree to rounding"
    ]
    load_kept_config(written(tmp_path, WITHOUT_EFFECT), (), said.append)
    assert len(said) == 1


def test_a_run_goes_on_that_an_earlier_release_began():
    before = msgspec.to_builtins(Config())
    before["dist"] |= {"shape": "rows", "pieces": None, "latency": 0.0, "bandwidth": None}
    check_config(before, Config())
    before["seed"] = 7
    with pytest.raises(ConfigError, match="seed was 7 and is 0"):
        check_config(before, Config())
