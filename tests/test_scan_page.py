"""The page of `scan --html`: as text, and as a real browser shows it."""

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support import Guard
from tests.transcripts import Claude, Codex

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
HOSTILE = '</pre><script>document.title = "broken out"</script><img src="http://192.0.2.1/x.png">\u202e"\' onclick=x'
HARNESS = """<!doctype html><title>waiting</title>
<iframe id="frame" style="width:WIDTHpx;height:900px;border:0" src="page.html"></iframe>
<script>
frame.onload = () => {
  const page = frame.contentDocument, all = name => [...page.querySelectorAll(name)];
  const box = one => { const b = one.getBoundingClientRect(); return [b.left, b.right, b.height].map(Math.round) };
  const closed = all("details").map(one => box(one)[2]);
  all("details").forEach(one => { one.open = true });
  document.title = "seen " + JSON.stringify({
    title: page.title, width: page.documentElement.scrollWidth, elements: all("script, img, link, iframe").length,
    bars: all(".calls a").map(box), closed: closed, opened: all("details").map(one => box(one)[2]),
    ink: frame.contentWindow.getComputedStyle(page.querySelector(".calls a")).backgroundColor,
    loaded: frame.contentWindow.performance.getEntriesByType("resource").length,
    targets: all(".half a").every(one => page.querySelector(one.getAttribute("href"))),
    text: page.body.innerText,
  });
};
</script>
"""


def page(guard: Guard) -> Path:
    lines = Claude("s1")
    for tool, times in ((HOSTILE, 5), ("Read", 3)):
        for _ in range(times):
            lines.call(tool, {"path": HOSTILE}, tokens=1_000)
    lines.write(guard.home / "t/one.jsonl")
    rollout = Codex()
    for number in range(4):
        rollout.call("write_stdin", {"session_id": 1, "chars": ""}, str(number), tokens=500)
    rollout.write(guard.home / "t/two.jsonl")
    path = guard.home / "page.html"
    result = guard.run("scan", str(guard.home / "t"), "--html", str(path))
    assert (result.code, result.err) == (0, "")
    assert str(path) in result.out
    return path


class Checked(HTMLParser):
    """Collects what could load or run something, and sees that elements are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.suspect: list[Any] = []
        self.details = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.details += tag == "details"
        if tag in ("script", "img", "link", "iframe", "object"):
            self.suspect.append(tag)
        self.suspect += [(name, value) for name, value in attrs if name.startswith("on") or name in ("src", "srcset")]
        self.suspect += [value for name, value in attrs if name == "href" and not (value or "").startswith("#run-")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_harmless(guard: Guard) -> None:
    text = page(guard).read_text()
    checked = Checked()
    checked.feed(text)
    assert (checked.open, checked.suspect, checked.details) == ([], [], 3)
    assert "\u202e" not in text
    assert not re.search(r"url\(|@import|https?://(?!192\.0\.2\.1/x\.png)", text)


def test_a_page_with_nothing_on_it(guard: Guard) -> None:
    lines = Claude()
    lines.call()
    path = guard.home / "page.html"
    assert guard.run("scan", str(lines.write(guard.home / "one.jsonl")), "--html", str(path)).code == 0
    assert "Nothing to see" in path.read_text()
    assert "<details" not in path.read_text()


@pytest.mark.skipif(not BROWSER and not os.environ.get("CI"), reason="no chromium is installed")
@pytest.mark.parametrize("width", [1_200, 360])
def test_in_a_browser(width: int, guard: Guard) -> None:
    """At the width of a desktop and of a phone: nothing sticks out, bars are there, and every run opens."""
    assert BROWSER, "no chromium is installed"
    page(guard)
    harness = guard.home / "harness.html"
    harness.write_text(HARNESS.replace("WIDTH", str(width)))
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        "--window-size=1300,1000",
    ]
    options += [f"--user-data-dir={guard.home / 'profile'}", "--virtual-time-budget=10000", "--dump-dom"]
    done = subprocess.run(
        [BROWSER, *options, harness.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        env=guard.environment,
        check=True,
    )
    match = re.search(r"<title>seen (.*?)</title>", done.stdout, re.DOTALL)
    assert match, done.stdout[:500] + done.stderr[-500:]
    seen = json.loads(match[1].replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ").replace("&amp;", "&"))
    assert (seen["title"], seen["elements"], seen["loaded"]) == ("Repeated tool calls", 0, 0)
    assert seen["width"] <= width
    assert len(seen["bars"]) == 3
    assert all(left >= 0 and right <= width and height >= 3 for left, right, height in seen["bars"])
    assert seen["ink"] not in ("", "rgba(0, 0, 0, 0)")
    assert seen["targets"]
    assert all(0 < closed < opened for closed, opened in zip(seen["closed"], seen["opened"], strict=True))
    assert "<script>" in seen["text"], "shown as text"
