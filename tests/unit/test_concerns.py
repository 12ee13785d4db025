"""Which rows a notice marks, and that every view has its advice once."""

from __future__ import annotations

from html import unescape

import pytest
from support import snapshots
from support.notice_feeds import MAKERS, OTHER, PID, host, moment

from tpusmi.merge.advice import ON_DEVICES, notice
from tpusmi.merge.notices import notices
from tpusmi.model import Notice, ProcessKey, Snapshot
from tpusmi.report import ps_text
from tpusmi.report.concerns import Concerns
from tpusmi.report.html import fragment
from tpusmi.report.plain_table import table
from tpusmi.report.ps_text import Filters
from tpusmi.report.select import Selection, remarks, selected
from tpusmi.report.text_grid import Sheet


def marked(s: Snapshot) -> tuple[list[int], list[int]]:
    """Numbers of the devices, and pids of the processes, that have a mark."""
    concerns = Concerns(s)
    devices = [d.number for d in s.devices if concerns.of_device(d)]
    processes = [p for p in s.processes if concerns.of_process(p, s.devices_of(p.key))]
    return devices, [p.pid for p in processes]


@pytest.mark.parametrize("case", MAKERS)
def test_a_notice_marks_its_device_and_its_job(case: str) -> None:
    s = moment(case)
    (n,) = [n for n in s.warnings if n.code == case.partition(".")[0]]
    if n.chip is not None:
        expected = [n.chip], [PID if n.chip < 4 else OTHER]
    elif n.pid is not None:
        expected = ([0, 1, 2, 3] if n.code in ON_DEVICES else []), [n.pid]
    else:
        expected = [], []
    assert marked(s) == expected


def test_a_notice_about_one_device_of_a_job_marks_that_device_alone() -> None:
    leak = Notice("memory_grows", "train.py:32 grows by 2 MiB/min", PID, device=2)
    assert marked(host()._replace(warnings=(leak,))) == ([2], [PID])


def test_a_notice_marks_neither_a_dead_process_nor_a_mere_claim_of_that_pid() -> None:
    s = host()
    first = s.processes[0]
    warnings = (notice("unused", "idle", PID),)
    for other in (
        first._replace(state="dead"),
        first._replace(key=ProcessKey(PID, 1, "/dev/shm/x.seg")),
    ):
        changed = s._replace(processes=(other, *s.processes[1:]), warnings=warnings)
        assert Concerns(changed).of_process(other, changed.devices_of(first.key)) == []


@pytest.mark.parametrize("case", MAKERS)
def test_the_table_and_the_notebook_have_the_advice_once(case: str) -> None:
    s = moment(case)
    (n,) = [n for n in s.warnings if n.code == case.partition(".")[0]]
    text = table(s)
    assert text.count(f"\n  what to do: {n.advice}\n") == 1
    assert unescape(fragment(s)).count(f"what to do: {n.advice}<") == 1


def test_the_failure_of_a_source_is_not_repeated_where_a_warning_tells_of_its_servers() -> None:
    texts = [r.text for r in remarks(moment("silent_server"))]
    assert [text for text in texts if "36203" in text] == [
        f"pid {PID}: libtpu's port 36203 does not answer: DUTY, BW, IDLE, QUEUE are missing"
    ]
    s = moment("silent_server")
    alone = [r.text for r in remarks(s._replace(warnings=()))]
    assert "libtpu failed: port 36203 has not answered for 12 s" in alone


def test_a_process_without_a_tpu_on_a_metrics_port_is_not_called_libtpu() -> None:
    """Its owner is known: `run tpusmi with sudo` would be no help. The source says what it is."""
    s = moment("silent_server.unowned")
    (server,) = [x for x in s.servers if x.process is None]
    others = [x for x in s.servers if x.process is not None]
    known = s._replace(servers=(*others, server._replace(stranger=99)))
    assert [n for n in notices(known) if n.code == "silent_server"] == []
    assert [n for n in notices(s) if n.code == "silent_server"] != []
    failed = "libtpu failed: port 36203 has not answered for 12 s"
    unowned = [n for n in s.warnings if n.code == "silent_server"]
    assert failed in [r.text for r in remarks(known._replace(warnings=tuple(unowned)))]


def test_a_selection_of_devices_leaves_out_the_warnings_of_other_chips() -> None:
    s = moment("throttled")
    assert selected(s, Selection(chips=(0,))).warnings == ()
    assert selected(s, Selection(chips=(1,))).warnings == s.warnings


def test_ps_says_what_to_do() -> None:
    text = ps_text.text(
        ps_text.view(snapshots.machine(), Filters()), Sheet(False, None), False, True
    )
    lines = text.splitlines()
    for beginning, advice in (
        ("! pid 5000 is stale", "end it: `tpusmi kill 5000`, or k on the screen"),
        ("! /tmp/libtpu_lockfile", "bob or root can remove it: `tpusmi kill --stale`"),
        ("! chip 3: has no device node", "in a container pass all device nodes in"),
    ):
        (place,) = [n for n, line in enumerate(lines) if line.startswith(beginning)]
        assert lines[place + 1].startswith(f"  what to do: {advice}")
    narrow = ps_text.view(snapshots.machine(), Filters(chips=(2,)))
    assert "chip 3" not in ps_text.text(narrow, Sheet(False, None), False, True)
