"""Without an agent, a process has the memory of chips that it certainly holds alone, and a peak is
the most that the viewer has seen.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import pytest
from support.snapshots import merge

from tpusmi.chips import by_name
from tpusmi.collect import Collector
from tpusmi.merge.peaks import SeenPeaks
from tpusmi.merge.sole_holder import of_sole_holders
from tpusmi.model import (
    AGENT,
    FAILED,
    LIBTPU,
    OK,
    SOLE_HOLDER,
    VIEWER,
    Chip,
    ChipKey,
    Device,
    DeviceKey,
    Host,
    HostFacts,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Snapshot,
    Subject,
    Visibility,
)
from tpusmi.model.history import Key
from tpusmi.report import plain_table

NOW = 1000.0
GIB = 1 << 30
HOST = HostFacts("host", "2026-01-01T00:00:00.000Z", None, None)
JOB, OTHER = ProcessKey(10, 77), ProcessKey(20, 88)
USED, PEAK = "hbm_used_bytes", "hbm_peak_bytes"


def chips(count: int) -> Outcome:
    generation = by_name("v5e")
    assert generation is not None
    return Outcome(
        "sysfs",
        OK,
        chips=tuple(
            Chip(i, "v5e", generation.kind, (f"0000:00:0{i}.0",), (f"/dev/vfio/{i}",), 1)
            for i in range(count)
        ),
    )


def holder(key: ProcessKey, *chips: int) -> Process:
    nodes = tuple(f"/dev/vfio/{i}" for i in chips)
    return Process(key, "me", "train.py", "live", holds=nodes)


def holders(*processes: Process, status: str = OK, **visibility: object) -> Outcome:
    return Outcome("holders", status, processes=processes, visibility=Visibility(**visibility))


def served(*used: int) -> Outcome:
    """What libtpu's server says of so many chips."""
    readings = tuple(
        Reading(USED, RowKey("127.0.0.1:8431", i), size, NOW - i, LIBTPU, 5.0)
        for i, size in enumerate(used)
    )
    servers = (Server("127.0.0.1:8431", JOB, tuple(range(len(used)))),)
    return Outcome(LIBTPU, OK, readings=readings, servers=servers)


def memory_of(s: Snapshot, key: ProcessKey = JOB) -> object:
    return s.value(USED, key)


def test_the_only_holder_of_chips_has_what_they_have_in_use_and_its_witness_is_named() -> None:
    s = merge([chips(2), holders(holder(JOB, 0, 1)), served(5 * GIB, 3 * GIB)], HOST, NOW, "0")
    (process,) = s.to_dict()["processes"]
    assert process["hbm_used_bytes"] == 8 * GIB
    assert process["provenance"]["hbm_used_bytes"] == {
        "source": SOLE_HOLDER, "age_s": 1.0, "stale": False,
    }  # fmt: skip
    assert "8.0 GiB chips" in plain_table.table(s)


@pytest.mark.parametrize(
    "held",
    [
        pytest.param((holders(holder(JOB, 0, 1), holder(OTHER, 1)),), id="another holds one"),
        pytest.param((holders(holder(JOB, 0, 1), not_inspected=1),), id="one was not inspected"),
        pytest.param(
            (holders(holder(JOB, 0, 1), own_pid_namespace=True),), id="other containers not seen"
        ),
        pytest.param((holders(holder(JOB, 0, 1), status=FAILED),), id="the holders are not known"),
        pytest.param((holders(holder(JOB, 0, 1, 2)),), id="it holds a node of no known device"),
    ],
)
def test_what_another_process_holds_or_may_hold_is_charged_to_none(
    held: Sequence[Outcome],
) -> None:
    s = merge([chips(2), *held, served(5 * GIB, 3 * GIB)], HOST, NOW, "0")
    assert [s.value(USED, d.key) for d in s.devices] == [5 * GIB, 3 * GIB]
    assert memory_of(s) is None


def test_memory_of_many_holders_and_chips_takes_time_in_proportion_to_them() -> None:
    """It is asked for several times a second, of 256 chips."""

    class Compared(int):
        count = 0

        def __eq__(self, other: object) -> bool:
            Compared.count += 1
            return int.__eq__(self, other)  # type: ignore[arg-type]

        __hash__ = int.__hash__

    count = 512
    nodes = [f"/dev/vfio/{i}" for i in range(count)]
    chips = [Chip(Compared(i), "v5e", "", (nodes[i],), (nodes[i],), 1) for i in range(count)]
    devices = [
        Device(
            key=DeviceKey(None, i),
            index=i,
            id=i,
            platform="tpu",
            kind=None,
            coords=None,
            core_on_chip=0,
            chip=Compared(i),
            node=nodes[i],
            owners=(JOB,),
        )
        for i in range(count)
    ]
    process = Process(JOB, "me", "train.py", "live", holds=tuple(nodes))
    readings = {key: r for d in devices for key, r in reading(d.key, 5, NOW).items()}
    (answer,) = of_sole_holders(readings, [process], devices, chips, [holders(process)])
    assert answer[1].value == 5 * count
    assert Compared.count < 10 * count


def test_a_device_without_a_node_may_be_held_by_others_unseen() -> None:
    device = Device(DeviceKey(None, 0), 0, 0, "tpu", None, None, 0, owners=(JOB,))
    process = Process(JOB, "me", "train.py", "live", holds=("/dev/vfio/0",))
    held = Chip(0, "v5e", "", ("0000:00:00.0",), ("/dev/vfio/0",), 1)
    for node, count in ((None, 0), ("/dev/vfio/0", 1)):
        own = device._replace(node=node, chip=0)
        memory = reading(own.key, 5, NOW)
        answers = [*of_sole_holders(memory, [process], [own], [held], [holders(process)])]
        assert len(answers) == count


def test_one_chip_of_unknown_memory_makes_the_sum_unknown() -> None:
    s = merge([chips(2), holders(holder(JOB, 0, 1)), served(5 * GIB)], HOST, NOW, "0")
    assert memory_of(s) is None


def test_an_ended_process_has_none() -> None:
    ended = holder(JOB, 0)._replace(state="dead")
    s = merge([chips(1), holders(ended), served(5 * GIB)], HOST, NOW, "0")
    assert memory_of(s) is None


def test_what_its_own_agent_says_of_the_whole_is_what_counts() -> None:
    device = Device(DeviceKey(JOB, 0), 0, 0, "tpu", "TPU v5 lite", None, 0)
    readings = (
        Reading(USED, device.key, 4 * GIB, NOW, AGENT, 5.0),
        Reading(USED, JOB, 4 * GIB, NOW, AGENT, 5.0),
    )
    process = Process(JOB, "me", "train.py", "live", "running", NOW, 1.0)
    agent = Outcome(AGENT, OK, readings=readings, devices=(device,), processes=(process,))
    s = merge([chips(1), holders(holder(JOB, 0)), agent, served(5 * GIB)], HOST, NOW, "0")
    assert s.values[JOB, USED].value == 4 * GIB
    assert s.values[JOB, USED].source == AGENT


# -- peaks


def reading(subject: Subject, used: int, at_s: float) -> dict[Key, Reading]:
    return {(subject, USED): Reading(USED, subject, used, at_s, LIBTPU, 5.0)}


def test_a_viewers_peak_is_the_most_it_has_seen_and_begins_again_with_another_owner() -> None:
    peaks, key, seen = SeenPeaks(), DeviceKey(None, 0), []
    for at, (used, owner) in enumerate([(3, JOB), (7, JOB), (5, JOB), (2, OTHER), (4, OTHER)]):
        ((_, peak),) = peaks.of(reading(key, used, NOW + at), {key: (owner,)})
        assert (peak.metric, peak.source, peak.at_s) == (PEAK, VIEWER, NOW + at)
        seen.append(peak.value)
    assert seen == [3, 7, 7, 2, 4]


def test_a_peak_outlasts_a_moment_without_a_number_and_one_with_a_peak_of_its_own() -> None:
    peaks, key, owners = SeenPeaks(), DeviceKey(None, 0), {DeviceKey(None, 0): (JOB,)}
    assert [peak.value for _, peak in peaks.of(reading(key, 9, NOW), owners)] == [9]
    assert [*peaks.of({}, owners)] == []
    own = {(key, PEAK): Reading(PEAK, key, 3, NOW, AGENT, 5.0)}
    assert [*peaks.of({**reading(key, 3, NOW + 1), **own}, owners)] == []
    assert [peak.value for _, peak in peaks.of(reading(key, 4, NOW + 2), owners)] == [9]


def test_the_memory_that_the_owner_before_had_is_no_peak_of_the_next() -> None:
    """Its last reading is still the newest when another process has opened the device."""
    peaks, key = SeenPeaks(), DeviceKey(None, 0)
    last = reading(key, 9, NOW)
    assert len([*peaks.of(last, {key: (JOB,)})]) == 1
    assert [*peaks.of(last, {key: (OTHER,)})] == []
    assert [*peaks.of(last, {key: (OTHER,)})] == []
    ((_, peak),) = peaks.of(reading(key, 2, NOW + 1), {key: (OTHER,)})
    assert peak.value == 2


def test_a_viewer_has_no_peak_of_a_free_device_of_a_chip_or_where_the_agent_knows_it() -> None:
    key = DeviceKey(None, 0)
    known = {**reading(key, 5, NOW), (key, PEAK): Reading(PEAK, key, 9, NOW, AGENT, 5.0)}
    assert [*SeenPeaks().of(known, {key: (JOB,)})] == []
    assert [*SeenPeaks().of(reading(key, 5, NOW), {})] == []
    chip = ChipKey(0)
    assert [*SeenPeaks().of(reading(chip, 5, NOW), {chip: (JOB,)})] == []


class Scripted:
    """A source that always gives the same."""

    name, period_s = "scripted", 1.0

    def __init__(self, outcome: Outcome) -> None:
        self.name, self._outcome = outcome.source, outcome

    def read(self, now_s: float) -> Outcome:
        readings = tuple(r._replace(at_s=now_s) for r in self._outcome.readings)
        return self._outcome._replace(readings=readings)

    def close(self) -> None:
        """Nothing is open."""


def test_a_one_shot_run_has_no_peak_and_a_viewer_that_stays_shows_at_least_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = [Scripted(o) for o in (chips(1), holders(holder(JOB, 0)), served(5 * GIB))]
    collector = Collector(Host(), sources)
    s = collector.read_once()
    assert s.value(PEAK, s.devices[0].key) is None
    later_s = time.monotonic() + 11.0
    monkeypatch.setattr(time, "monotonic", lambda: later_s)
    s = collector.read_once()
    key = s.devices[0].key
    assert s.values[key, PEAK].source == VIEWER
    # No graph is drawn of it: a series for each of 256 devices costs more than all other notices.
    assert collector.history.at(USED, key, later_s, 60.0) == 5 * GIB
    assert collector.history.at(PEAK, key, later_s, 60.0) is None
    assert "≥5.0 GiB" in plain_table.table(s)
    assert ">5.0 GiB" in plain_table.table(s, ascii_only=True)


def test_a_collector_that_stays_has_the_notice_from_what_the_jobs_agent_recorded_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten minutes of the past, and the windows of the first half minute."""
    start_s = time.monotonic()
    now = [start_s]

    def used(at_s: float) -> int:
        return int(8 * GIB + (at_s - start_s) * (40 << 20) / 60)

    class Agent(Scripted):
        def read(self, now_s: float) -> Outcome:
            reading = Reading(USED, JOB, used(now_s), now_s, AGENT, 5.0)
            past = (reading._replace(value=used(s), at_s=s) for s in seconds)
            seconds_left, seconds[:] = [*past], []
            return self._outcome._replace(readings=(reading,), past=tuple(seconds_left))

    seconds = [start_s - ago for ago in range(600, 0, -1)]
    process = Process(JOB, "me", "train.py", "live", "running", start_s, 1.0)
    collector = Collector(Host(), [Agent(Outcome(AGENT, OK, processes=(process,)))])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    told = {}
    for later_s in range(50):
        now[0] = start_s + later_s
        told[later_s] = [n for n in collector.read_once().warnings if n.code == "memory_grows"]
    assert told[0] == []
    (notice,) = told[49]
    rate = re.fullmatch(r"memory in use grows by (\d\d\.\d) MiB every minute", notice.message)
    assert rate is not None
    assert float(rate[1]) == pytest.approx(40, rel=0.02)
    assert (notice.since_s or 0) >= 600
