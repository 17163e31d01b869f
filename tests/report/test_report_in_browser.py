"""The report as a person sees it, in Chromium: what is read and pointed at, on a screen and a phone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from browser import PHONE, WIDE, Visitor
from made_runs import HOSTILE, compared, made_run

from app.report.report import write_report

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
    assert "activation: custom.relu" in page.inner_text("pre >> nth=-1")
    page.click("nav a >> text=Mistakes")
    expect(page.locator("#mistakes-title")).to_be_in_viewport()


def test_a_table_is_saved_as_csv_without_script(visitor: Visitor, address: str):
    page = visitor.open(address)
    with page.expect_download() as saved:
        page.click("#costs .csv")
    assert saved.value.suggested_filename == "costs.csv"
    assert saved.value.path().read_text().splitlines()[0] == "operator,forward,backward"


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


# --- Charts ---


def test_pictures_keep_their_proportions(visitor: Visitor, address: str):
    page = visitor.open(address)
    stretched = """[...document.images].map((i) =>
        (i.clientWidth / i.clientHeight) / (i.naturalWidth / i.naturalHeight))"""
    assert all(0.97 < ratio < 1.03 for ratio in page.evaluate(stretched))


def test_pointing_at_a_chart_shows_the_nearest_values(visitor: Visitor, address: str):
    page = visitor.open(address)
    chart = page.locator("#chart-loss svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + box["height"] / 2)
    assert page.inner_html("#chart-loss .tooltip:hover title").split("\n") == [
        "epoch 3", "custom.relu, training 1.77", "relu, training 1.75", "custom.relu, test 1.7", "relu, test 1.68",
    ]  # fmt: skip


def test_eight_operators_differ_without_colour(visitor: Visitor, eight: str):
    page = visitor.open(eight)
    style = """(figure) => [...figure.querySelectorAll("text.name")].map((name) => {
      const mark = name.previousElementSibling;
      const line = getComputedStyle(mark.previousElementSibling);
      const filled = getComputedStyle(mark).fill === line.stroke;
      return [line.strokeDasharray, mark.firstElementChild.getAttribute("d"), filled].join();
    })"""
    assert len(set(page.eval_on_selector("#chart-loss", style))) == len(EIGHT)
    assert page.locator("#chart-loss .mark path").count() == 4 * len(EIGHT)


# --- Layout and print ---


def test_a_printed_page_has_no_controls_and_breaks_between_charts(visitor: Visitor, address: str):
    page = visitor.open(address, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("nav:visible, details:visible").count()
    assert page.evaluate("getComputedStyle(document.querySelector('section')).breakInside") == "auto"
    assert page.evaluate("getComputedStyle(document.querySelector('.chart')).breakInside") == "avoid"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


# --- No script, phone ---


def test_curves_and_values_are_shown_without_script(visitor: Visitor, address: str):
    page = visitor.open(address)  # which may run no script, as is tested below
    assert page.locator("#chart-loss path.line").count() == 4 + 2, "of the curves and of the legend"
    page.click("#chart-accuracy summary")
    rows = ["1\t50 %\t52 %", "2\t60 %\t62 %", "3\t70 %\t72 %"]
    assert page.locator("#chart-accuracy tbody tr").all_inner_texts() == rows


def test_on_a_phone_nothing_is_wider_than_the_screen(visitor: Visitor, address: str):
    page = visitor.open(address, PHONE, has_touch=True, is_mobile=True)
    page.locator("summary").first.tap()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


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


@pytest.mark.parametrize("size", [pytest.param(PHONE, marks=pytest.mark.soak), WIDE])
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


def test_a_hostile_name_is_text_and_no_script_runs(visitor: Visitor, tmp_path: Path):
    page = visitor.open(reported(made_run(tmp_path / "run", (HOSTILE, "relu"))))
    assert page.inner_text("h1") == f"{HOSTILE} against relu"
    titles = page.locator("#chart-loss .tooltip title").all_text_contents()
    assert f"{HOSTILE}, test 1.7" in titles[-1].split("\n")
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
