"""The system's Chromium without a window, and what its pages show and ask for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FOUND = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
LIMIT_MS = 60_000

# textual.js keeps its terminal to itself: it is caught when it gets its address.
CATCH_TERMINAL = """
Object.defineProperty(Object.prototype, "websocket_url", {
  configurable: true,
  set(url) {
    window.caught = this;
    Object.defineProperty(this, "websocket_url", { value: url, writable: true });
  },
});
window.screenText = () => {
  const terminal = window.caught?.terminal, lines = [];
  for (let row = 0; row < (terminal?.rows ?? 0); row++) {
    lines.push(terminal.buffer.active.getLine(row)?.translateToString(true) ?? "");
  }
  return lines.join("\\n");
};
"""


class Page:
    """A tab. What it asks for, and what goes wrong in it, is kept."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.requests: list[str] = []
        self.errors: list[str] = []
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.on("websocket", lambda socket: self.requests.append(socket.url))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", self._console)
        tab.add_init_script(CATCH_TERMINAL)

    @property
    def text(self) -> str:
        """What its terminal shows, a line per row."""
        return str(self.tab.evaluate("screenText()"))

    def see(self, text: str, gone: bool = False) -> None:
        """Wait until its terminal shows that, or does not any more."""
        try:
            self.wait("([text, gone]) => screenText().includes(text) !== gone", [text, gone])
        except Exception as error:
            raise AssertionError(f"no {text!r} {gone=} on\n{self.text}\n{self.errors}") from error

    def wait(self, function: str, argument: object = None) -> None:
        """Wait until that function of JavaScript says true of the argument."""
        self.tab.wait_for_function(function, arg=argument, timeout=LIMIT_MS)

    def press(self, key: str) -> None:
        self.tab.keyboard.press(key)

    def _console(self, message: Any) -> None:
        # The terminal also warns of a machine that is slow.
        is_slow = message.text.startswith("task queue exceeded allotted deadline")
        if message.type in ("error", "warning") and not is_slow:
            self.errors.append(message.text)


class Browser:
    """A browser with a profile that is new."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def open(self, url: str) -> Page:
        """A tab with that page."""
        page = Page(self._context.new_page())
        page.tab.goto(url, timeout=LIMIT_MS)
        return page


@contextmanager
def chromium(profile: Path, *flags: str) -> Iterator[Browser]:
    """A browser, which is gone at the end. The test is skipped where there is none."""
    if FOUND is None:
        pytest.skip(f"no Chromium here: none of {', '.join(NAMES)} in PATH")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            profile,
            executable_path=FOUND,
            headless=True,
            args=[*FLAGS, *flags],
            viewport={"width": 1280, "height": 800},
            env={**os.environ, "HOME": str(profile)},
            timeout=LIMIT_MS,
        )
        try:
            yield Browser(context)
        finally:
            context.close()
