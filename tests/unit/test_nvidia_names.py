"""nvidia-smi's names of fields: each is accepted, those that a TPU has as well have its values."""

from __future__ import annotations

import re

import pytest
from support import snapshots

from tpusmi.model import Snapshot
from tpusmi.report import query
from tpusmi.report.stream_rows import Stream, columns_of

FREQUENT = (
    "timestamp,driver_version,count,index,name,uuid,serial,pci.bus_id,pci.domain,pci.bus,pci.device,"
    "pstate,fan.speed,temperature.gpu,temperature.memory,power.draw,power.limit,enforced.power.limit,"
    "utilization.gpu,utilization.memory,memory.total,memory.reserved,memory.used,memory.free,"
    "clocks.sm,clocks.mem,clocks.gr,clocks.max.sm,clocks_event_reasons.active,compute_mode,"
    "clocks_throttle_reasons.hw_slowdown,mig.mode.current,persistence_mode,ecc.mode.current,"
    "ecc.errors.uncorrected.volatile.total,retired_pages.pending,pcie.link.gen.current,"
    "pcie.link.width.current,vbios_version,encoder.stats.sessionCount,display_active"
)


def lines(s: Snapshot, names: str, of_devices: bool = True) -> list[str]:
    fields = query.device_fields() if of_devices else query.process_fields()
    items = s.devices if of_devices else [p for p in s.processes if p.is_living]
    columns = query.parse_query(names, fields)
    layout = query.Layout()
    return (query.csv_header(columns, layout) + query.csv_rows(s, items, columns, layout)).split(
        "\n"
    )


def test_a_query_of_many_fields_of_nvidia_smi_is_answered_with_a_value_or_that_there_is_none() -> (
    None
):
    header, first, *_ = lines(snapshots.machine(), FREQUENT)
    assert [name.partition(" [")[0] for name in header.split(", ")] == FREQUENT.split(",")
    row = dict(zip(FREQUENT.split(","), first.split(", "), strict=True))
    assert row["pstate"] == row["clocks.sm"] == row["serial"] == "[N/A]"
    assert (row["count"], row["pci.bus_id"], row["pci.device"]) == ("8", "0000:00:04.0", "0x04")
    assert (row["pcie.link.gen.current"], row["pcie.link.width.current"]) == ("3", "16")
    assert "clocks.sm [MHz]" in header
    assert "fan.speed [%]" in header


def test_a_field_that_no_tpu_has_hides_none_that_it_has() -> None:
    fields = query.device_fields()
    absent = [name for name, field in fields.items() if not field.help]
    assert len(absent) > 170
    assert not {"memory.used", "utilization.gpu", "uuid", "gpu_bus_id", "power.draw"} & {*absent}
    help_text = query.help_text(fields)
    quoted = re.findall(r'"([^"]+)"', help_text)
    assert {*quoted} == {*fields}
    assert len(quoted) == len(fields)
    assert help_text.index(query.ABSENT_HEAD) < help_text.index('"pstate"')


def test_the_memory_of_a_chip_is_the_same_with_and_without_a_job() -> None:
    rows = lines(snapshots.machine(), "index,memory.total")[1:-1]
    assert {row.partition(", ")[2] for row in rows} == {"16384 MiB"}


@pytest.mark.parametrize(
    ("used", "limit"),
    [(9 << 30, 15 << 30), (2**20 * 2 // 5, (15 << 30) + 2**20 * 3 // 5), (3 << 19, (15 << 30) + 1)],
)
def test_used_free_and_reserved_memory_are_the_total(used: int, limit: int) -> None:
    s = snapshots.machine()
    key = s.devices[0].key
    bytes_of = {"hbm_used_bytes": used, "hbm_limit_bytes": limit}
    values = dict(s.values)
    for name, count in bytes_of.items():
        values[key, name] = s.values[key, name]._replace(value=count, source="libtpu")
    s = s._replace(values=values)
    row = lines(s, "memory.used,memory.free,memory.reserved,memory.total")[1].split(", ")
    in_use, free, reserved, total = (int(cell.removesuffix(" MiB")) for cell in row)
    assert in_use == round(used / 2**20)
    assert in_use + free + reserved == total == 16384
    line = Stream(columns_of("m")).text(s).splitlines()[2].split()
    assert line[1:] == [str(in_use), str(free)], "dmon has the same numbers"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("memory.usd", "memory.used"), ("clocks.sn", "clocks.sm"), ("uid", "uuid"),
        ("INDEX", "index"), ("Memory.Used", "memory.used"),
    ],
)  # fmt: skip
def test_an_unknown_field_is_told_with_the_nearest_and_the_option_that_lists_them(
    name: str, near: str
) -> None:
    with pytest.raises(query.QueryError) as error:
        query.parse_query(f"index,{name}", query.device_fields())
    assert str(error.value) == (
        f'Field "{name}" is not a valid field to query. Did you mean "{near}"? '
        "--help-query-tpu lists the fields."
    )


def test_an_unknown_field_that_resembles_none_is_told_without_one_however_long_it_is() -> None:
    with pytest.raises(query.QueryError) as error:
        query.parse_query("q" * 100_000, query.device_fields())
    assert str(error.value).endswith("field to query. --help-query-tpu lists the fields.")


def test_a_process_has_a_row_for_each_device_where_the_devices_are_asked_for() -> None:
    s = snapshots.machine()
    by_device = lines(s, "gpu_uuid,gpu_index,pid,used_memory", of_devices=False)[1:-1]
    pids = [row.split(", ")[2] for row in by_device]
    assert pids.count("4321") == len([d for d in s.devices if d.owners[:1] == (snapshots.TRAIN,)])
    uuids = dict(row.split(", ")[::-1] for row in lines(s, "index,uuid")[1:-1])
    assert all(
        uuids[row.split(", ")[0]] == row.split(", ")[1] for row in by_device if "TPU-" in row
    )


def test_a_process_has_one_row_where_no_device_is_asked_for_and_where_it_has_none() -> None:
    s = snapshots.machine()
    living = [p for p in s.processes if p.is_living]
    assert len(lines(s, "pid,used_memory", of_devices=False)[1:-1]) == len(living)
    bare = s._replace(devices=(), dead_devices=())
    rows = lines(bare, "pid,gpu_uuid,gpu_name,gpu_bus_id", of_devices=False)[1:-1]
    on_tpu = [str(p.pid) for p in living if not p.loaded_only]
    assert [row.partition(", ")[0] for row in rows] == on_tpu != [str(p.pid) for p in living]
    assert {row.partition(", ")[2] for row in rows} == {"[N/A], [N/A], [N/A]"}
