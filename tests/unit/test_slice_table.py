"""A slice as a table: which hosts and columns it has, and what is marked."""

from __future__ import annotations

from typing import Any

from support.slice_feeds import TROUBLED, Changes, feed_of_slice, slice_of_hosts

from tpusmi.model import ProcessKey
from tpusmi.report import slice_table
from tpusmi.report.plain_table import table
from tpusmi.report.select import Selection, selected
from tpusmi.report.slice_table import ORDERS, PLAIN_MOST, headline, rows_of, worst

KEY = ProcessKey(4, 5)


def rows(changes: Changes, hosts: int = 8) -> dict[str, list[str]]:
    """The cells of each column, by its title."""
    columns, found = rows_of(slice_of_hosts(hosts, KEY, 10.0, changes))
    return {c.title: [row.cells[n] for row in found] for n, c in enumerate(columns)}


def test_the_slowest_step_is_marked_and_no_other() -> None:
    steps = rows({3: {"step_time_s": 0.5}})["STEP"]
    assert [text for text in steps if text.endswith("*")] == ["500 ms*"]


def test_a_silent_host_is_not_the_slowest() -> None:
    steps = rows({3: {"step_time_s": 9.0, "age_s": 60.0}})["STEP"]
    assert [i for i, text in enumerate(steps) if text.endswith("*")] == [7]


def test_memory_is_unknown_where_one_device_does_not_say() -> None:
    whole = slice_of_hosts(1, KEY, 10.0)
    (host,) = whole.hosts
    first = host.devices[0]._replace(hbm_used_bytes=None)
    part = whole._replace(hosts=(host._replace(devices=(first, *host.devices[1:])),))
    for x, text in ((whole, "50 51 52 %"), (part, "–")):
        columns, (row,) = rows_of(x)
        titles = [c.title for c in columns]
        assert row.cells[titles.index("HBM min mean max")] == text


def test_what_not_all_devices_say_is_unknown() -> None:
    cells = rows({3: {"counted_devices": 40}})
    assert (cells["DEV"][3], cells["DEV"][4]) == ("40", "4")
    assert cells["HBM min mean max"][3] == cells["DUTY"][3] == cells["IDLE"][3] == "–"
    assert "–" not in cells["HBM min mean max"][4]


def test_a_column_in_which_nothing_is_known_is_left_out() -> None:
    assert "MXU" not in rows({})
    assert "WARNINGS" not in rows({})
    bare: Any = {i: {"mfu_percent": None} for i in range(8)}
    assert "MFU" not in rows(bare)


def test_a_small_difference_of_clocks_is_the_same_time() -> None:
    clocks = rows({2: {"clock_difference_s": 75.0}, 3: {"clock_difference_s": -12.0}})["CLOCK"]
    assert clocks[:4] == ["same", "–", "+1m15s", "-12s"]


def test_the_headline_counts_hosts_that_are_not_heard_of() -> None:
    whole = slice_of_hosts(6, KEY, 10.0, {2: {"age_s": 60.0}})._replace(process_count=8)
    text = "slice of pid 4: 8 processes, 5 live, 1 stopped reporting, 2 not heard of"
    assert headline(whole) == text


def test_a_slice_that_is_no_longer_read_says_when_it_was() -> None:
    """Its reader hangs or is stopped: `live` is what it was told then."""
    whole = slice_of_hosts(3, KEY, 10.0)
    late, later = whole.aged(13.0), whole.aged(85.0)
    assert headline(late) == "slice of pid 4: 3 processes, 3 live"
    assert headline(later) == "slice of pid 4: 3 processes, 3 live, last read 1m15s ago"
    assert [h.is_old for h in (*late.hosts, *later.hosts)] == [False] * 3 + [True] * 3


def test_every_order_has_every_host_once() -> None:
    whole = slice_of_hosts(8, KEY, 10.0, TROUBLED)
    for order in ORDERS:
        _, found = rows_of(whole, order)
        assert sorted(row.host.process_index for row in found) == [*range(8)], order.name


def test_of_very_many_hosts_the_worst_are_kept_in_their_order() -> None:
    _, found = rows_of(slice_of_hosts(40, KEY, 10.0, {7: {"age_s": 60.0}, 3: {"step_time_s": 9.0}}))
    kept = [row.host.process_index for row in worst(found, 3)]
    assert kept == [3, 7, 39]


def test_the_plain_report_has_the_slice_and_says_what_it_leaves_out() -> None:
    printed = table(feed_of_slice(20, changes=TROUBLED).snapshot())
    assert "slice of pid 41234: 20 processes, 19 live, 1 stopped reporting" in printed
    assert printed.count("\nt1v-n-7b8e-w-") == PLAIN_MOST
    assert "4 more hosts: see --json" in printed


def test_a_selection_of_other_processes_leaves_the_slice_out() -> None:
    s = feed_of_slice(8).snapshot()
    first, second = s.processes[0].pid, s.processes[1].pid
    assert selected(s, Selection(pids=(first,))).slice is not None
    assert selected(s, Selection(pids=(second,))).slice is None


def test_the_columns_of_the_help_are_those_of_the_table() -> None:
    shown = [c.title for c in slice_table.HOST_COLUMNS]
    assert [*rows({})] == [title for title in shown if title in rows({})]
    assert all(c.help for c in slice_table.HOST_COLUMNS)
