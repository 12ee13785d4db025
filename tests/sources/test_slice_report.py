"""The other hosts of a job, from a segment: nothing in it is trusted, and nothing is made up."""

from __future__ import annotations

import json
import os
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import segments
from support.clocks import takes_at_most
from support.jobs import collector
from support.segments import GIB, slice_bytes, slice_line

from tpusmi.model import ProcessKey, SliceState
from tpusmi.model.slice_hosts import READ_PERIODS, SILENT_PERIODS, Slice
from tpusmi.sources.segments.slice_report import slice_of
from tpusmi.wire import identity
from tpusmi.wire.layout import SLICE_JSON, SLICE_NONE
from tpusmi.wire.reader import BlobContent
from tpusmi.wire.slice_summary import UNPACKED_MOST, VERSION, packed

KEY = ProcessKey(1, 2)


def read(payload: bytes, at_s: float = 100.0, kind: int = SLICE_JSON) -> Slice | None:
    return slice_of(BlobContent(1, kind, at_s, payload), KEY, shift_s=0.0, now_s=at_s)


def hosts_of(*lines: Any, processes: int = 4) -> tuple[Any, ...]:
    found = read(packed((VERSION, processes, 0, 77, 2.0), lines))
    assert found is not None
    return found.hosts


def test_every_figure_of_a_host_is_read() -> None:
    found = read(slice_bytes(4))
    assert found is not None
    assert (found.process_count, found.process_index, found.pid) == (4, 0, 1)
    host = found.hosts[1]
    assert (host.process_index, host.name, host.kind) == (1, "host-1", "TPU v5e")
    assert (host.age_s, host.period_s, host.clock_difference_s) == (0.5, 2.0, 0.25)
    assert (host.phase, host.steps, host.step_time_s) == ("running", 1201, 0.25)
    assert (host.since_last_step_s, host.mfu_percent, host.warnings) == (0.1, 40.5, ())
    device = host.devices[1]
    assert (device.id, device.coords, device.core_on_chip) == (3, (1, 1, 0), 0)
    assert (device.hbm_used_bytes, device.hbm_limit_bytes) == (8 * GIB + 1, 16 * GIB)
    assert device.tensorcore_utilization_percent is None
    assert (device.duty_cycle_percent, device.idle_s) == (97.5, 0.25)


def test_each_device_may_have_a_limit_of_its_own() -> None:
    (host,) = hosts_of(slice_line(0, hbm_limit_bytes=[7, None]))
    assert [d.hbm_limit_bytes for d in host.devices] == [7, None]


def test_what_cannot_be_true_is_unknown() -> None:
    (host,) = hosts_of(
        slice_line(
            0,
            name=7,
            kind=[],
            phase=99,
            steps=-1,
            step_time_s=float("nan"),
            since_last_step_s=float("inf"),
            mfu_percent=True,
            warnings={"a": 1},
            hbm_limit_bytes=0,
        )
    )
    assert (host.name, host.kind, host.phase, host.steps) == ("", None, None, None)
    assert (host.step_time_s, host.since_last_step_s, host.mfu_percent) == (None, None, None)
    assert host.warnings == ()
    assert [d.hbm_limit_bytes for d in host.devices] == [None, None]


def test_the_slice_of_a_host_follows_its_devices_and_is_checked() -> None:
    def slice_index(*more: Any) -> int | None:
        index, age_s, clock_s, row = slice_line(0)
        (host,) = hosts_of([index, age_s, clock_s, [*row, *more]])
        found: int | None = host.slice_index
        return found

    assert slice_index(3) == 3
    assert slice_index(3, "of a later version") == 3
    assert slice_index() is None
    assert all(slice_index(wrong) is None for wrong in (-1, 1.5, "1", [1], True, 10**9))
    assert slice_index(None, 300) is None


def test_devices_that_are_not_listed_are_counted() -> None:
    index, age_s, clock_s, row = slice_line(0)
    (two,) = hosts_of([index, age_s, clock_s, row])
    (many,) = hosts_of([index, age_s, clock_s, [*row, None, 300]])
    (untrue,) = hosts_of([index, age_s, clock_s, [*row, None, -4]])
    assert [(len(h.devices), h.device_count) for h in (two, many, untrue)] == [
        (2, 2),
        (2, 300),
        (2, 2),
    ]


def test_text_is_cut_and_cleaned() -> None:
    (host,) = hosts_of(slice_line(0, name="\x1b[31m" + "x" * 900, warnings=["a\nb", 3, "c" * 99]))
    assert "\x1b" not in host.name
    assert len(host.name) <= 48
    assert host.warnings == ("a b", "c" * 24)


def test_lines_that_say_nothing_are_left_out() -> None:
    row = slice_line(1)[3]
    bad = [[], [1], [1, 0.5, 0.0, "x"], [9, 0.5, 0.0, row], [-1, 0.5, 0.0, row],
           [1.5, 0.5, 0.0, row], [1, None, 0.0, row], [1, -3.0, 0.0, row],
           [1, 0.5, 0.0, [2, *row[1:]]]]  # fmt: skip
    assert [h.process_index for h in hosts_of(*bad, slice_line(2))] == [2]


def test_a_later_version_may_append() -> None:
    line = slice_line(0)
    line[3][-1][0].append("new")
    line[3].append("newer")
    line.append("newest")
    (host,) = hosts_of(line)
    assert len(host.devices) == 2


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"x",
        zlib.compress(b""),
        zlib.compress(b"[]"),
        zlib.compress(b"[1,4,0,77]"),
        zlib.compress(b"[1,1,0,77,2.0]"),
        zlib.compress(b"[1,99999,0,77,2.0]"),
        zlib.compress(b"[2,4,0,77,2.0]"),
        zlib.compress(b"[1,4,0,77,NaN]"),
        zlib.compress(b"[1,4,0,77,2.0]")[:-3],
        zlib.compress(b"[1,4,0,77,2.0]\n" + b" " * UNPACKED_MOST),
        zlib.compress(b"[" * 4000),
    ],
)
def test_bytes_that_are_no_slice_are_none(payload: bytes) -> None:
    assert read(payload) is None


def test_an_agent_that_reads_no_longer_has_none() -> None:
    assert read(slice_bytes(4), kind=SLICE_NONE) is None
    assert slice_of(None, KEY, 0.0, 1.0) is None


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda x: st.lists(x, max_size=9), max_leaves=30,
))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_no_line_raises_anything(line: Any) -> None:
    hosts_of(*([line] if isinstance(line, list) else []), [0, 1.0, 0.0, line])
    whole = slice_line(0)
    whole[3][-1] = line
    hosts_of(whole)


def test_a_blob_of_very_many_lines_costs_little() -> None:
    deep = json.dumps([[]] * 1000).encode()
    with takes_at_most(1.0):
        assert read(zlib.compress(b"[1,4,0,77,2.0]\n" + (deep + b"\n") * 400)) is not None


def test_a_host_is_silent_after_three_periods_and_only_while_others_are_read() -> None:
    found = read(slice_bytes(2, slice_line(0, age_s=0.0), slice_line(1, age_s=3.0)))
    assert found is not None

    def states(passed_s: float) -> list[str]:
        return [h.state for h in found.aged(100.0 + passed_s).hosts]

    silent_s = SILENT_PERIODS * 2.0
    assert states(silent_s - 3.0 - 0.1) == ["live", "live"]
    assert states(silent_s - 3.0 + 0.1) == ["live", "stopped reporting"]
    # Its own agent reads no more: that says nothing of the others.
    assert silent_s > READ_PERIODS * 2.0
    assert states(1000.0) == ["live", "stopped reporting"]
    assert found.aged(1000.0).hosts[0].age_s == 900.0


# In the snapshot.


def written(directory: Path, *lines: Any, job: int = 77, count: int = 4) -> Any:
    """A segment of this process with that slice."""
    writer = segments.segment(directory, identity.me(), processes=count)
    now_s = time.monotonic()
    writer.append(segments.slot(now_s, segments.RUNNING, [segments.device(0)] * 2, time.time()))
    blob = packed((VERSION, count, 0, job, 2.0), lines or [slice_line(i) for i in range(count)])
    assert writer.slice.write(SLICE_JSON, blob, now_s)
    return writer


def test_a_snapshot_has_the_slice_of_a_living_job(tmp_path: Path) -> None:
    index, age_s, clock_s, row = slice_line(0)
    of_300 = [index, age_s, clock_s, [*row, None, 300]]
    writer = written(tmp_path, of_300, slice_line(3, age_s=60.0))
    s = collector(tmp_path).read_once()
    assert s.slice is not None
    assert s.slice.pid == os.getpid()
    assert [h.state for h in s.slice.hosts] == [SliceState.LIVE, SliceState.STOPPED]
    printed = s.to_dict()["slice"]
    assert [h["state"] for h in printed["hosts"]] == ["live", "stopped reporting"]
    assert printed["hosts"][1]["age_s"] >= 60.0
    assert [(len(h["devices"]), h["device_count"]) for h in printed["hosts"]] == [(2, 300), (2, 2)]
    json.dumps(printed, allow_nan=False)
    writer.remove()


def test_a_snapshot_without_such_a_job_has_none(tmp_path: Path) -> None:
    writer = segments.my_segment(tmp_path)
    s = collector(tmp_path).read_once()
    assert (s.slice, s.to_dict()["slice"], s.to_dict()["other_slices"]) == (None, None, [])
    writer.remove()


def test_the_slice_of_a_dead_job_is_not_shown(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, segments.dead_identity(), processes=4)
    writer.append(segments.slot(time.monotonic(), segments.RUNNING, [{}, {}], time.time()))
    writer.slice.write(SLICE_JSON, slice_bytes(4), time.monotonic())
    writer.close()
    assert collector(tmp_path).read_once().slice is None
