"""The report as a person sees it, in Chromium: what is read, hovered, dragged and typed, on a screen and a phone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import PHONE, WIDE, Visitor
from made_runs import HOSTILE, compared, made_run

from app.report.report import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
EIGHT = ("relu", "tanh", "sigmoid", "elu", "gelu", "selu", "silu", "mish")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return reported(made_run(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a comparison of eight operators."""
    return reported(compared(tmp_path_factory.mktemp("eight"), EIGHT))


def reported(folder: Path) -> str:
    return write_report(folder).resolve().as_uri()


def corners(page: Page, chart: str) -> tuple[Any, float, float]:
    """The mouse, brought over a chart: it, the chart's left edge, and its middle."""
    area = page.locator(f"#chart-{chart} .area")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    return box, box["x"], box["y"] + box["height"] / 2


def drag(page: Page, chart: str, start: float, end: float) -> None:
    """Drag the mouse over a part of a chart, given in shares of its width."""
    box, left, middle = corners(page, chart)
    page.mouse.move(left + box["width"] * start, middle)
    page.mouse.down()
    page.mouse.move(left + box["width"] * end, middle, steps=4)
    page.mouse.up()


def values_at(page: Page, chart: str, share: float) -> list[str]:
    """The values that are shown while the mouse is at a share of the width of a chart."""
    box, left, middle = corners(page, chart)
    page.mouse.move(left + box["width"] * share, middle)
    return page.inner_text(f"#chart-{chart} .values").split("\n")


def marks(page: Page, chart: str) -> list[str]:
    return page.locator(f"#chart-{chart} .xs text").all_text_contents()


# --- What it says ---


def test_the_verdict_is_on_top_and_every_section_follows(visitor: Visitor, address: str):
    from playwright.sync_api import expect

    page = visitor.open(address)
    assert page.title() == "custom.relu against relu – a run of opsmith"
    assert page.inner_text("h1") == "custom.relu against relu"
    first = page.inner_text(".verdict p >> nth=0")
    assert first == "Accuracy on the 200 test digits: custom.relu 70.00 %, relu 72.00 %."
    titles = ["Verdict", "Training", "Cost of the operator", "Mistakes", "Hidden units", "Settings and machine"]
    assert page.locator("h2").all_text_contents() == titles
    assert page.locator("nav a").all_text_contents() == titles[1:]
    assert "An <abacus> & beads" in page.inner_text("#settings")
    assert "activation: custom.relu" in page.inner_text("pre")
    page.click("nav a >> text=Mistakes")
    expect(page.locator("#mistakes-title")).to_be_in_viewport()


def test_pictures_are_in_the_page_with_a_description_and_a_size(visitor: Visitor, address: str):
    page = visitor.open(address)
    pictures = page.evaluate("""Promise.all([...document.images].map((i) => i.decode().then(
        () => [i.naturalWidth, i.alt, i.loading, i.getAttribute('width'), i.getAttribute('height')])))""")
    assert len(pictures) > 20
    for natural, alt, loading, width, height in pictures:
        assert natural > 0
        assert len(alt) > 10
        assert loading != "lazy"
        assert width
        assert height
    assert visitor.requested == [address]


# --- Pointer ---


def test_hovering_shows_the_nearest_values(visitor: Visitor, address: str):
    page = visitor.open(address)
    assert values_at(page, "loss", 0.97) == [
        "epoch 3", "custom.relu, training 1.77", "relu, training 1.75", "custom.relu, test 1.7", "relu, test 1.68",
    ]  # fmt: skip
    values_at(page, "loss", -0.1)
    assert not page.is_visible("#chart-loss .values")


def test_dragging_zooms_and_a_double_click_or_a_button_shows_all_again(visitor: Visitor, address: str):
    page = visitor.open(address)
    before, whole = marks(page, "loss"), page.locator("#chart-loss .whole")
    last = page.locator("#chart-loss .points use").last
    place = last.get_attribute("x")
    assert all(mark.isdigit() for mark in before)
    assert not whole.is_visible()
    drag(page, "loss", 0.6, 0.9)
    zoomed = marks(page, "loss")
    assert zoomed != before
    assert all(1.5 < float(mark) < 3.1 for mark in zoomed)
    box, left, middle = corners(page, "loss")
    page.mouse.dblclick(left + box["width"] / 2, middle)
    assert marks(page, "loss") == before
    drag(page, "loss", 0.3, 0.99)
    assert page.locator("#chart-loss .points use").count() == 6
    assert last.get_attribute("x") != place  # markers stay on their curves
    whole.click()
    assert marks(page, "loss") == before
    assert not whole.is_visible()


def test_logarithmic_charts_zoom_too(visitor: Visitor, address: str):
    page = visitor.open(address)
    drag(page, "cost-forward", 0.01, 0.3)
    assert marks(page, "cost-forward") == ["1k", "2k"]
    assert values_at(page, "cost-forward", 0.01)[1] == "custom.relu 1 µs"


def test_a_click_on_a_name_shows_only_its_curves(visitor: Visitor, eight: str):
    page = visitor.open(eight)
    lit = "#chart-loss [data-line]:not(.off)"
    assert page.locator(lit).count() > 12
    name = page.locator("#chart-loss .legend button >> text=sigmoid")
    name.click()
    assert {e.get_attribute("data-line") for e in page.locator(lit).all()} == {"2"}
    assert name.get_attribute("aria-pressed") == "true"
    assert all("sigmoid" in line for line in values_at(page, "loss", 0.97)[1:])
    name.press("Enter")
    assert page.locator("#chart-loss .off").count() == 0


def test_eight_operators_differ_without_colour(visitor: Visitor, eight: str):
    page = visitor.open(eight)
    style = """(figure) => [...figure.querySelectorAll(".legend li")].map((key) => {
      const line = getComputedStyle(key.querySelector("path")), mark = key.querySelector("g");
      const filled = getComputedStyle(mark).fill === getComputedStyle(key.querySelector("path")).stroke;
      return [line.strokeDasharray, mark.firstElementChild.getAttribute("href"), filled].join();
    })"""
    assert len(set(page.eval_on_selector("#chart-loss", style))) == len(EIGHT)
    assert page.locator("#chart-loss .points use").count() == 3 * len(EIGHT)


# --- Layout and print ---


def test_a_printed_page_has_no_controls_and_breaks_between_charts(visitor: Visitor, address: str):
    page = visitor.open(address, color_scheme="dark")
    assert page.locator(".hint").is_visible()
    page.emulate_media(media="print")
    assert not page.locator(".hint:visible, nav:visible, details:visible").count()
    assert page.evaluate("getComputedStyle(document.querySelector('section')).breakInside") == "auto"
    assert page.evaluate("getComputedStyle(document.querySelector('.chart')).breakInside") == "avoid"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


# --- Keyboard, no script, phone ---


def test_keys_move_zoom_and_show_all(visitor: Visitor, address: str):
    page = visitor.open(address)
    before = marks(page, "time")
    page.focus("#chart-time .area")
    page.keyboard.press("ArrowRight")
    shown = page.locator("#chart-time .values")
    assert shown.inner_text().split("\n") == ["training time 500 ms", "custom.relu 50 %"]
    page.keyboard.press("ArrowRight")
    assert shown.inner_text().split("\n") == ["training time 600 ms", "relu 52 %"]
    page.keyboard.press("+")
    assert marks(page, "time") != before
    page.keyboard.press("Escape")
    assert marks(page, "time") == before
    assert not shown.is_visible()
    page.focus("#chart-loss .area")
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert all(mark.isdigit() for mark in marks(page, "loss"))


def test_curves_and_values_are_shown_without_script(visitor: Visitor, address: str):
    page = visitor.open(address, java_script_enabled=False)
    assert not page.locator(".hint:visible").count(), "they promise what needs a script"
    assert page.locator("#chart-loss .curves path.line").count() == 4
    page.click("#chart-accuracy summary")
    rows = ["1\t50 %\t52 %", "2\t60 %\t62 %", "3\t70 %\t72 %"]
    assert page.locator("#chart-accuracy tbody tr").all_inner_texts() == rows


def test_on_a_phone_nothing_is_wider_than_the_screen(visitor: Visitor, address: str):
    page = visitor.open(address, PHONE, has_touch=True, is_mobile=True)
    page.locator("summary").first.tap()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.locator("#chart-loss .area").tap()
    assert page.locator("#chart-loss .values").is_visible()


CONTRASTS = """() => {
  const parts = (colour) => { // of rgb(1 2 3 / 0.5) and of color(srgb 0.1 0.2 0.3 / 0.5)
    const values = colour.match(/[\\d.]+/g).map(Number);
    return colour.startsWith("color(") ? [...values.slice(0, 3).map((v) => 255 * v), ...values.slice(3)] : values;
  };
  const over = ([r, g, b, a = 1], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const light = (rgb) => rgb.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => element
    ? over(parts(getComputedStyle(element).backgroundColor), behind(element.parentElement)) : [255, 255, 255];
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !element.getClientRects().length || element.closest("script")) continue;
    const style = getComputedStyle(element);
    const back = behind(element);
    const ink = over(parts(element.ownerSVGElement ? style.fill : style.color), back);
    const [dark, bright] = [light(ink), light(back)].sort((a, b) => a - b);
    found.push([(bright + 0.05) / (dark + 0.05), element.tagName + " " + walk.currentNode.textContent]);
  }
  return found;
}"""


@pytest.mark.parametrize("size", [PHONE, WIDE])
def test_all_text_contrasts_with_its_background(visitor: Visitor, address: str, size: dict[str, int]):
    page = visitor.open(address, size)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 200
        assert [pair for pair in contrasts if pair[0] < 4.5] == []
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(246, 246, 243)") == (scheme == "light")


def test_controls_have_names_and_headings_skip_no_level(visitor: Visitor, address: str):
    page = visitor.open(address)
    unnamed = "[...document.querySelectorAll('[tabindex], svg:not([aria-hidden]), nav, section')]" + (
        ".filter(e => !e.matches('.scroll, pre') && !e.ariaLabel && !e.getAttribute('aria-labelledby')).length"
    )
    assert page.evaluate(unnamed) == 0
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(later - level <= 1 for level, later in pairwise(levels))


# --- Hostile runs ---


def test_a_hostile_name_is_text_and_no_other_script_runs(visitor: Visitor, tmp_path: Path):
    page = visitor.open(reported(made_run(tmp_path / "run", (HOSTILE, "relu"))))
    assert page.inner_text("h1") == f"{HOSTILE} against relu"
    assert any(line.startswith(f"{HOSTILE}, test") for line in values_at(page, "loss", 0.97))
    assert (page.evaluate("window.taken"), len(visitor.requested), visitor.problems) == (None, 1, [])
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.taken = 1";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<p onclick='window.taken = 1'>here</p><img src='https://example.org/a.png'>");
      document.querySelector("p[onclick]").click();
    }""")
    assert page.evaluate("window.taken") is None
    assert len(visitor.problems) == 3
    assert all("Content Security Policy" in problem for problem in visitor.problems)
    visitor.problems.clear()
