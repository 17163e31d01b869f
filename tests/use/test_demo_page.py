"""The demo's page as a person sees and uses it: in Chromium, with mouse, finger and keyboard."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from browser import PHONE, WIDE, Visitor
from handwriting import lines_of, placed

from app.data.sample import load_sample
from app.use.demo.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
SEVEN = [(0.25, 0.2), (0.75, 0.2), (0.45, 0.85)]

DRAW_ALL = """async (drawings) => {
  const pad = document.getElementById("pad"), answered = document.getElementById("time"), read = [];
  const fire = (kind, [x, y]) => {
    const box = pad.getBoundingClientRect();
    const at = { clientX: box.left + x * box.width, clientY: box.top + y * box.height };
    pad.dispatchEvent(new PointerEvent(kind, { pointerId: 1, button: 0, ...at }));
  };
  for (const lines of drawings) {
    document.getElementById("clear").click();
    for (const [first, ...others] of lines) {
      fire("pointerdown", first);
      for (const point of others) fire("pointermove", point);
      fire("pointerup", first);
    }
    const spoken = document.getElementById("spoken");
    while (!spoken.textContent) await new Promise((go) => setTimeout(go, 1));
    read.push([...document.querySelectorAll(".digit")].map((digit) => digit.textContent));
  }
  return read;
}"""
"""Draws as fast as the page takes it; gives the digits that it shows of each drawing once the last line is answered."""


@pytest.fixture
def page(server: Server, visitor: Visitor) -> Any:
    page = opened(server, visitor)
    page.emulate_media(reduced_motion="reduce")
    return page


def opened(server: Server, visitor: Visitor, **options: Any) -> Page:
    page = visitor.open(server.address, **options)
    page.wait_for_selector(".network:nth-of-type(2)")
    return page


def box_of(page: Page, selector: str) -> dict[str, float]:
    """Where an element is, and how large."""
    box = page.locator(selector).bounding_box()
    assert box is not None
    return {"x": box["x"], "y": box["y"], "right": box["x"] + box["width"], "bottom": box["y"] + box["height"]}


def on_pad(page: Page, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points of the sheet, from 0 to 1, as places on the screen."""
    pad = box_of(page, "#pad")
    width, height = pad["right"] - pad["x"], pad["bottom"] - pad["y"]
    return [(pad["x"] + x * width, pad["y"] + y * height) for x, y in points]


def draw(page: Page, points: list[tuple[float, float]] = SEVEN) -> None:
    """A line with the mouse, and its answer."""
    page.evaluate("document.getElementById('spoken').textContent = ''")
    first, *others = on_pad(page, points)
    page.mouse.move(*first)
    page.mouse.down()
    for point in others:
        page.mouse.move(*point, steps=8)
    page.mouse.up()
    answered(page)


def answered(page: Page) -> None:
    """Wait until the last line is answered, which is then said to those who cannot see it."""
    page.wait_for_selector("#spoken:not(:empty)", state="attached")


def digits(page: Page) -> list[str]:
    return page.locator(".digit").all_inner_texts()


def bars(page: Page) -> np.ndarray:
    """How long each bar is, as a share of its track, a row for each network."""
    lengths = page.evaluate("""() => [...document.querySelectorAll(".fill")].map((fill) =>
        new DOMMatrix(getComputedStyle(fill).transform).a)""")
    return np.array(lengths).reshape(-1, 10)


def colours(page: Page, canvas: str) -> int:
    """How many colours there are on a canvas."""
    return page.evaluate(
        """(name) => { const canvas = document.querySelector(name);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size; }""",
        canvas,
    )


def test_both_networks_read_a_drawing(server: Server, visitor: Visitor, page: Page):
    assert page.locator(".operator").all_inner_texts() == ["custom.relu", "relu"]
    assert page.locator(".bars li").count() == 20
    assert digits(page) == ["–", "–"]
    draw(page)
    assert digits(page) == ["7", "7"]
    lengths = bars(page)
    assert lengths.argmax(1).tolist() == [7, 7]
    np.testing.assert_allclose(lengths.sum(1), 1, atol=0.01)
    shares = [float(text) for text in page.locator(".percent").all_inner_texts()]
    np.testing.assert_allclose(np.reshape(shares, (2, 10)) / 100, lengths, atol=0.001)
    assert page.locator(".best .class").all_inner_texts() == ["7", "7"]
    assert colours(page, ".cells canvas") > 20
    assert colours(page, "#seen") > 5
    assert re.fullmatch(r"\d+ of 128 hidden units not zero", page.locator(".layer figcaption").first.inner_text())
    assert page.inner_text("#spoken") == "custom.relu: 7, relu: 7"
    assert page.inner_text("#agreement").startswith("They agree")
    assert re.fullmatch(r"[\d.]+ ms from pen to answer \(median [\d.]+, worst [\d.]+\)", page.inner_text("#time"))
    assert visitor.requested
    assert {address.startswith(server.address) for address in visitor.requested} == {True}


def test_a_dot_is_unsure_and_mouse_and_keyboard_clear_the_sheet(page: Page):
    for key in ("Enter", "Escape", None):
        draw(page, [(0.5, 0.5)])
        assert digits(page) == ["?", "?"]
        assert page.locator(".share").all_inner_texts() == ["unsure", "unsure"]
        assert "100" not in page.inner_text("#networks")
        assert page.is_hidden("#problem")
        if key == "Enter":
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.id") == "clear"
        if key:
            page.keyboard.press(key)
        else:
            page.click("#clear")
        assert digits(page) == ["–", "–"]
        assert bars(page).max() == 0
        assert page.is_visible("#hint")
    assert colours(page, "#pad") == colours(page, "#seen") == 1


def test_a_finger_draws_on_a_phone_where_all_bars_are_visible(server: Server, visitor: Visitor):
    page = opened(server, visitor, size=PHONE, has_touch=True, is_mobile=True)
    page.evaluate("scrollTo(0, 0)")
    pad = box_of(page, "#pad")
    assert pad["right"] - pad["x"] >= 230
    touch = page.context.new_cdp_session(page)
    steps = np.concatenate([np.linspace(start, end, 7) for start, end in pairwise(on_pad(page, SEVEN))])
    for number, (x, y) in enumerate(steps.tolist()):
        points = [{"x": x, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove" if number else "touchStart", "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    answered(page)
    assert digits(page) == ["7", "7"]
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert box_of(page, ".bars li >> nth=9")["bottom"] <= PHONE["height"], "all bars are seen while one draws"


def test_light_and_dark_differ_and_networks_are_side_by_side_in_a_wide_window(server: Server, visitor: Visitor):
    grounds = set()
    for scheme in ("light", "dark"):
        page = opened(server, visitor, size=WIDE, color_scheme=scheme)
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        pad, first, second = (box_of(page, name) for name in ("#pad", ".network >> nth=0", ".network >> nth=1"))
        assert pad["right"] < first["x"]
        assert first["right"] < second["x"]
        assert first["y"] == second["y"]
    assert len(grounds) == 2


def test_handwriting_is_recognised_on_the_page(page: Page):
    """From the pen's movements on: as large as a third of the sheet or all of it, and anywhere on it."""
    sample, random = load_sample(), np.random.default_rng(0)
    images, labels = sample.test_images[1::200].reshape(-1, 28, 28), sample.test_labels[1::200]
    drawings = [placed(lines_of(image), random.uniform(0.3, 0.9), *random.random(2)) for image in images]
    read = page.evaluate(DRAW_ALL, [[line[::5].tolist() + line[-1:].tolist() for line in lines] for lines in drawings])
    assert (np.array(read) == labels.astype(str)[:, None]).mean(0).min() >= 0.95


def test_a_server_that_has_ended_is_a_message_on_the_page(visitor: Visitor, page: Page):
    page.route("**/predict", lambda route: route.abort())
    page.click("#pad")
    page.wait_for_selector("#problem:visible")
    assert page.inner_text("#problem") == "The server does not answer any more: start it again, and reload."
    page.unroute("**/predict")
    draw(page)
    assert page.is_hidden("#problem")
    visitor.problems.clear()  # Chromium told of the request that failed
