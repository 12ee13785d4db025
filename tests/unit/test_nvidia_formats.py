"""`-q`, `dmon`, `pmon` and `topo -m`: the formats of nvidia-smi, with a TPU's values."""

from __future__ import annotations

import pytest
from support import snapshots

from tpusmi.model import ChipKey, Snapshot, Value, Visibility
from tpusmi.report import full_report, query, stream_rows, topology_matrix
from tpusmi.report.stream_rows import HEAD_EVERY, Stream, columns_of
from tpusmi.report.topology_matrix import matrix


def sections(text: str) -> dict[str, dict[str, str]]:
    """The lines of a report by the device that they are below, each by its title."""
    found: dict[str, dict[str, str]] = {"": {}}
    name = ""
    for line in text.splitlines():
        if line and not line.startswith((" ", "=")) and ": " not in line:
            name = line
            found[name] = {}
        elif ": " in line:
            found[name].setdefault(line[:42].strip(), line[44:])
    return found


def test_the_full_report_has_every_device_and_a_colon_in_one_column() -> None:
    s = snapshots.machine()
    text = full_report.full_report(s)
    by_device = sections(text)
    assert by_device[""]["Attached TPUs"] == str(len(s.devices)) == str(len(by_device) - 1)
    assert {
        line.index(":", 40)
        for line in text.splitlines()
        if line.startswith(" ") and ":" in line[40:44]
    } == {42}
    first = by_device["TPU 0000:00:04.0/0"]
    assert first["Product Name"] == "TPU v3"
    assert first["Total"] == "16384 MiB"
    assert first["Power Draw"] == first["TPU Current Temp"] == "N/A"
    assert first["Process ID"] == "4321"


def test_percents_of_the_report_are_whole_as_those_of_nvidia_smi() -> None:
    s = snapshots.machine()
    owner = next(d.owners[0] for d in s.devices if d.owners)
    mfu = Value(37.0528, "agent", 0.5, False)
    text = full_report.full_report(s._replace(values={**s.values, (owner, "mfu_percent"): mfu}))
    assert "MFU                               : 37 %\n" in text


def test_a_part_of_the_report_has_only_the_sections_that_were_chosen() -> None:
    chosen = full_report.sections_of("memory, UTILIZATION,ECC,memory")
    assert chosen == ("MEMORY", "UTILIZATION", "ECC")
    text = full_report.full_report(snapshots.machine(), chosen)
    assert "HBM Memory Usage" in text
    assert "Ecc                                   : N/A" in text
    assert "Product Name" not in text
    assert "Processes" not in text


@pytest.mark.parametrize("text", ["FOO", "", ",", "MEMORY,FOO"])
def test_a_section_that_does_not_exist_is_answered_with_those_that_do(text: str) -> None:
    with pytest.raises(query.QueryError, match="there are PCI, MEMORY, UTILIZATION"):
        full_report.sections_of(text)


def test_a_report_without_devices_says_that_there_is_none() -> None:
    assert sections(full_report.full_report(snapshots.nothing()))[""]["Attached TPUs"] == "0"


def test_a_report_says_none_of_processes_only_where_all_were_looked_at() -> None:
    s = snapshots.machine()
    free = s.devices[0]._replace(owners=())
    nodes = s.visibility.nodes

    def processes(visibility: Visibility) -> str:
        seen = s._replace(devices=(free,), processes=(), visibility=visibility)
        return sections(full_report.full_report(seen, ("PIDS",))).popitem()[1]["Processes"]

    assert processes(Visibility(nodes=nodes)) == "None"
    assert processes(Visibility(nodes=nodes, not_inspected=3)) == "N/A"
    assert processes(Visibility()) == "N/A"


def test_a_cpu_device_of_a_job_is_in_the_report_and_is_not_counted_as_a_tpu() -> None:
    s = snapshots.machine()
    cpu = s.devices[0]._replace(chip=None, node=None, platform="cpu", kind="cpu")
    by_device = sections(full_report.full_report(s._replace(devices=(cpu, s.devices[2]))))
    assert by_device[""]["Attached TPUs"] == "1"
    assert len(by_device) == 3


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def test_dmon_has_a_line_per_device_and_a_dash_for_what_is_unknown() -> None:
    s = snapshots.machine()
    text = Stream(columns_of("pum")).text(s)
    titles, units = (line.removeprefix("#").split() for line in text.splitlines()[:2])
    assert titles == ["tpu", "pwr", "gtemp", "mtemp", "mxu", "duty", "bw", "hbm", "free"]
    assert units == ["Idx", "W", "C", "C", "%", "%", "%", "MiB", "MiB"]
    lines = rows(text)
    assert [line[0] for line in lines] == [str(d.index) for d in s.devices]
    assert {len(line) for line in lines} == {len(titles)}
    assert {cell for line in lines for cell in line[1:4]} == {"-"}
    used = s.value("hbm_used_bytes", s.devices[0].key)
    assert used is not None
    assert lines[0][7] == f"{used / 2**20:.0f}"
    assert len({len(line) for line in text.splitlines()}) == 1


@pytest.mark.parametrize("clock", ["", "D", "T", "DT", "TD"])
def test_the_titles_stand_above_their_columns_with_every_clock(clock: str) -> None:
    s = snapshots.machine()
    lines = Stream(columns_of("um"), clock=clock).text(s).splitlines()
    assert len({len(line) for line in lines}) == 1
    for of_processes in (False, True):
        head, _, row, *_ = Stream(columns_of("um"), of_processes, clock).text(s).splitlines()
        assert head.index("tpu") + 2 == row.index("0", 11 * len(clock))


def test_a_value_of_the_whole_chip_stands_in_the_row_of_its_first_device_alone() -> None:
    s = snapshots.machine()
    values = {k: v for k, v in s.values.items() if k[1] != "duty_cycle_percent"}
    value = s.values[s.devices[0].key, "hbm_used_bytes"]._replace(value=37.0)
    values[ChipKey(0), "duty_cycle_percent"] = value
    lines = rows(Stream(columns_of("u")).text(s._replace(values=values)))
    assert [line[2] for line in lines][:3] == ["37", "-", "-"]


def test_the_titles_come_back_after_some_lines_and_not_with_each_snapshot() -> None:
    s = snapshots.machine()
    stream = Stream(columns_of("u"))
    heads = [stream.text(s).count("# tpu") for _ in range(12)]
    assert heads[:2] == [1, 0]
    again = heads.index(1, 1)
    assert (again - 1) * len(s.devices) < HEAD_EVERY <= again * len(s.devices)


def test_every_letter_of_nvidia_smi_has_columns_and_another_one_is_refused() -> None:
    assert len(columns_of("puctmev")) == sum(map(len, stream_rows.GROUPS.values()))
    for letters in ("x", "", "ux"):
        with pytest.raises(query.QueryError, match="there are p, u, m"):
            columns_of(letters)


def test_pmon_has_a_line_per_process_on_a_device_and_dashes_for_a_free_one() -> None:
    s = snapshots.machine()
    lines = rows(Stream(columns_of("um"), of_processes=True, clock="T").text(s))
    assert [line[1] for line in lines] == [str(d.index) for d in s.devices]
    pids = {line[1]: line[2] for line in lines}
    assert (pids["0"], pids["4"], pids["7"]) == ("4321", "5000", "-")
    free = next(line for line in lines if line[1] == "7")
    assert set(free[2:]) == {"-"}


def test_a_number_of_a_device_that_two_processes_have_is_neither_ones() -> None:
    s = snapshots.machine()
    both = s.devices[0]._replace(owners=(snapshots.TRAIN, snapshots.SERVE))
    lines = rows(Stream(columns_of("m"), of_processes=True).text(s._replace(devices=(both,))))
    assert [line[1] for line in lines] == ["4321", "5000"]
    assert {line[3] for line in lines} == {"-"}


def cells(s: Snapshot) -> list[list[str]]:
    lines = matrix(s).split("\n\nLegend")[0].splitlines()
    assert len({line.count("\t") for line in lines}) == 1
    return [[cell.strip() for cell in line.split("\t")] for line in lines]


def test_the_matrix_is_symmetric_and_each_of_its_codes_is_in_the_legend() -> None:
    s = snapshots.machine()
    head, *lines = cells(s)
    count = len(s.devices)
    assert head[1 : count + 1] == [line[0] for line in lines] == [f"TPU{n}" for n in range(count)]
    ties = [line[1 : count + 1] for line in lines]
    assert ties == [[*column] for column in zip(*ties, strict=True)]
    assert all(ties[n][n] == "X" for n in range(count))
    assert ties[0][1] == "CHP"
    for code in {tie for row in ties for tie in row}:
        assert f"\n  {code} " in topology_matrix.LEGEND


def tie(coords: tuple[tuple[int, ...] | None, ...], **more: object) -> str:
    """How two devices of different chips are connected, by their coordinates."""
    s = snapshots.machine()
    a, b = s.devices[0], s.devices[2]
    devices = (a._replace(coords=coords[0]), b._replace(coords=coords[1], **more))
    return cells(s._replace(devices=devices))[1][2]


def test_only_a_step_within_one_job_makes_neighbors() -> None:
    other = snapshots.machine().devices[2].key._replace(process=snapshots.SERVE)
    assert tie(((0, 0, 0), (1, 0, 0))) == "ICI"
    assert tie(((0, 0, 0), (1, 1, 0))) == "NODE"
    assert tie(((0, 0, 0), (3, 0, 0))) == "NODE"  # the ends of a row may or may not be joined
    assert tie(((0, 0, 0), (1, 0))) == tie(((0, 0, 0), None)) == "NODE"
    assert tie(((0, 0, 0), (1, 0, 0)), key=other) == "NODE"  # its job may count from elsewhere


def test_devices_of_different_numa_nodes_are_apart_and_of_unknown_ones_unknown() -> None:
    s = snapshots.machine()
    for numa, expected in ((1, "SYS"), (None, "?")):
        chips = tuple(c._replace(numa_node=numa) if c.index == 3 else c for c in s.chips)
        line = cells(s._replace(chips=chips))[1]
        assert line[7] == expected
    assert cells(s._replace(chips=()))[1][5] == "?"


def test_the_processors_near_a_chip_are_beside_it_and_unknown_ones_are_said_to_be() -> None:
    s = snapshots.machine()
    chips = (s.chips[0]._replace(cpus="0-47,96-143"), *s.chips[1:])
    lines = cells(s._replace(chips=chips))
    assert lines[0][-2:] == ["CPU Affinity", "NUMA Affinity"]
    assert lines[1][-2:] == ["0-47,96-143", "0"]
    assert lines[3][-2:] == ["N/A", "0"]
