"""That others may hold the TPU, or have an agent, out of sight: said once, where it helps."""

from __future__ import annotations

import pytest
from support.snapshots import merge

from tpusmi.merge.notices import notices
from tpusmi.model import (
    AGENT,
    DENIED,
    HOLDERS,
    OK,
    OTHER_MOUNTS,
    HostFacts,
    Missing,
    Outcome,
    Process,
    ProcessKey,
    Snapshot,
    Verdict,
    Visibility,
)
from tpusmi.report.plain_table import table
from tpusmi.tui import chrome

NODES = ("/dev/accel0", "/dev/accel1")
KEY = ProcessKey(7, 70)
WHY = "processes outside this container cannot be seen"
WALL = "does not share this command's /dev/shm"


def snapshot(
    *holds: str, status: str = OK, unseen: str = WHY, missing: tuple[Missing, ...] = ()
) -> Snapshot:
    process = Process(KEY, "ann", "python", "live", None, None, None, {}, holds=holds)
    message = f"1 holder ({unseen})" if holds else f"no holder visible ({unseen})"
    holders = Outcome(
        *(HOLDERS, status, message),
        processes=(process,) if holds else (),
        visibility=Visibility(nodes=NODES, reason=unseen),
    )
    host = HostFacts("vm", "2026-01-02T03:04:05.678Z", "", False)
    return merge([Outcome(AGENT, OK, missing=missing), holders], host, 100.0, "9")


@pytest.mark.parametrize(
    ("s", "codes"),
    [
        pytest.param(snapshot(), ["unseen_holders"], id="no holder is seen"),
        pytest.param(snapshot(NODES[0]), ["unseen_holders"], id="of one node none is seen"),
        pytest.param(snapshot(*NODES), [], id="each node has a holder that is seen"),
        pytest.param(snapshot(unseen=""), [], id="every process was inspected"),
    ],
)
def test_it_is_a_warning_where_a_node_has_no_holder_that_is_seen(
    s: Snapshot, codes: list[str]
) -> None:
    assert [n.code for n in s.warnings if n.code == "unseen_holders"] == codes


@pytest.mark.parametrize("status", [OK, DENIED])
@pytest.mark.parametrize("holds", [(), NODES[:1], NODES])
def test_each_view_says_it_once(status: str, holds: tuple[str, ...]) -> None:
    s = snapshot(*holds, status=status)
    assert table(s).count(WHY) == 1
    shown = " ".join(remark.text for remark in chrome.notices(s)).count(WHY)
    assert shown == (0 if holds == NODES and status == OK else 1)


def test_a_stale_holder_has_to_be_ended_and_not_to_start_an_agent() -> None:
    s = snapshot(*NODES)
    (process,) = s.processes
    assert "no_metrics" in {n.code for n in notices(s)}
    stale = process._replace(verdict=Verdict.STALE, stale_code="orphaned")
    codes = {n.code for n in notices(s._replace(processes=(stale,)))}
    assert codes & {"stale_holder", "no_metrics"} == {"stale_holder"}


def test_a_holder_whose_mounts_are_out_of_sight_is_not_told_to_start_an_agent() -> None:
    wall = Missing(AGENT, f"pid 7 {WALL}", None, KEY, OTHER_MOUNTS)
    warnings = {n.code: n for n in snapshot(*NODES, missing=(wall,)).warnings}
    assert warnings["other_mounts"].message == WALL
    assert "tpusmi.start()" not in warnings["no_metrics"].advice
    assert "tpusmi.start()" in " ".join(n.advice for n in snapshot(*NODES).warnings)
    other = wall._replace(process=ProcessKey(8, 80))
    assert "other_mounts" not in {n.code for n in snapshot(*NODES, missing=(other,)).warnings}
