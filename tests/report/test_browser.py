"""The page in a browser: first screen, phone, light and dark, filters, links, keys."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from reports import NASTY, REPORT, gradient, of_one_cause, result, scenario, wrong

from gradcheck.conformance.behaviour import result_as_recorded
from gradcheck.conformance.catalogue import load_catalogue
from gradcheck.conformance.matrix_formats import as_html, make_page_part
from gradcheck.conformance.releases import read_release, with_recorded_deviations
from gradcheck.conformance.table import build_matrix
from gradcheck.report.check_result import CheckResult
from gradcheck.report.files import render_report
from gradcheck.report.record import Report
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.read import load
from gradcheck.support.resources import bundled_specs, release_paths

playwright = pytest.importorskip("playwright.sync_api")
PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="not installed: Chromium")
WHERE = "http://localhost/report.html"
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=PROGRAM, args=OPTIONS)
        yield found
        found.close()


@pytest.fixture
def show(browser: Any) -> Iterator[Callable[..., Any]]:
    """``show(report, width)`` is the page; it requests nothing else and logs nothing."""
    wrong: list[str] = []
    contexts = []

    def page_of(
        report: Report | str,
        width: int = 1280,
        height: int = 800,
        fragment: str = "",
        **options: Any,
    ) -> Any:
        text = report if isinstance(report, str) else render_report("html", report)
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
        page.on(
            "request",
            lambda one: wrong.append(one.url) if one.url.partition("#")[0] != WHERE else None,
        )
        page.on(
            "console",
            lambda one: wrong.append(one.text) if one.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda one: wrong.append(str(one)))
        page.on("dialog", lambda one: (wrong.append(one.message), one.dismiss()))
        page.goto(WHERE + fragment)
        return page

    yield page_of
    for context in contexts:
        context.close()
    assert wrong == []


def good(count: int, path: str = "specs/good.grad.yaml") -> list[Any]:
    return [result(f"good-{k}", Status.PASS, path=path) for k in range(count)]


def of_two_files() -> Report:
    """A failure with tags, others of one cause, and passes of another file and backend."""
    failed = result("tagged", Status.FAIL, "unlike the others")
    other = result(
        "elsewhere",
        Status.PASS,
        path="specs/b.grad.yaml",
        backend="paddle",
        name="elsewhere@paddle",
    )
    tagged = (
        scenario("tagged", title="A title", tags=("smooth", "slow")),
        scenario("good-1", title="", tags=("slow",)),
    )
    return Report(results=(failed, *of_one_cause(3), *good(3), other), cases=tagged)


def names(page: Any) -> list[str]:
    """The cases that a reader sees."""
    seen = page.locator("li.case:visible").evaluate_all("(all) => all.map((one) => one.id)")
    return [name.partition("@")[0] for name in seen]


def settled(page: Any) -> None:
    """Wait for the next frame: what was typed or chosen has been looked for then."""
    page.evaluate("new Promise((done) => requestAnimationFrame(done))")


# --------------------------------------------------------------------------- layout
def test_with_400_cases_the_first_failure_and_its_cause_are_on_the_first_screen(show) -> None:
    page = show(
        Report(
            results=(*good(200), *of_one_cause(1), *good(199, "specs/more.grad.yaml")),
            command=("run",),
        )
    )
    for part in (".case[data-status=FAIL] summary", ".cause", ".excerpt code"):
        box = page.locator(part).first.bounding_box()
        assert 0 <= box["y"] < box["y"] + box["height"] <= 800


SIDEWAYS = """() => [...document.querySelectorAll("body, body *")].filter((one) => {
  const box = one.getBoundingClientRect();
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  const overflows = scrolls && one.scrollWidth > one.clientWidth;
  return box.width && (Math.floor(box.right) > innerWidth || overflows);
}).map((one) => one.outerHTML.slice(0, 200))"""


def test_on_a_phone_nothing_scrolls_sideways(show) -> None:
    long = "a" * 300
    entries = tuple(wrong(10**9 + k, -1.2345678e-300, 1e-300) for k in range(9))
    found = result(long, Status.FAIL, long, path=f"{long}.grad.yaml", gradient=REPORT.results[1].gradient)
    many = result("many", Status.FAIL, long, gradient=gradient(wrong=entries, wrong_counts={"x": (9, 10**10)}))
    named = scenario(long, title=long, tags=(long[:50], "t"), document=long, url=f"https://{long}")
    report = Report(
        results=(*REPORT.results, found, many, *of_one_cause(2)),
        cases=(named,),
        command=("run", long),
    )
    page = show(report, 360, 740)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(SIDEWAYS) == []


def test_the_matrix_of_releases_fits_a_phone_too(show) -> None:
    cases = plan(
        load([bundled_specs() / "documents" / "backward-rules.grad.yaml"]),
        [f"paddle@{release}" for release in release_paths()],
    )
    cases = with_recorded_deviations(cases)
    files = {f"paddle@{release}": read_release(path) for release, path in release_paths().items()}
    results = [result_as_recorded(case, files[case.backend]) for case in cases]
    report = Report(results=tuple(results), cases=tuple(cases), matrix=make_page_part(cases, results))
    for text in (
        render_report("html", report),
        as_html(build_matrix(load_catalogue(), cases, report.results)),
    ):
        page = show(text, 360, 740)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.locator(".matrix td").count() > 50
        assert page.evaluate(SIDEWAYS) == []


CONTRASTS = """() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((c, k) => a * c + (1 - a) * below[k]);
  const ground = (one) => one === null ? numbers(getComputedStyle(document.body).backgroundColor)
    : over(numbers(getComputedStyle(one).backgroundColor), ground(one.parentElement));
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = {};
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const one = text.parentElement;
    if (!text.data.trim() || !one.checkVisibility() || one.closest("svg, .key i")) continue;
    const colors = [numbers(getComputedStyle(one).color), ground(one)];
    const pair = colors.map(light).sort((a, b) => b - a);
    found[text.data.trim().slice(0, 40)] = (pair[0] + 0.05) / (pair[1] + 0.05);
  }
  return found;
}"""
LEAST_CONTRAST = 4.5
"""Of text and what it stands on: WCAG 2.2, 1.4.3."""


def test_all_text_can_be_read_in_light_and_dark(show) -> None:
    page = show(REPORT)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    grounds = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        found = page.evaluate(CONTRASTS)
        assert len(found) > 30
        assert {text: contrast for text, contrast in found.items() if contrast < LEAST_CONTRAST} == {}
    assert len(grounds) == 2


@pytest.mark.parametrize(("ink", "paper"), [("#000", "#fff"), ("#ddd", "#111")])
def test_results_in_a_notebook_can_be_read_in_light_and_dark(show, ink: str, paper: str) -> None:
    verdicts = [Status.PASS, Status.KINK, Status.FAIL, Status.INCONCLUSIVE]
    found = [CheckResult.of(gradient(verdict=one, wrong=(wrong(),), why="<b>too</b> noisy")) for one in verdicts]
    style = f"body {{ color: {ink}; background: {paper} }}"
    head = f"<!doctype html><title>t</title><style>{style}</style>"
    page = show(head + "".join(one._repr_html_() for one in found))
    contrasts = page.evaluate(CONTRASTS)
    assert {*map(str, verdicts)} < {*contrasts}
    assert min(contrasts.values()) >= LEAST_CONTRAST
    assert page.locator("pre b").count() == 0


def test_printed_it_shows_every_failure_and_no_controls(show) -> None:
    page = show(of_two_files())
    page.emulate_media(media="print")
    assert not page.locator(".by").is_visible()
    assert page.locator("button.copy:visible").count() == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    closed = "#failures .case > details:not([open])"
    assert page.locator(closed).count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(closed).count() == 3


# --------------------------------------------------------------------------- looking for something
def test_a_part_of_the_bar_shows_its_cases_alone_and_again_all(show) -> None:
    page = show(of_two_files())
    before = names(page)
    part = page.get_by_role("button", name="4 PASS")
    part.click()
    assert names(page) == ["good-0", "good-1", "good-2", "elsewhere"]
    assert part.get_attribute("aria-pressed") == "true"
    assert page.locator("output").inner_text() == "4 of 8 cases"
    part.click()
    assert part.get_attribute("aria-pressed") == "false"
    assert names(page) == before


def test_a_choice_shows_what_has_it_though_it_was_folded(show) -> None:
    page = show(of_two_files())
    for name, value, found in [
        ("backend", "paddle", ["elsewhere"]),
        ("file", "specs/b.grad.yaml", ["elsewhere"]),
        ("tag", "smooth", ["tagged"]),
        ("tag", "slow", ["tagged", "good-1"]),
    ]:
        page.get_by_label(name, exact=True).select_option(value)
        settled(page)
        assert names(page) == found
        page.get_by_label(name, exact=True).select_option("")


def test_a_search_looks_in_names_messages_and_lines_and_is_undone(show) -> None:
    page = show(of_two_files())
    before = names(page)
    search = page.get_by_role("searchbox")
    for looked, found in {
        "GOOD-2": ["good-2"], "unlike": ["tagged"], "own.py:7": ["wrong-0", "wrong-1", "wrong-2"],
        "no such": [],
    }.items():  # fmt: skip
        search.fill(looked)
        settled(page)
        assert names(page) == found
    page.get_by_role("button", name="clear").click()
    settled(page)
    assert names(page) == before


def test_search_and_filters_stay_on_the_screen(show) -> None:
    page = show(Report(results=tuple(of_one_cause(50))))
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.evaluate("scrollTo(0, 3000)")
    assert page.evaluate("scrollY") > 1000
    assert page.get_by_role("searchbox").bounding_box()["y"] < 100


# --------------------------------------------------------------------------- links
def test_a_link_to_a_case_opens_it(show) -> None:
    odd = result("odd", Status.FAIL, "m", name="odd/n=2,dtype=float32@numpy")
    page = show(Report(results=(*of_one_cause(3), odd, *good(40))), fragment="#wrong-2@numpy")
    for name in ("wrong-2@numpy", "good-1@numpy", odd.name):
        page.goto(f"{WHERE}#{name}")
        box, filters = (page.locator(f'[id="{one}"]').bounding_box() for one in (name, "filter"))
        assert filters["y"] + filters["height"] <= box["y"] < 800  # below what sticks to the top
        assert page.locator(f'[id="{name}"] > details:not([open])').count() == 0


def test_the_command_and_the_link_are_copied(show) -> None:
    page = show(Report(results=tuple(of_one_cause(1))), permissions=["clipboard-read", "clipboard-write"])
    for button, copied in {
        0: "gradcheck run wrong-0@numpy -v",
        -1: f"{WHERE}#wrong-0@numpy",
    }.items():
        page.locator("button.copy").nth(button).click()
        page.get_by_text("copied").nth(0 if button == 0 else 1).wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == copied


# --------------------------------------------------------------------------- keys, no JavaScript
def test_everything_can_be_done_with_keys(show) -> None:
    page = show(of_two_files())
    focused = "document.activeElement.textContent"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "4 FAIL"
    page.keyboard.press("Enter")
    assert names(page) == ["wrong-0", "wrong-1", "wrong-2", "tagged"]
    page.keyboard.press("/")
    page.keyboard.type("tagged/")  # within it a letter as others
    assert page.get_by_role("searchbox").input_value() == "tagged/"
    page.keyboard.press("Backspace")
    settled(page)
    while "tagged" not in page.evaluate(focused):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.get_by_text("A title").is_visible()


def test_without_javascript_everything_can_be_read(show) -> None:
    page = show(of_two_files(), java_script_enabled=False)
    assert page.locator(".counts").inner_text().split("\n") == ["4 FAIL", "4 PASS"]
    assert page.locator("input:visible, select:visible, button.copy:visible").count() == 0
    for folded in page.locator("summary").all():
        if folded.is_visible() and not folded.locator("..").get_attribute("open"):
            folded.click()
    assert len(names(page)) == 8
    assert page.get_by_text("elsewhere@paddle").is_visible()


def test_what_a_layer_says_does_nothing(show) -> None:
    page = show(
        Report(results=(result("n", Status.ERROR, NASTY, name=NASTY),)),
        fragment="#" + "%22%3E<script>alert(1)",
    )
    page.get_by_role("searchbox").fill("<script>alert(1)</script>")
    settled(page)
    assert len(names(page)) == 1
