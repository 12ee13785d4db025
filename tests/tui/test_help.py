"""The help: keys in groups, every mark, every column of the open page, nothing cut unseen."""

from __future__ import annotations

import pytest
from support import device_feeds
from support.dashboards import dashboard, press, screen_text, shown
from support.feeds import two_jobs

from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS
from tpusmi.report.concerns import MARK as WARNED
from tpusmi.tui.device.device_facts import DeviceFacts
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import UNICODE, Look, width_of
from tpusmi.tui.help import help_lines
from tpusmi.tui.help_text import (
    GROUPS,
    MEMORY_COLUMNS,
    OTHER,
    columns_of,
    marks,
    sections,
    words_of,
)
from tpusmi.tui.keys import key, key_names
from tpusmi.tui.memory.memory_tree import MemoryTable
from tpusmi.tui.pages import keys_by_page
from tpusmi.tui.process.process_facts import LETTERS

PAGES = {"main": "", "device": "device", "memory": "memory", "job": "job"}
OPENED = {"main": (), "device": ("d",), "memory": ("m",), "job": ("j",)}
SIZES = [(80, 24), (120, 35), (200, 60)]


def lines(page: str, width: int) -> list[str]:
    bindings = keys_by_page()[page]
    rows = help_lines(Look(), bindings, PAGES[page], width)
    return ["".join(piece.text for piece in row) for row in rows]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("size", SIZES)
async def test_the_first_screen_has_every_key_in_its_group(
    page: str, size: tuple[int, int]
) -> None:
    async with dashboard(two_jobs(changes={"simulated": True}), size=size) as pilot:
        await press(pilot, *OPENED[page], "question_mark")
        on_screen = shown(pilot)
        assert "SIMULATED" in on_screen
        bindings = pilot.app.page.bindings
        for name in {name for b in bindings for name in key_names(b)}:
            assert f" {name} " in on_screen, name
        for section in sections(bindings):
            assert f" {section.title} " in on_screen
        box = pilot.app.screen.query_one("#help", Lines)
        cut = [line for line in box.text().splitlines() if "…" in line]
        assert all("a text that was cut" in line for line in cut)


@pytest.mark.parametrize("page", PAGES)
def test_every_key_is_in_a_group_and_keys_that_do_the_same_are_in_a_row(page: str) -> None:
    found = sections(keys_by_page()[page])
    assert OTHER not in [section.title for section in found]
    assert [s.title for s in found] == [
        title for title in GROUPS if title in {s.title for s in found}
    ]
    texts = [text for section in found for _, text in section.entries]
    assert len(texts) == len({*texts})
    names = " ".join(name for section in found for name, _ in section.entries).split()
    assert sorted(names) == sorted(n for b in keys_by_page()[page] for n in key_names(b))


def test_a_key_without_a_group_is_listed_with_its_own_text() -> None:
    (section,) = sections([key("z", "unheard_of", "New", "new", "Do something new")])
    assert section == (OTHER, (("z", "Do something new"),))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [36, 76, 116, 196])
def test_all_of_it_is_there_at_every_width(page: str, width: int) -> None:
    text = " ".join(" ".join(lines(page, width)).split())
    for section in (words_of(PAGES[page]), marks(UNICODE), *columns_of(PAGES[page])):
        assert section.title in text
        for name, _ in section.entries:
            assert name in text
    assert max(map(len, lines(page, width))) <= width


def test_the_columns_are_those_of_the_tables() -> None:
    main = {title for section in columns_of("") for title, _ in section.entries}
    assert main == {c.title for c in (*DEVICE_COLUMNS, *PROCESS_COLUMNS)} - {WARNED}
    assert {"STEPS/s", "TIME", "PEAK", "DEVICES", "CHIP", "NODE"} <= main
    tree = {c.title for c in MemoryTable(Look()).columns()}
    assert tree <= {title for title, _ in MEMORY_COLUMNS}


def test_keys_in_a_row_come_in_the_order_of_their_text() -> None:
    rows = {text: keys for s in sections(keys_by_page()["main"]) for keys, text in s.entries}
    assert rows["Screenshot, copy text"].split() == ["s", "y"]
    assert rows["SIGKILL, SIGINT"].split() == ["K", "I"]
    assert rows["Device / memory / job"].split() == ["d", "m", "j"]


async def test_the_words_beside_the_numbers_of_the_device_page_are_explained() -> None:
    titles = {name for section in columns_of("device") for name, _ in section.entries}
    explained = {*dict(words_of("device").entries), *map(str.lower, titles)}
    async with dashboard(device_feeds.chips(), size=(200, 60)) as pilot:
        s = pilot.app.scene.snapshot
    facts = DeviceFacts(Look(), s, s.devices[0], is_past=False)
    labels = {f.name.rstrip(' "') for f in (*facts._memory(), *facts._work())}
    assert {"unattributed", "HLO queue", "throttled"} <= labels
    percentiles = {f"HLO {part}" for part in ("mean", "p50", "p90", "p99.9")}
    plain = {"used", "HBM bandwidth", "live arrays"}
    assert {label.lower() for label in labels - percentiles - plain} <= {*map(str.lower, explained)}


def test_every_letter_of_a_phase_and_the_parentheses_are_explained() -> None:
    found = dict(marks(UNICODE).entries)
    assert {*LETTERS.values()} <= {*found}
    assert "warning" in found[f"tpu:0{WARNED}"]
    assert "ended" in found["(18 %)"]


def test_wide_screens_have_groups_beside_each_other() -> None:
    assert "Time" not in lines("main", 36)[0]
    for width in (76, 116):
        assert lines("main", width)[0].split() == ["Move", "View"]
    assert len(lines("main", 196)[0].split()) >= 3


async def test_page_down_goes_on_where_the_screen_ended_and_the_end_is_the_last_line() -> None:
    async with dashboard(two_jobs(), size=(80, 24)) as pilot:
        await press(pilot, "question_mark")
        last = screen_text(pilot)[22]
        assert "more" in screen_text(pilot)[23]
        await press(pilot, "pagedown", "up")
        assert screen_text(pilot)[1] == last
        await press(pilot, "end")
        assert "more" not in screen_text(pilot)[23]


async def test_a_box_narrower_than_its_text_cuts_it_with_a_mark() -> None:
    async with dashboard(two_jobs(), size=(18, 12)) as pilot:
        await press(pilot, "question_mark")
        assert any("…" in line for line in screen_text(pilot))
        assert all(width_of(row) <= 18 for row in pilot.app.screen._box.drawn)  # type: ignore[attr-defined]
