"""The panel of notebooks in a real browser: nothing is broken or cut at 800 pixels, in the dark or
in the light."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import snapshots
from support.browsers import Browser, chromium

from tpusmi.model import Snapshot
from tpusmi.report.html import fragment

WIDTH = 800
THEMES = {
    "light": "background:#fff;color:#212121",
    "dark": "background:#383838;color:#d5d5d5",  # Colab's, with the least contrast of the dark ones
}
CELLS = """() => [...document.querySelectorAll(".tpusmi td:not([colspan]), .tpusmi th")].map(e => ({
  text: e.textContent,
  is_command: e.classList.contains("c"),
  lines: e.getClientRects().length === 0 ? 0 :
    Math.round((e.clientHeight) / parseFloat(getComputedStyle(e).lineHeight)),
  cut: e.scrollWidth > e.clientWidth,
  right: e.getBoundingClientRect().right,
}))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


def page_of(browser: Browser, path: Path, panel: str, theme: str) -> Any:
    """A tab of that width with the panel alone, as the output of a cell has it."""
    style = f"<style>body{{margin:8px;{THEMES[theme]}}}</style>"
    path.write_text(f"<!doctype html><meta charset=utf-8>{style}{panel}", encoding="utf-8")
    tab = browser.open(path.as_uri()).tab
    tab.set_viewport_size({"width": WIDTH, "height": 600})
    return tab


MOMENTS: dict[str, Callable[[], Snapshot]] = {
    "everything": snapshots.everything,
    "a machine": snapshots.machine,
    "eight": lambda: snapshots.many(8),
    "a heat map": lambda: snapshots.many(40),
}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ended", [False, True], ids=["live", "ended"])
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_no_cell_but_a_command_is_broken_or_cut_at_800_pixels(
    browser: Browser, tmp_path: Path, theme: str, ended: bool, moment: Callable[[], Snapshot]
) -> None:
    standing = "stopped at 12:00:00" if ended else "live, every 1 s"
    panel = fragment(moment(), standing, ended=ended)
    tab = page_of(browser, tmp_path / "panel.html", panel, theme)
    cells = tab.evaluate(CELLS)
    assert len(cells) > 10
    assert [c for c in cells if c["lines"] > 1] == []
    assert [c for c in cells if c["cut"] and not c["is_command"]] == []
    assert [c for c in cells if c["right"] > WIDTH] == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= WIDTH
    commands = [c for c in cells if c["is_command"]]
    assert commands
    tab.close()


def test_a_long_command_ends_in_an_ellipsis_and_is_whole_in_its_title(
    browser: Browser, tmp_path: Path
) -> None:
    s = snapshots.everything()
    long = "python train.py " + " ".join(f"--option-{n}=value" for n in range(20))
    processes = (s.processes[0]._replace(command=long), *s.processes[1:])
    panel = fragment(s._replace(processes=processes))
    tab = page_of(browser, tmp_path / "panel.html", panel, "light")
    (cell,) = [c for c in tab.evaluate(CELLS) if c["is_command"] and c["cut"]]
    assert cell["lines"] == 1
    assert cell["right"] <= WIDTH
    assert (
        tab.evaluate("getComputedStyle(document.querySelector('td.c')).textOverflow") == "ellipsis"
    )
    assert tab.query_selector(f'td[title="{cell["text"]}"]') is not None
    tab.close()
