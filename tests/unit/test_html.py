"""The panel of notebooks: what it shows, and that it is well formed whatever it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from support import snapshots
from support.slice_feeds import TROUBLED, feed_of_slice

from tpusmi.model import ChipKey, Snapshot, Value, Verdict
from tpusmi.report.html import fragment

TAGS = {"div", "style", "b", "span", "i", "table", "tr", "th", "td"}
ATTRIBUTES = {"class", "style", "title", "colspan"}
STYLES = r"--v:\d+%(;--p:\d+%)?|background:#[0-9a-f]{6};color:#(000|fff)"
HOSTILE = '</td></div><script>alert(1)</script>" onmouseover="x" <img src=//evil> $\\href{a}{b}$'


class Page(HTMLParser):
    """A fragment, read strictly: every tag is one of ours, and is closed in its place."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self._cells: list[str] | None = None
        self.lines: list[str] = []
        """Text of each row of a table."""
        self.texts: list[str] = []
        self.titles: list[str] = []
        self.classes: list[set[str]] = []
        self.feed(fragment)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        found = dict(attrs)
        assert found.keys() <= ATTRIBUTES
        assert re.fullmatch(STYLES, found.get("style") or "--v:0%")
        self.titles += [found["title"] or ""] if "title" in found else []
        self.classes.append(set((found.get("class") or "").split()))
        self._open.append(tag)
        if tag == "tr":
            self._cells = []

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "tr":
            self.lines.append(" | ".join(self._cells or ()))
            self._cells = None

    def handle_data(self, data: str) -> None:
        if self._open[-1] == "style":
            return
        self.texts.append(data)
        if self._cells is not None:
            self._cells.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def row(self, name: str) -> str:
        """The row of a table that begins with this."""
        return next(line for line in self.lines if line.startswith(f"{name} | "))


@pytest.mark.parametrize("count", [1, 8, 32])
def test_every_device_has_a_row(count: int) -> None:
    page = Page(fragment(snapshots.many(count)))
    assert f"{count} × TPU v5e" in page.text
    for i in range(count):
        assert page.row(f"tpu:{i}").startswith(f"tpu:{i} | {i} | ")
        assert " | 4321 | " in page.row(f"tpu:{i}")
        assert "| 12.0/16.0 GiB" in page.row(f"tpu:{i}")
    assert page.row("tpu:0").endswith("| 55 % | 97 % | 61 % | 0 s | running")
    assert "peak 14.0 GiB" in page.titles


@pytest.mark.parametrize("count", [33, 256])
def test_many_devices_are_a_heat_map_of_numbers(count: int) -> None:
    text = fragment(snapshots.many(count))
    page = Page(text)
    assert not any(line.startswith("tpu:") for line in page.lines)
    assert page.texts.count("75") == page.texts.count("55") == count
    assert f"tpu:{count - 1} 12.0/16.0 GiB" in page.titles
    assert f"tpu:{count - 1} MXU 55 % DUTY 97 % BW 61 % idle 0 s" in page.titles
    assert f"all {count}: HBM " in page.text
    assert "tpu:32" in page.texts


def test_a_panel_of_eight_devices_is_small() -> None:
    assert len(fragment(snapshots.many(8)).encode()) < 8_000


def test_what_nobody_knows_is_a_dash_and_nothing_is_zero() -> None:
    unknown = Page(fragment(snapshots.many(1, duty_cycle_percent=None, idle_s=None)))
    assert unknown.row("tpu:0").endswith("12.0/16.0 GiB | 14.0 GiB | 55 % | – | 61 % | running")
    zero = Page(fragment(snapshots.many(1, duty_cycle_percent=0.0, hbm_used_bytes=0)))
    end = "| 0.0/16.0 GiB | 14.0 GiB | 55 % | 0 % | 61 % | 0 s | running"
    assert zero.row("tpu:0").endswith(end)


def test_a_dash_and_a_zero_differ_in_the_heat_map() -> None:
    nothing_known = snapshots.many(
        40,
        tensorcore_utilization_percent=None,
        duty_cycle_percent=None,
        hbm_bandwidth_utilization_percent=None,
    )
    assert _mapped(nothing_known).count("–") == 40
    zero = _mapped(snapshots.many(40, tensorcore_utilization_percent=0.0))
    assert (zero.count("0"), zero.count("–")) == (40, 0)


def _mapped(s: Snapshot) -> list[str]:
    """The texts above the table of processes."""
    texts = Page(fragment(s)).texts
    return texts[: texts.index("PID")]


def test_an_old_value_is_grey_with_its_age_and_counts_for_no_average() -> None:
    page = Page(fragment(snapshots.many(4, idle_s=None)))
    row = page.row("tpu:1")
    assert row.count("(30s old)") == 1  # beside the first, the others have it as a title
    assert page.titles.count("30s old") == 6  # and of its process
    assert sum("old" in found for found in page.classes) == 6
    assert page.row("all 4") == ("all 4 | 36.0/48.0 GiB (3 of 4) | 55 % | 97 % | 61 %")
    assert page.titles.count("3 of 4") == 3
    many = Page(fragment(snapshots.many(40)))
    assert "tpu:1 12.0/16.0 GiB (30s old)" in many.titles


def test_what_was_measured_of_a_whole_chip_stands_once() -> None:
    page = Page(fragment(snapshots.machine()))
    assert "98 % | 61 %" in page.row("tpu:0")
    assert '" | 60 %' in page.row("tpu:1")
    assert "4 × TPU v3 (8 devices)" in page.text


def test_memory_of_a_whole_chip_is_counted_once() -> None:
    s = snapshots.machine()
    values = {key: v for key, v in s.values.items() if "hbm" not in key[1]}
    for chip in range(4):
        for name, value in (("hbm_used_bytes", 8), ("hbm_limit_bytes", 32)):
            values[ChipKey(chip), name] = Value(value * snapshots.GIB, "libtpu", 0.1, False)
    page = Page(fragment(s._replace(values=values)))
    assert page.row("all 8").startswith("all 8 | 32.0/128.0 GiB | ")


def test_a_host_without_a_tpu_says_what_to_do() -> None:
    page = Page(fragment(snapshots.nothing()))
    assert "no TPU" in page.text
    assert "import tpusmi; tpusmi.start()" in page.text
    assert page.lines == []


def test_simulated_and_stopped_are_said_out_loud() -> None:
    assert "SIMULATED" in Page(fragment(snapshots.machine())).texts
    live = Page(fragment(snapshots.everything(), "live, every 1 s"))
    assert "SIMULATED" not in live.texts
    ended = Page(fragment(snapshots.everything(), "stopped at 12:03:04", ended=True))
    assert "stopped at 12:03:04" in ended.texts
    assert ({"ended"} in ended.classes, {"ended"} in live.classes) == (True, False)
    assert "as of 2026-01-0" in ended.text


def test_processes_tell_what_they_do_and_the_dead_come_last() -> None:
    page = Page(fragment(snapshots.everything()))
    assert page.row("4321").startswith(
        "4321 | ! | ann | 8-9 | – | 3.21 | 311 ms | 17 | running | 0s | python train.py"
    )
    assert page.row("5000").endswith("| idle (silent) | 30s | python -m serve")
    assert page.lines[-1].startswith("999 |   | ann | 8 | 15.0 GiB | ")
    assert "| ended |" in page.lines[-1]


def test_a_stale_holder_is_told_with_its_reason_and_once() -> None:
    s = snapshots.machine()
    reason = (
        "its launcher, process 4990, has ended; its chips run nothing, and it used 0.0 % of a core"
    )
    assert [(p.stale_reason or "")[: len(reason)] for p in s.processes if p.stale] == [reason]
    page = Page(fragment(s))
    assert "stale (orphaned)" in page.row("5000")
    assert page.text.count(reason) == 1


def test_one_that_may_be_stale_is_told_with_what_speaks_for_it() -> None:
    reason = "its launcher has ended, but it is only 3.0 s old"
    s = _first_process(
        snapshots.machine(), verdict=Verdict.MAYBE, stale_code="orphaned", stale_reason=reason
    )
    page = Page(fragment(s))
    assert "running (may be stale)" in page.row("4321")
    assert page.text.count(f"may be stale (orphaned): {reason}") == 1


def test_notices_and_sources_that_failed_are_lines() -> None:
    text = Page(fragment(snapshots.everything())).text
    assert "! libtpu denied: port 8431 of pid 4321 cannot be seen, try sudo" in text
    assert "! pid 4321: JAX runs on the CPU although there is a TPU" in text


def test_there_is_room_for_a_few_processes_and_notices_only() -> None:
    s = snapshots.everything()
    warnings = tuple(s.warnings[0]._replace(message=f"trouble {i}") for i in range(100))
    page = Page(fragment(_crowded(s)._replace(warnings=warnings)))
    assert len(page.lines) < 30
    assert "and 88 more" in page.text
    assert "trouble 99" not in page.text


def _crowded(s: Snapshot) -> Snapshot:
    first = s.processes[0]
    keys = (first.key._replace(pid=pid) for pid in range(1, 101))
    return s._replace(processes=tuple(first._replace(key=key) for key in keys))


HOSTILE_PLACES: dict[str, Callable[[Snapshot], Snapshot]] = {
    "command": lambda s: _first_process(s, command=f"python {HOSTILE}"),
    "user": lambda s: _first_process(s, user=HOSTILE),
    "phase": lambda s: _first_process(s, phase=HOSTILE),
    "reason": lambda s: _first_process(
        s, verdict=Verdict.STALE, stale_code=HOSTILE, stale_reason=HOSTILE
    ),
    "host": lambda s: s._replace(host=s.host._replace(name=HOSTILE, libtpu_version=HOSTILE)),
    "time": lambda s: s._replace(host=s.host._replace(time=HOSTILE)),
    "device": lambda s: s._replace(
        devices=tuple(d._replace(kind=HOSTILE, platform=HOSTILE, error=HOSTILE) for d in s.devices)
    ),
    "warning": lambda s: s._replace(
        warnings=tuple(n._replace(message=HOSTILE) for n in s.warnings)
    ),
    "source": lambda s: s._replace(
        sources=tuple(o._replace(message=HOSTILE, notes=(HOSTILE,)) for o in s.sources)
    ),
}


def _first_process(s: Snapshot, **fields: object) -> Snapshot:
    first, *others = s.processes
    return s._replace(processes=(first._replace(**fields), *others))  # type: ignore[arg-type]


@pytest.mark.parametrize("place", HOSTILE_PLACES)
def test_markup_from_outside_stays_text(place: str) -> None:
    page = Page(fragment(HOSTILE_PLACES[place](snapshots.everything())))
    assert "alert(1)" in "\n".join((page.text, *page.titles))


def test_control_characters_and_lone_surrogates_do_not_get_through() -> None:
    command = "python \x1b[31m\u202etrain\ud800\x00.py"
    text = fragment(_first_process(snapshots.everything(), command=command))
    text.encode()
    assert not {"\x1b", "\u202e", "\x00"} & set(text)


def test_a_notebook_is_told_to_look_for_no_formulas() -> None:
    first = Page(fragment(snapshots.everything())).classes[0]
    assert {"tex2jax_ignore", "mathjax_ignore"} <= first


@pytest.mark.parametrize("moment", [snapshots.everything, snapshots.machine, snapshots.nothing])
def test_nothing_is_fetched_from_elsewhere(moment: Callable[[], Snapshot]) -> None:
    text = fragment(moment())
    assert not re.search(r"url\(|@import|https?:|src=|href=", text)


def test_all_hosts_of_a_job_are_a_table_and_silent_ones_are_pale() -> None:
    s = feed_of_slice(4, changes=TROUBLED).snapshot()
    page = Page(fragment(s))
    assert "4 processes, 3 live, 1 stopped reporting" in page.text
    assert "stopped reporting" in page.row("t1v-n-7b8e-w-2")
    assert "500 ms*" in page.row("t1v-n-7b8e-w-3")


def test_of_very_many_hosts_the_worst_are_in_the_table_and_the_others_are_counted() -> None:
    page = Page(fragment(feed_of_slice(40, changes=TROUBLED).snapshot()))
    assert page.row("t1v-n-7b8e-w-2")
    assert sum(line.startswith("t1v-") for line in page.lines) == 16
    assert "and 24 more hosts" in page.text


def test_the_name_of_a_host_is_text() -> None:
    s = feed_of_slice(3, changes={1: {"name": HOSTILE, "warnings": (HOSTILE,)}}).snapshot()
    assert HOSTILE in Page(fragment(s)).text
