"""Every recorded machine, from its /sys and its rows of metrics to the snapshot that is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import machines
from support.snapshots import merge

from tpusmi.model import (
    LIBTPU,
    LIBTPU_SDK,
    OK,
    ChipKey,
    Device,
    HostFacts,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Snapshot,
)
from tpusmi.sources.sysfs import Sysfs

NOW_S = 1000.0
ADDRESS = "localhost:8431"
HOST = HostFacts("host", "2026-01-01T00:00:00.000Z", None, None)
MOMENTS = [(n, m.name) for n in machines.names() for m in machines.machine(n).moments]


def rows(moment: machines.Moment) -> Outcome:
    """The usage table as libtpu's metrics server would have said it, unjoined."""
    found = []
    for row in moment.usage:
        for metric, value in (
            ("hbm_used_bytes", row.used_bytes),
            ("hbm_limit_bytes", row.total_bytes),
            ("duty_cycle_percent", row.duty_percent),
        ):
            if value is not None:
                subject = RowKey(ADDRESS, row.id)
                found.append(Reading(metric, subject, value, NOW_S, LIBTPU, 5.0))
    process = holders(moment)[0].key if moment.holders else None
    server = Server(ADDRESS, process, tuple(row.id for row in moment.usage))
    return Outcome(LIBTPU, OK, readings=tuple(found), servers=(server,) if found else ())


def cores(moment: machines.Moment) -> Outcome:
    """The TensorCore table as the SDK would have said it."""
    metric = "tensorcore_utilization_percent"
    found = (Reading(metric, RowKey("sdk", i), p, NOW_S, LIBTPU_SDK, 5.0) for i, p in moment.cores)
    return Outcome(LIBTPU_SDK, OK, readings=tuple(found))


def holders(moment: machines.Moment) -> tuple[Process, ...]:
    return tuple(
        Process(ProcessKey(h.pid, 1), "me", h.name or "?", "live", *(None,) * 3, {}, holds=h.nodes)
        for h in moment.holders
    )


def shown(name: str, moment: machines.Moment, directory: Path) -> Snapshot:
    """The snapshot of that moment: real tree, real source, real merge."""
    chips = Sysfs(machines.unpack(name, directory)).read(0.0)
    held = Outcome("holders", OK, processes=holders(moment))
    return merge([chips, held, rows(moment), cores(moment)], HOST, NOW_S, "1.0")


def measured(snapshot: Snapshot, device: Device) -> dict[str, float | int | None]:
    """What is shown of a device: of itself, else of its chip."""
    found = {}
    for name in ("hbm_used_bytes", "hbm_limit_bytes", "duty_cycle_percent"):
        assert device.chip is not None
        value = snapshot.value(name, device.key)
        found[name] = snapshot.value(name, ChipKey(device.chip)) if value is None else value
    return found


@pytest.mark.parametrize(("name", "when"), MOMENTS)
def test_a_moment_is_shown_with_the_ids_and_totals_of_its_source(
    name: str, when: str, tmp_path: Path
) -> None:
    truth = machines.machine(name)
    moment = truth.moment(when)
    snapshot = shown(name, moment, tmp_path)
    assert len(snapshot.chips) == len(truth.chips)
    assert len(snapshot.devices) == sum(chip.devices for chip in truth.chips)
    assert not [note for source in snapshot.sources for note in source.notes]
    per_row = len(snapshot.devices) // max(1, len(moment.usage))
    for i, row in enumerate(moment.usage):
        for device in snapshot.devices[i * per_row : (i + 1) * per_row]:
            assert device.id == (row.id if per_row == 1 else None)
            assert measured(snapshot, device) == {
                "hbm_used_bytes": row.used_bytes,
                "hbm_limit_bytes": row.total_bytes,
                "duty_cycle_percent": row.duty_percent,
            }


@pytest.mark.parametrize(("name", "when"), MOMENTS)
def test_each_device_is_shown_with_its_node_and_every_process_that_holds_it(
    name: str, when: str, tmp_path: Path
) -> None:
    moment = machines.machine(name).moment(when)
    for device in shown(name, moment, tmp_path).devices:
        holding = {h.pid for h in moment.holders if device.node in h.nodes}
        assert device.node
        assert {owner.pid for owner in device.owners} == holding


@pytest.mark.parametrize(
    ("name", "when"), [(n, w) for n, w in MOMENTS if machines.machine(n).moment(w).cores]
)
def test_the_cores_of_the_sdk_are_joined_by_rank(name: str, when: str, tmp_path: Path) -> None:
    moment = machines.machine(name).moment(when)
    snapshot = shown(name, moment, tmp_path)
    metric = "tensorcore_utilization_percent"
    of_devices = [snapshot.value(metric, d.key) for d in snapshot.devices]
    of_chips = [snapshot.value(metric, c.key) for c in snapshot.chips]
    expected = [percent for _, percent in moment.cores]
    assert expected in (of_devices, of_chips)


def test_rows_of_a_7x_are_of_chips_and_not_copied_to_its_devices(tmp_path: Path) -> None:
    moment = machines.machine("7x-4_tpu-top").moment("shown")
    snapshot = shown("7x-4_tpu-top", moment, tmp_path)
    assert len(snapshot.devices) == 8
    for device in snapshot.devices:
        assert snapshot.value("hbm_limit_bytes", device.key) is None
    totals = [snapshot.value("hbm_limit_bytes", ChipKey(i)) for i in range(4)]
    assert totals == [round(189.5 * 2**30)] * 4


def test_a_machine_nobody_uses_shows_its_nominal_memory_and_no_use(tmp_path: Path) -> None:
    idle = machines.machine("v5p-8_marin").moment("idle, nothing attached")
    snapshot = shown("v5p-8_marin", idle, tmp_path)
    for device in snapshot.devices:
        assert snapshot.value("hbm_used_bytes", device.key) is None
        assert snapshot.value("hbm_limit_bytes", device.key) == 95 * 2**30
        assert snapshot.value("duty_cycle_percent", device.key) is None
