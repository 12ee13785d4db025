"""The plain views, byte for byte; and what goldens cannot prove: that JSON and CSV are well
formed.
"""

from __future__ import annotations

import csv as csvlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from support import snapshots
from support.goldens import same_as_golden
from support.schemas import strict_schema
from support.snapshots import GIB

from tpusmi.actions.end import Order
from tpusmi.actions.plan import Me, Request, make_plan
from tpusmi.model import CHIP, DEVICE_METRICS, METRICS, PROCESS_METRICS, Snapshot
from tpusmi.report import kill_text, plain_table, ps_text, query, words
from tpusmi.report.full_report import full_report
from tpusmi.report.schema import json_schema
from tpusmi.report.select import Selection, selected
from tpusmi.report.stream_rows import Stream, columns_of
from tpusmi.report.text_grid import CYAN, DIM, GREEN, PLAIN, RED, YELLOW, Sheet
from tpusmi.report.topology_matrix import matrix

GOLDENS = Path(__file__).parent.parent / "goldens"
ASSETS = Path(__file__).parent.parent.parent / "assets"


def csv(names: str, of_devices: bool, layout: str = "csv") -> Callable[[Snapshot], str]:
    def text(s: Snapshot) -> str:
        known = query.device_fields() if of_devices else query.process_fields()
        columns, shape = query.parse_query(names, known), query.parse_format(layout)
        head = query.csv_header(columns, shape) if shape.header else ""
        return head + query.csv_rows(s, s.devices if of_devices else s.processes, columns, shape)

    return text


def ps(tree: bool, ascii_only: bool = False, columns: int | None = None) -> Callable[..., str]:
    def text(s: Snapshot) -> str:
        shown = ps_text.view(s, ps_text.Filters())
        return ps_text.text(shown, Sheet(False, columns), ascii_only, tree)

    return text


def ps_json(s: Snapshot) -> str:
    told = ps_text.to_dict(ps_text.view(s, ps_text.Filters()))
    return json.dumps(told["holding"], indent=1) + "\n"


def kill(s: Snapshot) -> str:
    """What would be said before all chips' holders are ended by ann."""
    chips = tuple(c.index for c in s.chips) or (0,)
    plan = make_plan(s, Request((7,), chips), Me(1234, frozenset(), frozenset({1000})))
    every = make_plan(s, Request((), chips, all_users=True), Me(4321, frozenset(), frozenset()))
    return "\n".join(kill_text.plan_text(s, p, Order()) for p in (plan, every))


VIEWS: dict[str, Callable[[Snapshot], str]] = {
    "table.txt": plain_table.table,
    "table-ascii.txt": lambda s: plain_table.table(s, ascii_only=True),
    "table-color.txt": lambda s: plain_table.table(s, color=True),
    "list.txt": plain_table.device_list,
    "json": lambda s: json.dumps(s.to_dict(), indent=1) + "\n",
    "ps.txt": ps(tree=True),
    "ps-flat-ascii.txt": ps(tree=False, ascii_only=True, columns=80),
    "ps.json": ps_json,
    "kill.txt": kill,
    "devices.csv": csv("timestamp, index,name,pid,memory.used,memory.free,hbm_used_bytes,"
                         "utilization.gpu,power.draw,coords,libtpu_version,uuid", True),
    "chips.csv": csv("index,chip,node,pids,utilization.gpu,chip.duty_cycle_percent,"
                       "chip.idle_s,utilization.tensorcore,mfu_percent,hlo_queue_size,"
                       "hlo_execution_time_us.p50,pci.bus_id,pcie_link,throttle.score,"
                       "ici.health.worst", True),
    "processes.csv": csv("pid,process_name,used_memory,steps_per_s,step_time_s.p95,state", False),
    "nounits.csv": csv("index,memory.used,memory.total", True, "csv,noheader,nounits"),
    "help-devices.txt": lambda s: query.help_text(query.device_fields()),
    "help-processes.txt": lambda s: query.help_text(query.process_fields()),
    "by-device.csv": csv("gpu_uuid,gpu_name,gpu_bus_id,pid,used_memory,process_name", False),
    # In local time, wherever that is.
    "report.txt": lambda s: re.sub(r"\n(Timestamp.*: ).*", r"\n\1…", full_report(s)),
    "dmon.txt": lambda s: Stream(columns_of("pumve")).text(s),
    "pmon.txt": lambda s: Stream(columns_of("um"), of_processes=True).text(s),
    "topo.txt": matrix,
}  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("moment", ["everything", "machine", "nothing"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_its_golden(view: str, moment: str) -> None:
    same_as_golden(VIEWS[view](getattr(snapshots, moment)()), GOLDENS / f"{moment}.{view}")


@pytest.mark.parametrize("moment", [snapshots.everything, snapshots.machine, snapshots.nothing])
def test_the_plain_object_is_of_plain_types(moment: Callable[[], Snapshot]) -> None:
    def check(value: object) -> None:
        assert type(value) in (dict, list, str, int, float, bool, type(None)), repr(value)
        for item in (
            value.values() if isinstance(value, dict) else value if type(value) is list else ()
        ):
            check(item)

    check(moment().to_dict())


@pytest.mark.parametrize("moment", [snapshots.everything, snapshots.machine, snapshots.nothing])
def test_the_json_obeys_the_schema_in_assets(moment: Callable[[], Snapshot]) -> None:
    schema = json.loads((ASSETS / "tpusmi.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    found = json.loads(json.dumps(moment().to_dict(), allow_nan=False))
    jsonschema.validate(found, schema)
    jsonschema.validate(found, strict_schema())
    jsonschema.validate({**found, "of_a_later_version": 1}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "misspelt": 1}, strict_schema())


def test_the_schema_in_assets_is_the_one_the_metrics_make() -> None:
    committed = json.loads((ASSETS / "tpusmi.schema.json").read_text())
    assert committed == json_schema(), "python -m tpusmi.report.schema > assets/tpusmi.schema.json"


def test_the_schema_refuses_a_zero_where_a_null_or_a_string_is_wrong() -> None:
    wrong = snapshots.everything().to_dict()
    wrong["devices"][0]["hbm_used_bytes"] = "12 GiB"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, json_schema())


def test_every_metric_is_a_key_of_its_scope_and_unknown_ones_are_null() -> None:
    found = snapshots.everything().to_dict()
    for metrics, row in (
        (DEVICE_METRICS, found["devices"][1]),
        (PROCESS_METRICS, found["processes"][1]),
    ):
        for m in metrics:
            name, _, part = m.name.partition(".")
            assert (row[name][part] if part else row[name]) in (None, 0, 1536)
    assert found["devices"][1]["hbm_used_bytes"] is None


def test_every_known_value_has_its_witness() -> None:
    found = snapshots.everything().to_dict()
    device = found["devices"][0]
    plain = (m.name for m in DEVICE_METRICS if "." not in m.name)
    known = {name for name in plain if device[name] is not None}
    assert device["provenance"].keys() == known
    assert device["provenance"]["hbm_used_bytes"] == {
        "source": "agent",
        "age_s": 0.4,
        "stale": False,
    }


def test_a_dead_job_shows_what_its_devices_held_last_but_not_among_the_devices() -> None:
    found = snapshots.everything().to_dict()
    dead = found["processes"][-1]
    assert dead["state"] == "dead"
    assert dead["last_devices"][0]["hbm_used_bytes"] == 15 * snapshots.GIB
    assert all(d["pid"] != dead["pid"] for d in found["devices"])


def test_every_csv_line_has_as_many_fields_as_the_header() -> None:
    text = VIEWS["devices.csv"](snapshots.everything()) + VIEWS["processes.csv"](
        snapshots.nothing()
    )
    lines = list(csvlib.reader(text.splitlines(), skipinitialspace=True))
    assert {len(line) for line in lines[:-1]} == {12}


@pytest.mark.parametrize("names", ["index,nonsense", "", " , "])
def test_a_query_for_nothing_known_is_refused(names: str) -> None:
    with pytest.raises(query.QueryError, match="is not a valid field to query"):
        query.parse_query(names, query.device_fields())


@pytest.mark.parametrize("text", ["xml", "noheader", "csv,wide"])
def test_a_format_that_is_not_csv_is_refused(text: str) -> None:
    with pytest.raises(query.QueryError):
        query.parse_format(text)


def test_every_metric_can_be_queried_under_its_own_name() -> None:
    both = {**query.device_fields(), **query.process_fields()}
    names = {f"chip.{m.name}" if m.scope == CHIP else m.name for m in METRICS}
    assert names <= both.keys()


def test_no_line_of_the_ascii_table_needs_more_than_ascii() -> None:
    plain_table.table(snapshots.everything(), ascii_only=True).encode("ascii")


@pytest.mark.parametrize("columns", [300, 120, 100, 80, 72, 60, 40, 12])
@pytest.mark.parametrize("moment", [snapshots.everything, snapshots.machine])
def test_no_row_of_the_table_is_wider_than_the_terminal(
    moment: Callable[[], Snapshot], columns: int
) -> None:
    fitted = rows(plain_table.table(moment(), columns=columns))
    whole = rows(plain_table.table(moment()))
    assert len(fitted) == len(whole)
    assert max(map(len, fitted)) <= columns
    if columns == 300:
        assert fitted == whole


def test_a_narrow_table_keeps_what_people_come_for() -> None:
    text = plain_table.table(snapshots.machine(), columns=80)
    for title in ("DEV", "PID", "MEMORY", "MXU", "DUTY", "BW", "USER", "COMMAND"):
        assert title in text


def rows(text: str) -> list[str]:
    """The lines of the tables, without the sentences around them."""
    return [line for block in text.split("\n\n")[1:] for line in block.splitlines() if is_row(line)]


def is_row(line: str) -> bool:
    return not line.startswith(("!", '"', "agent:", "libtpu", "holders:", "  what to do:"))


@pytest.mark.parametrize(
    ("wanted", "pids", "devices"),
    [
        (Selection(), [4321, 5000, 999], 3),
        (Selection(users=("ann",)), [4321, 999], 2),
        (Selection(pids=(5000,)), [5000], 1),
        (Selection(devices=("0-1",)), [4321, 5000], 3),
        (Selection(devices=("0",)), [4321, 5000], 2),
        (Selection(devices=("tpu:9",)), [4321], 1),
        (Selection(devices=("cpu:8@5000",)), [5000], 1),
        (Selection(users=("nobody",)), [], 0),
    ],
)
def test_a_selection_keeps_what_was_asked_for(
    wanted: Selection, pids: list[int], devices: int
) -> None:
    found = selected(snapshots.everything(), wanted)
    assert [p.pid for p in found.processes] == pids
    assert len(found.devices) == devices
    assert all(n.pid in pids for n in found.warnings)


@pytest.mark.parametrize(
    ("wanted", "pids", "devices"),
    [
        (Selection(visible_chips=(0,)), [4321], 2),
        (Selection(visible_chips=(1, 2)), [4321, 5000], 4),
        (Selection(visible_chips=(0, 1), chips=(1, 2)), [4321], 2),
        (Selection(visible_nodes=("/dev/accel2",)), [5000], 2),
        (Selection(visible_chips=(9,)), [], 0),
        # Users, processes and text keep the devices of the machine in sight.
        (Selection(pids=(5000,)), [5000], 8),
        (Selection(users=("nobody",)), [], 8),
        (Selection(pids=(4321,), devices=("6-7",)), [], 2),
    ],
)
def test_a_selection_of_processes_leaves_the_devices_and_one_of_devices_takes_their_processes(
    wanted: Selection, pids: list[int], devices: int
) -> None:
    found = selected(snapshots.machine(), wanted)
    assert [p.pid for p in found.processes] == pids
    assert len(found.devices) == devices


def test_output_without_processes_has_the_devices_of_the_selected_ones_alone() -> None:
    s = snapshots.machine()
    found = selected(s, Selection(pids=(5000,)), devices_alone=True)
    assert [d.index for d in found.devices] == [4, 5]
    assert selected(s, Selection(chips=(3,)), devices_alone=True).devices == s.devices[6:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (words.size(None), "–"),
        (words.size(0), "0 B"),
        (words.size(1023), "1023 B"),
        (words.size(1536), "1.5 KiB"),
        (words.size(16_909_332_480), "15.7 GiB"),
        (words.size_pair(12 * 1024**3, 16_909_332_480), "12.0/15.7 GiB"),
        (words.size_pair(None, 1024**3), "–/1.0 GiB"),
        (words.size_pair(1024, None), "1.0 KiB"),
        (words.size_pair(None, None), "–"),
        (words.size_pair(0, 0), "0 B"),
        (words.size_pair(1024**3, 16 * 1024**3, nominal=True), "1.0/~16.0 GiB"),
        (words.command("/usr/bin/python train.py --x=/a/b"), "python train.py --x=/a/b"),
        (words.ranges([1, 0, 1, 2]), "0-2"),
        (words.size_pair(5 << 30, 0), "5.0 GiB"),
        (words.size(1024**2 - 1), "1.0 MiB"),
        (words.duration(0.99951), "1.00 s"),
        (words.duration(59.9), "59.9 s"),
        (words.duration(59.97), "1m00s"),
        (words.duration(119.9), "2m00s"),
        (words.count(999_999), "1.0M"),
        (words.count(2_500_000_000), "2.5G"),
        (words.rate(0.004), "0.004"),
        (words.rate(0.0), "0.00"),
        (words.duration(None), "–"),
        (words.duration(0.0), "0 s"),
        (words.duration(1e-13), "0 s"),
        (words.duration(6e-9), "0.01 µs"),
        (words.duration(0.0123), "12.3 ms"),
        (words.duration(180), "3m00s"),
        (words.duration(9000), "2h30m"),
        (words.elapsed(None), "–"),
        (words.elapsed(-1), "0s"),
        (words.elapsed(59.9), "59s"),
        (words.elapsed(125), "2m05s"),
        (words.elapsed(720), "12m"),
        (words.elapsed(11_100), "3h05m"),
        (words.elapsed(200_000), "2d07h"),
        (words.flops(1.234e14), "123 TFLOP/s"),
        (words.flops(5.1e8), "510 MFLOP/s"),
        (words.flops(0.0), "0 FLOP/s"),
        (words.flops(None), "–"),
        (words.nodes(["/dev/vfio/10", "/dev/vfio/9", "/dev/accel0"]), "/dev/vfio/9-10 /dev/accel0"),
        (words.nodes(["/dev/odd"]), "/dev/odd"),
        (words.nodes([]), ""),
        (words.idle(0.0), "0 s"),
        (words.idle(None), "–"),
        (words.idle(2.5), "2.50 s"),
        (words.microseconds(812.5), "812 µs"),
        (words.megabits(12_305.96), "12.3 Gbit/s"),
        (words.megabits(None), "–"),
        (words.percent(None), "–"),
        (words.percent(0), "0 %"),
        (words.percent(0.04), "<0.1 %"),
        (words.percent(9.96), "10 %"),
        (words.percent(97.6), "98 %"),
        (words.rate(None), "–"),
        (words.rate(3.214), "3.21"),
        (words.count(None), "–"),
        (words.count(9999), "9999"),
        (words.count(12_345), "12.3k"),
        (words.ranges([]), "–"),
        (words.ranges([3, 0, 1, 2, 8]), "0-3,8"),
    ],
)
def test_numbers_read_as_a_person_says_them(text: str, expected: str) -> None:
    assert text == expected


ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_colors_change_no_character_of_the_table() -> None:
    for moment in (snapshots.machine(), snapshots.everything()):
        for width in (None, 40, 80):
            colored = plain_table.table(moment, color=True, columns=width)
            assert ESCAPE.sub("", colored) == plain_table.table(moment, columns=width)


@pytest.mark.parametrize(
    ("used_gib", "style"), [(1.0, GREEN), (12.7, GREEN), (13.0, YELLOW), (15.5, RED)]
)
def test_memory_in_the_table_has_the_color_of_how_full_it_is(used_gib: float, style: str) -> None:
    s = snapshots.machine()
    key = s.devices[0].key
    value = s.values[key, "hbm_used_bytes"]
    limit = value._replace(value=16 * GIB)
    used = value._replace(value=int(used_gib * GIB), stale=False)
    more = {(key, "hbm_used_bytes"): used, (key, "hbm_limit_bytes"): limit}
    table = plain_table.table(s._replace(values={**s.values, **more}), color=True)
    (line,) = [line for line in table.splitlines() if line.startswith(s.devices[0].name)]
    assert f"{style}{used_gib:.1f}/16.0 GiB{PLAIN}" in line


def test_an_old_number_in_the_table_is_dim_and_a_share_has_the_color_of_its_bar() -> None:
    s = snapshots.machine()
    key = s.devices[0].key
    value = s.values[key, "hbm_used_bytes"]._replace(value=37.0, stale=False)
    name = "duty_cycle_percent"
    for stale, style in ((False, CYAN), (True, DIM)):
        values = {**s.values, (key, name): value._replace(stale=stale)}
        table = plain_table.table(s._replace(values=values), color=True)
        assert f"{style}37 %{PLAIN}" in table
