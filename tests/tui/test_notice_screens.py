"""Each notice on small screens: its marks, the notices and details, and the pages it is about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.dashboards import dashboard, press, screen_text
from support.goldens import same_as_golden
from support.notice_feeds import AGE_S, MAKERS, OTHER, PID, moment
from textual.pilot import Pilot

from tpusmi.model import History, Snapshot

GOLDENS = Path(__file__).parent / "goldens" / "notice"
SIZES = [(80, 24), (120, 35), (40, 10)]


class Moments:
    """A feed that tells one moment until it is given another."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.now, self.history = snapshot, History()

    def snapshot(self) -> Snapshot:
        """The moment."""
        return self.now


@pytest.mark.parametrize("size", SIZES, ids=[f"{w}x{h}" for w, h in SIZES])
async def test_each_notice(pictured: None, size: tuple[int, int]) -> None:
    texts, feed = [], Moments(moment("throttled"))
    async with dashboard(feed, size) as pilot:
        for case in MAKERS:
            feed.now = moment(case)
            await press(pilot, "r")
            texts.append(f"== {case}\n{_screen(pilot)}\n")
    same_as_golden("".join(texts), GOLDENS / f"each_notice-{size[0]}x{size[1]}.txt")


@pytest.mark.parametrize("key", ["d", "j"])
@pytest.mark.parametrize("size", SIZES[:1], ids=["80x24"])
async def test_the_pages_of_it(pictured: None, size: tuple[int, int], key: str) -> None:
    texts, feed = [], Moments(moment("throttled"))
    async with dashboard(feed, size) as pilot:
        await press(pilot, key, *["tab"] * (key == "d"))
        for case in ("throttled", "ici_link", "stale_holder", "silent_server", "unused"):
            feed.now = moment(case)
            await press(pilot, "r")
            head = "\n".join(_screen(pilot).splitlines()[:14])
            texts.append(f"== {case}\n{head}\n")
    same_as_golden("".join(texts), GOLDENS / f"the_pages_of_it-{key}-80x24.txt")


def _screen(pilot: Pilot[None]) -> str:
    return "\n".join(line.rstrip() for line in screen_text(pilot))


@pytest.mark.parametrize("size", SIZES[:2], ids=["80x24", "120x35"])
async def test_every_advice_stands_whole_and_once(size: tuple[int, int]) -> None:
    feed = Moments(moment("throttled"))
    async with dashboard(feed, size) as pilot:
        for case in MAKERS:
            feed.now = moment(case)
            await press(pilot, "r")
            (notice,) = [n for n in feed.now.warnings if n.code == case.partition(".")[0]]
            on_screen = " ".join(_screen(pilot).split())  # advice may be wrapped
            assert on_screen.count(notice.advice) == 1, case
            assert (f"{PID}!" in on_screen) == (notice.pid == PID or notice.chip == 1), case
            assert (f"{OTHER}!" in on_screen) == (notice.chip == 7), case


@pytest.mark.parametrize("color", [True, False], ids=["color", "no_color"])
async def test_every_view_of_the_devices_has_the_mark(color: bool) -> None:
    feed = Moments(moment("throttled"))
    async with dashboard(feed, SIZES[0], color=color, ascii=not color) as pilot:
        for key, marked, unmarked, legends in (
            ("f", "tpu:1 !41234", "tpu:0  41234", 0),
            ("c", "tpu:1! ", "tpu:0  ", 0),
            ("H", " !73  ", "  71 ", 1),
        ):
            await press(pilot, key)
            assert marked in _screen(pilot)
            assert unmarked in _screen(pilot)
            # Of the device, of the process, of the notice.
            assert _screen(pilot).count("!") == 3 + legends


def _heights(pilot: Pilot[None]) -> Iterator[int]:
    page = pilot.app.page  # type: ignore[attr-defined]
    yield from (part.size.height for part in (page.detail, page.notices, page.processes))


@pytest.mark.parametrize("size", SIZES[:2], ids=["80x24", "120x35"])
async def test_nothing_moves_while_ages_tick(size: tuple[int, int]) -> None:
    feed = Moments(moment("unused"))
    async with dashboard(feed, size) as pilot:
        for case in ("throttled", "ici_link", "silent_server", "starved", "lock_file"):
            feed.now, heights = moment(case), set()
            for age_s in (None, 1.0, 59.0, AGE_S, 90_000.0, 2e6):
                warnings = tuple(n._replace(since_s=age_s) for n in feed.now.warnings)
                feed.now = feed.now._replace(warnings=warnings)
                await press(pilot, "r")
                heights.add(tuple(_heights(pilot)))
            assert len(heights) == 1, case
