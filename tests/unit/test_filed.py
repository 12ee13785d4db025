"""What rows of servers and of the SDK said is found again in the history, each metric its way."""

from __future__ import annotations

import pytest

from tpusmi.chips import by_name
from tpusmi.merge import merge
from tpusmi.merge.past import past
from tpusmi.model import (
    LIBTPU,
    LIBTPU_SDK,
    OK,
    Chip,
    History,
    HostFacts,
    Outcome,
    Reading,
    RowKey,
    Server,
    Snapshot,
)

NOW = 1000.0
HOST = HostFacts("host", "2026-01-01T00:00:00.000Z", None, None)
PORT = "127.0.0.1:8431"
USED, DUTY, MXU = "hbm_used_bytes", "duty_cycle_percent", "tensorcore_utilization_percent"


def chips(generation: str, count: int) -> Outcome:
    g = by_name(generation)
    assert g is not None
    found = tuple(
        Chip(i, g.name, g.kind, (f"0000:00:{i:02x}.0",), (g.node.format(i),), g.devices_per_chip)
        for i in range(count)
    )
    return Outcome("sysfs", OK, chips=found)


def said(source: str, server: str, **rows: list[float]) -> Outcome:
    """What a server said: metric, a value for each row."""
    readings = tuple(
        Reading(metric, RowKey(server, i), value, NOW, source, 5.0)
        for metric, row in rows.items()
        for i, value in enumerate(row)
    )
    ids = tuple(range(max(map(len, rows.values()))))
    servers = () if source == LIBTPU_SDK else (Server(server, None, ids),)
    return Outcome(source, OK, readings=readings, servers=servers)


def moment(*outcomes: Outcome) -> tuple[Snapshot, History]:
    history = History()
    for o in outcomes:
        history.add(o.readings)
    return merge(outcomes, HOST, NOW, "0.0.0"), history


def test_the_duty_cycle_of_a_chip_of_two_devices_is_the_chips_and_no_devices() -> None:
    libtpu = said(
        LIBTPU, PORT, hbm_used_bytes=[float(n) for n in range(1, 9)],
        duty_cycle_percent=[10.0, 20.0, 30.0, 40.0],
    )  # fmt: skip
    s, history = moment(chips("v3", 4), libtpu)
    then = past(s, history, NOW)
    assert [then.value(USED, d.key) for d in s.devices] == list(range(1, 9))
    assert [then.value(DUTY, d.key) for d in s.devices] == [None] * 8
    assert [then.value(DUTY, c.key) for c in s.chips] == [10.0, 20.0, 30.0, 40.0]


def test_what_the_sdk_says_is_in_the_past_too() -> None:
    sdk = said(LIBTPU_SDK, "sdk", tensorcore_utilization_percent=[5.0, 6.0, 7.0, 8.0])
    s, history = moment(chips("v5e", 4), sdk)
    then = past(s, history, NOW)
    assert [then.value(MXU, d.key) for d in s.devices] == [5.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize("generation", ["v3", "v5e", "7x"])
def test_every_value_of_the_present_is_found_under_what_it_is_filed(generation: str) -> None:
    g = by_name(generation)
    assert g is not None
    devices = [float(n) for n in range(1, 4 * g.devices_per_chip + 1)]
    per_chip = [0.5, 1.5, 2.5, 3.5]
    libtpu = said(LIBTPU, PORT, hlo_queue_size=devices, duty_cycle_percent=per_chip)
    sdk = said(LIBTPU_SDK, "sdk", tensorcore_utilization_percent=devices)
    s, history = moment(chips(generation, 4), libtpu, sdk)
    measured = {key: v for key, v in s.values.items() if v.source in (LIBTPU, LIBTPU_SDK)}
    assert measured
    filed = {**{d.key: d.filed for d in s.devices}, **{c.key: c.filed for c in s.chips}}
    for (subject, name), v in measured.items():
        found = [history.at(name, row, NOW, 1.0) for row in filed[subject](name)]
        assert v.value in found, (subject, name)
        assert {n for n in found if n is not None} == {v.value}, (subject, name)
