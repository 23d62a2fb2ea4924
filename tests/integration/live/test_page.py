"""The live page in a real browser: what it shows of a job, by mouse, keyboard, in dark and light, wide and narrow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.integration.live.browsing import job, page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SHOWS_RATE = "() => [...document.querySelectorAll('#graph .rate')].some(each => /^[1-9]/.test(each.textContent))"
NOT_BLANK = "() => document.querySelectorAll('#graph .node').length > 10"
WIDTHS = "() => [document.documentElement.scrollWidth, innerWidth]"


def keep(shown: Any, name: str) -> None:
    """Keep a picture of the page where LIVE_PICTURES names a directory, to be looked at."""
    directory = os.environ.get("LIVE_PICTURES")
    if directory:
        shown.screenshot(path=str(Path(directory) / f"{name}.png"))


def test_the_page_shows_what_a_job_of_two_processes_does() -> None:
    with job("-n", "2", "-w", "2", program="hops.py", seconds="100") as (_, address), page(address) as shown:
        shown.wait_for_function(SHOWS_RATE)
        assert "token" not in shown.url
        assert shown.locator("#connection").inner_text() == "live"
        assert shown.locator("#workers tbody tr").count() == 4
        assert shown.locator("#graph .scope.loop").count() == 1
        names = shown.locator("#graph .node text:first-of-type").all_text_contents()
        assert {"edges", "join_map", "min", "count", "concat"} <= set(names)
        notes = shown.locator("#notes").inner_text()
        assert "UserWarning" in notes
        assert "an edge is <b>odd</b>" in notes
        assert "token" not in notes
        shown.wait_for_function("() => document.querySelector('#latency-note').textContent.includes('median')")
        assert shown.locator("#latency canvas").count() == 1
        frontier = "() => [...document.querySelectorAll('#graph .more')].map(each => each.textContent).join()"
        before = shown.evaluate(frontier)
        shown.wait_for_function(f"before => ({frontier})() !== before", arg=before)
        keep(shown, "wide-light")


def test_clicking_shows_an_operator_on_each_worker_and_closes_a_loop() -> None:
    with job("-w", "2", program="hops.py", seconds="100") as (_, address), page(address) as shown:
        shown.wait_for_function(SHOWS_RATE)
        shown.get_by_role("button", name="join_map", exact=True).click()
        shown.wait_for_selector("#detail tbody tr:nth-child(2)")
        assert shown.locator("#detail tbody tr").count() == 2
        assert "hops.py:" in shown.locator("#detail .origin").inner_text()
        keep(shown, "operator")
        boxes = shown.locator("#graph .node").count()
        shown.get_by_role("button", name="loop bfs").click(position={"x": 10, "y": 10})
        shown.wait_for_selector('[aria-expanded="false"]')
        assert shown.locator("#graph .node").count() < boxes
        keep(shown, "closed")
        shown.get_by_role("button", name="loop bfs").click()
        shown.wait_for_selector('[aria-expanded="true"]')
        assert shown.locator("#graph .node").count() == boxes
        shown.get_by_role("button", name="queued").click()
        assert shown.locator("#operators th[aria-sort]").inner_text() == "queued"


def test_the_keyboard_reaches_everything() -> None:
    with job("-w", "2", program="hops.py", seconds="100") as (_, address), page(address) as shown:
        shown.wait_for_function(SHOWS_RATE)
        focused = "() => document.activeElement.getAttribute('aria-label') || document.activeElement.id"
        shown.keyboard.press("g")
        seen = set()
        for _ in range(8):
            seen.add(shown.evaluate(focused))
            shown.keyboard.press("ArrowDown")
        assert len(seen) >= 6, seen
        shown.keyboard.press("/")
        assert shown.evaluate(focused) == "find"
        shown.keyboard.type("join")
        shown.keyboard.press("Enter")
        shown.wait_for_function(f"() => ({focused})() === 'join_map'")
        shown.keyboard.press("Enter")
        shown.wait_for_selector("#detail tbody tr")
        assert shown.locator("#detail-title").inner_text() == "join_map"
        shown.keyboard.press("Escape")
        assert shown.locator("#detail-panel").is_hidden()
        shown.keyboard.press("?")
        assert shown.locator("#keys").is_visible()
        shown.keyboard.press("Escape")
        assert shown.locator("#keys").is_hidden()
        shown.keyboard.press("t")
        assert shown.evaluate("() => document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize(("width", "height", "scheme"), [(1280, 800, "dark"), (390, 844, "light"), (390, 844, "dark")])
def test_it_fits_and_can_be_read_in_dark_and_light_on_a_phone_too(width: int, height: int, scheme: str) -> None:
    touch = {"has_touch": True, "is_mobile": True, "device_scale_factor": 2} if width < 500 else {}
    with (
        job("-w", "2", program="hops.py", seconds="100") as (_, address),
        page(address, width, height, scheme, **touch) as shown,
    ):
        shown.wait_for_function(SHOWS_RATE)
        content, window = shown.evaluate(WIDTHS)
        assert content <= window, f"the page is {content} wide in a window of {window}"
        assert shown.evaluate("() => document.documentElement.dataset.theme") == scheme
        ratios = shown.evaluate(CONTRASTS)
        assert min(ratios.values()) >= 4.5, ratios
        keep(shown, f"{width}-{scheme}")
        rows = shown.evaluate("() => document.querySelector('header').offsetHeight")
        shown.evaluate("() => { document.querySelector('#dataflow').options[0].text = 'of a long name '.repeat(9); }")
        assert shown.evaluate("() => document.documentElement.scrollWidth") <= width, "a long name makes the page wide"
        assert shown.evaluate("() => document.querySelector('header').offsetHeight") <= rows + 4, "or its head high"
        if touch:
            shown.get_by_role("button", name="min", exact=True).tap()
            shown.wait_for_selector("#detail tbody tr")


CONTRASTS = """() => {
  const colour = text => text.match(/[0-9.]+/g).slice(0, 3).map(each => {
    const part = each / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
  const behind = element => {
    for (; element; element = element.parentElement) {
      const found = getComputedStyle(element).backgroundColor;
      if (!found.endsWith(", 0)")) return found;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (front, back) => {
    const [a, b] = [light(colour(front)), light(colour(back))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const found = {};
  const texts = ["h1", "h2", "#summary", "#connection", "th", "td", "td.text", "button", "#notes b", "#notes time"];
  for (const selector of texts) {
    const element = document.querySelector(selector);
    found[selector] = ratio(getComputedStyle(element).color, behind(element));
  }
  for (const selector of ["svg text", "svg .small"]) {
    const element = document.querySelector(selector), box = document.querySelector("#graph .base");
    found[selector] = ratio(getComputedStyle(element).fill, getComputedStyle(box).fill);
  }
  return found;
}"""


def test_it_shows_who_holds_a_frontier_that_does_not_move() -> None:
    with job("-n", "2", program="hops.py", seconds="3") as (_, address), page(address) as shown:
        shown.wait_for_selector("#held-panel:not([hidden]) li", timeout=60_000)
        text = shown.locator("#held").inner_text()
        assert "waits for edges.advance_to(" in text
        assert "hops.py:" in text
        assert "worker 1 (process 1)" in text
        keep(shown, "held")


def test_500_operators_on_8_workers_are_shown_and_move() -> None:
    with job("-n", "2", "-w", "4", program="many.py", seconds="150") as (_, address), page(address) as shown:
        shown.wait_for_function("() => document.querySelectorAll('#graph .scope').length === 11")
        shown.wait_for_function(SHOWS_RATE)
        assert shown.locator("#workers tbody tr").count() == 8
        keep(shown, "many-closed")
        shown.get_by_role("button", name="Open all").click()
        shown.wait_for_function("() => document.querySelectorAll('#graph .node').length > 500", timeout=60_000)
        shown.wait_for_function(SHOWS_RATE)
        keep(shown, "many-open")


def test_of_a_session_a_view_is_shown_first_and_then_what_is_chosen() -> None:
    chosen = "() => document.querySelector('#dataflow').selectedOptions[0].text"
    with job(program="database.py", seconds="100") as (_, address), page(address) as shown:
        shown.wait_for_function(SHOWS_RATE)
        assert "counts" in shown.evaluate(chosen)
        assert {"count", "filter"} <= set(shown.locator("#graph .node text:first-of-type").all_text_contents())
        keep(shown, "session")
        shown.locator("#dataflow").select_option("0")
        shown.wait_for_timeout(1500)
        assert shown.evaluate(chosen) == "0: session"


def test_a_run_that_ends_is_shown_as_ended_and_stays_in_view() -> None:
    with job(program="hops.py", seconds="30", more=("end",)) as (run, address), page(address) as shown:
        shown.wait_for_function(SHOWS_RATE)
        run.end(60)
        shown.wait_for_function("() => document.querySelector('#connection').textContent.includes('has ended')")
        assert shown.evaluate(NOT_BLANK)
