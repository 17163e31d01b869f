"""The demo as one page without a server: in Chromium, from disk, it reads what the server reads."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Visitor
from handwriting import redrawn
from test_demo_page import answered, draw

import app
from app.__main__ import main
from app.data.sample import load_sample
from app.errors import AppError
from app.run.network import Activation
from app.use.demo.reading import SHIPPED, Reader
from app.use.demo.static import _table, page_of
from app.use.trained import open_run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def shipped() -> Any:
    return open_run(SHIPPED, (28, 28))


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visitor: Visitor) -> Any:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--static", "page"]) == 0
    page = visitor.open((tmp_path / "page" / "index.html").as_uri())
    page.wait_for_selector(".network")
    return page


def test_the_page_reads_a_drawing_as_the_server_does(shipped: Any, page: Any, visitor: Visitor):
    reader, random = Reader(shipped), np.random.default_rng(0)
    script = page.locator("script").nth(1).text_content().partition("const { Pad }")[0]
    page.evaluate(f"void (window.readDrawing = (() => {{ {script} return readDrawing; }})())")
    images = load_sample().test_images[:20].reshape(-1, 28, 28)
    drawings = [redrawn(image, random.uniform(0.3, 0.9), *random.random(2)) for image in images]
    speckled = drawings[0].copy()
    speckled[:2, :2] = 200
    for drawing in [*drawings, speckled]:
        told = reader.read(drawing.tobytes())
        text = base64.b64encode(drawing.tobytes()).decode()
        here = page.evaluate(
            "async (text) => readDrawing(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)))", text
        )
        assert np.abs(np.subtract(here["picture"], told["picture"])).max() <= 1
        one, other = (np.array(said["networks"][0]["probabilities"]) for said in (here, told))
        np.testing.assert_allclose(one, other, atol=0.01)
        assert len(here["networks"][0]["hidden"][0]) == 64
    assert [address for address in visitor.requested if not address.startswith("file:")] == []


def test_the_page_recognises_a_seven_and_is_unsure_of_a_dot(page: Any):
    assert "the network that comes with opsmith: 784–64–10." in page.inner_text("#run")
    assert page.locator("#advice").is_hidden()
    draw(page)
    assert page.inner_text(".digit") == "7"
    page.keyboard.press("Escape")
    page.click("#pad")
    answered(page)
    assert (page.inner_text(".digit"), page.inner_text(".share")) == ("?", "unsure")
    assert page.inner_text("#spoken") == "custom.relu: unsure"
    assert set(page.locator(".percent").all_inner_texts()) == {""}


def test_a_page_of_someone_else_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "index.html"
    page.write_text("<title>Home</title>")
    assert main(["demo", "--static", str(tmp_path)]) == 1
    told = f"error: {page} exists and was not written by this program; name another folder, or remove it\n"
    assert capsys.readouterr().err == told
    assert page.read_text() == "<title>Home</title>"
    page.unlink()
    assert [main(["demo", "--static", str(tmp_path)]) for _ in range(2)] == [0, 0]


def test_the_page_has_two_scripts_and_no_address_of_a_server(shipped: Any):
    page = page_of(shipped)
    assert page.count("<script") == page.count("</script>") == 2
    assert "http-equiv" in page
    assert 'src="/' not in page
    assert 'href="/' not in page


def test_an_operator_that_is_not_elementwise_is_an_error():
    seen = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    swish = _table(Activation("swish", lambda x: x * app.sigmoid(x)), seen)
    assert swish["low"] == -4096 * swish["step"] / 2
    with pytest.raises(AppError, match="softly is not elementwise; show it with a server"):
        _table(Activation("softly", lambda x: app.nn.functional.softmax(x)), seen)
