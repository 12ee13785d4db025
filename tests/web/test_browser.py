"""The dashboard in a real browser."""

from __future__ import annotations

import http.server
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.browsers import Browser, chromium
from support.waits import until
from support.web_servers import LIMIT_S, Serving, serving

from tpusmi.model import Host
from tpusmi.simulate.host import HostPlan, start

END = "End selected or tagged"
"""In the help of a dashboard that can."""

DEVICES = [f"tpu:{n}" for n in range(8)]
NAME = "elsewhere.example"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """It takes every name of that domain for this machine, as an attacker's DNS would have it."""
    rule = f"--host-resolver-rules=MAP *.{NAME} 127.0.0.1"
    with chromium(tmp_path_factory.mktemp("profile"), rule) as found:
        yield found


@pytest.fixture(scope="module")
def host(browser: Browser) -> Iterator[Host]:
    with start(HostPlan("v5e-8")) as found:
        yield found


@pytest.fixture
def server(tmp_path: Path, host: Host) -> Iterator[Serving]:
    with serving(tmp_path, "--simulate", host.root) as found:
        yield found


@contextmanager
def page_of_somebody_else(html: str) -> Iterator[str]:
    """The address of a server with that page alone."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_it_draws_the_devices_and_asks_for_nothing_from_elsewhere(
    browser: Browser, server: Serving
) -> None:
    page = browser.open(server.url)
    page.see(DEVICES[-1])
    assert all(device in page.text for device in DEVICES)
    assert "SIMULATED" in page.text
    ours = (f"http://127.0.0.1:{server.port}/", f"ws://127.0.0.1:{server.port}/", "data:")
    assert [url for url in page.requests if not url.startswith(ours)] == []
    assert any(url.startswith(f"ws://127.0.0.1:{server.port}/ws") for url in page.requests)
    assert page.errors == []
    page.tab.close()


def test_it_draws_in_color_with_the_font_that_it_brought(browser: Browser, server: Serving) -> None:
    page = browser.open(server.url)
    page.see(DEVICES[0])
    page.wait("() => document.fonts.check(\"14px 'Roboto Mono'\")")
    row = next(n for n, line in enumerate(page.text.splitlines()) if DEVICES[0] in line)
    colors = page.tab.evaluate(
        """(row) => {
          const line = caught.terminal.buffer.active.getLine(row), found = new Set();
          for (let x = 0; x < line.length; x++) found.add(line.getCell(x).getFgColor());
          return [...found];
        }""",
        row,
    )
    assert len(colors) >= 2
    page.tab.close()


def test_a_theme_has_its_background(browser: Browser, host: Host, tmp_path: Path) -> None:
    margin = "(color) => getComputedStyle(document.body).backgroundColor === color"
    with serving(tmp_path, "--simulate", host.root, "--theme", "light") as server:
        page = browser.open(server.url)
        page.see(DEVICES[0])
        page.wait(margin, "rgb(238, 238, 238)")
        page.press("F2")
        page.see("Columns of processes")
        page.press("End")
        page.see("light")
        for theme, color in (("colorblind", "rgb(38, 38, 38)"), ("ansi", "rgb(0, 0, 0)")):
            page.press("Space")
            page.see(theme)
            page.wait(margin, color)
        page.tab.close()


def test_keys_reach_it_without_a_click(browser: Browser, server: Serving) -> None:
    page = browser.open(server.url)
    page.see(DEVICES[0])
    page.press("?")
    page.see("Help of")
    page.press("Escape")
    page.see("Help of", gone=True)
    page.tab.close()


def test_it_is_drawn_anew_in_another_size(browser: Browser, server: Serving) -> None:
    page = browser.open(server.url)
    page.see(DEVICES[0])
    before = page.tab.evaluate("caught.terminal.cols")
    page.tab.set_viewport_size({"width": 700, "height": 420})
    page.wait("(before) => caught.terminal.cols < before", before)
    # Its last line is the last one of the new size.
    page.wait("() => /\\bQuit\\b/.test(screenText().split('\\n').at(-1))")
    assert page.tab.evaluate("caught.terminal.rows") == len(page.text.splitlines())
    assert DEVICES[0] in page.text
    page.tab.close()


def test_each_tab_has_its_own_dashboard_which_ends_with_it(
    browser: Browser, server: Serving
) -> None:
    first, second = browser.open(server.url), browser.open(server.url)
    for page in (first, second):
        page.see(DEVICES[0])
    until(lambda: len(server.dashboards) == 2, LIMIT_S, "each has its own")
    first.tab.close()
    until(lambda: len(server.dashboards) == 1, LIMIT_S, "the first ends")
    second.tab.goto("about:blank")
    until(lambda: server.dashboards == [], LIMIT_S, "the second ends")
    second.tab.close()


def test_after_q_a_button_starts_another(browser: Browser, server: Serving) -> None:
    page = browser.open(server.url)
    page.see(DEVICES[0])
    assert not page.tab.is_visible("#again")
    page.press("q")
    page.tab.wait_for_selector("#again", state="visible")
    until(lambda: server.dashboards == [], LIMIT_S, "it ends")
    page.tab.click("#again")
    page.see(DEVICES[0])
    page.tab.close()


def test_an_open_page_is_told_of_its_servers_end(browser: Browser, server: Serving) -> None:
    page = browser.open(server.url)
    page.see(DEVICES[0])
    assert server.end(signal.SIGTERM) == 0
    assert server.processes == []
    page.tab.wait_for_selector("#again", state="visible")
    page.tab.close()


def test_a_browser_only_looks(browser: Browser, server: Serving) -> None:
    page = browser.open(server.url)
    page.see(DEVICES[0])
    page.press("k")
    page.press("?")
    page.see("Help of")
    assert END not in page.text
    page.tab.close()


def test_with_allow_kill_it_really_ends_a_process(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "v5e-8", "--allow-kill") as server:
        page = browser.open(server.url)
        page.see("train.py")
        page.press("?")
        page.see(END)
        page.press("Escape")
        page.see(END, gone=True)  # Escape and k in one breath are Alt-k
        page.press("k")
        page.see("End pid")
        page.press("t")  # a job that is not stale: the choice is Cancel
        page.press("Enter")
        page.see("ended by SIGTERM")
        page.tab.close()


def test_a_page_of_somebody_elses_cannot_open_a_dashboard(
    browser: Browser, server: Serving
) -> None:
    html = f"""<script>
      const socket = new WebSocket("ws://127.0.0.1:{server.port}/ws?width=80&height=24");
      socket.onopen = () => document.title = "opened";
      socket.onerror = () => document.title = "refused";
    </script>"""
    with page_of_somebody_else(html) as url:
        page = browser.open(url)
        page.wait("() => document.title !== ''")
        assert page.tab.title() == "refused"
        page.tab.close()
    assert server.dashboards == []


def test_nor_under_a_name_that_it_has_given_this_machine(browser: Browser, server: Serving) -> None:
    page = browser.open(f"http://rebound.{NAME}:{server.port}/")
    assert "does not answer to this name" in page.tab.inner_text("body")
    page.tab.close()


def test_nor_show_one_in_a_frame_of_its_own(browser: Browser, server: Serving) -> None:
    with page_of_somebody_else(f'<iframe src="{server.url}"></iframe>') as url:
        page = browser.open(url)
        until(lambda: page.tab.title() is not None and page.errors, LIMIT_S, "it is refused")
        assert "frame-ancestors" in page.errors[0]
        page.tab.close()
    assert server.dashboards == []
