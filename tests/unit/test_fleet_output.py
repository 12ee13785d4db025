"""`tpusmi fleet` as text: the table, the JSON and its schema, CSV, exit codes and usage errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.fleet_hosts import device, fleet, host, process
from support.goldens import same_as_golden

from tpusmi.cli import fleet_output, main
from tpusmi.cli.fleet import parser
from tpusmi.fleet.fleet_figures import FleetSnapshot, HostState
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.groups.group_members import GROUPINGS
from tpusmi.fleet.report.fleet_csv import csv_text
from tpusmi.fleet.report.fleet_table import TableOf, table
from tpusmi.fleet.report.fleetkeys import json_schema, timestamp, to_dict
from tpusmi.fleet.simulated.simulated_fleet import SimulatedFleet
from tpusmi.report.query import Layout
from tpusmi.report.text_grid import Sheet

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "goldens" / "fleet"
SCHEMA = ROOT / "assets" / "tpusmi.fleet.schema.json"
NOW_S = 1_800_000_000.0


@pytest.fixture(scope="module")
def simulated() -> FleetSnapshot:
    """A fleet of which some hosts are down, old, idle or slow."""
    s = SimulatedFleet("v5e-256,v5p-128*2,v6e-8*5", lambda: NOW_S).snapshot()
    return s._replace(took_s=0.5)


def drawn(s: FleetSnapshot, by: str = "job", columns: int | None = None, **more: Any) -> str:
    of = TableOf(by=by, order=more.get("order", "worst"), filter=more.get("filter", ""))
    return table(s, s, of, Sheet(False, columns), more.get("ascii_only", False))


@pytest.mark.golden
@pytest.mark.parametrize("by", GROUPINGS)
def test_the_table_of_groups(simulated: FleetSnapshot, by: str) -> None:
    few = simulated._replace(hosts=simulated.hosts[40:]) if by == "host" else simulated
    text = drawn(few, by).split("\n", 1)[1]  # without the local time
    same_as_golden(text, GOLDENS / f"by-{by}.txt")


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 130])
def test_no_line_is_wider_than_the_terminal(simulated: FleetSnapshot, columns: int) -> None:
    for by in GROUPINGS:
        lines = drawn(simulated, by, columns).splitlines()
        assert max(map(len, lines)) <= columns


def test_the_table_says_that_it_is_simulated_and_in_ascii_it_is_ascii(
    simulated: FleetSnapshot,
) -> None:
    assert drawn(simulated).startswith("SIMULATED ")
    assert drawn(simulated, ascii_only=True).isascii()


def test_a_sum_of_only_some_chips_is_marked_and_what_is_unknown_is_a_dash() -> None:
    known = host("a", devices=(device(0, pid=1, hbm_used_bytes=5 << 30, hbm_limit_bytes=16 << 30),))
    silent = host("b", state=HostState.DOWN, chips=None)
    text = drawn(fleet(known, silent), "slice")
    assert "2 hosts (1 live, 1 down) · ≥1 chips · ≥1 held" in text
    row = next(line for line in text.splitlines() if line.startswith("no slice"))
    assert row.split() == ["no", "slice", "1", "down", "1/2", "≥1", "≥1", "–",
                           "≥5.0/16.0", "GiB", "31", "%", "–", "–", "–"]  # fmt: skip
    assert "b is down: it does not answer" in text


def test_at_least_0_is_unknown() -> None:
    busy = host("a", devices=(device(0, pid=1, idle_s=0.0),))
    text = drawn(fleet(busy, host("b", state=HostState.DOWN, chips=None)))
    assert "≥1 chips · ≥1 held · HBM" in text
    assert "≥0" not in text


def test_the_use_of_some_devices_is_not_shown_beside_the_limit_of_all() -> None:
    known = device(0, hbm_used_bytes=5 << 30, hbm_limit_bytes=16 << 30)
    unknown = device(1, hbm_limit_bytes=16 << 30)
    assert "GiB" not in drawn(fleet(host("a", devices=(known, unknown))), "host")
    assert "≥5.0/16.0 GiB" in drawn(fleet(host("a", devices=(known, device(1)))), "host")


def test_many_hosts_that_are_down_are_counted() -> None:
    hosts = [host(f"h{n:02}", state=HostState.DOWN) for n in range(40)]
    text = drawn(fleet(*hosts))
    assert text.count("is down") == 16
    assert "and 24 more" in text


# -- JSON


def test_the_schema_in_assets_is_the_one_that_the_keys_make() -> None:
    module = "tpusmi.fleet.report.fleetkeys"
    made = subprocess.run(
        [sys.executable, "-m", module], capture_output=True, text=True, check=True
    )
    assert made.stdout == SCHEMA.read_text(), f"python -m {module} > assets/{SCHEMA.name}"


def test_the_schema_is_a_schema_and_the_json_obeys_it(simulated: FleetSnapshot) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema)
    whole = json.loads(json.dumps(to_dict(simulated), allow_nan=False))
    assert valid.is_valid(whole)
    assert whole["timestamp"] == "2027-01-15T08:00:00.000Z"
    assert whole["simulated"] is True
    for wrong in ({"schema": 2}, {"hosts": None}, {"took_s": "1"}):
        assert not valid.is_valid({**whole, **wrong})


def test_unknown_is_null_and_numbers_keep_their_kind() -> None:
    one = device(0, pid=7, job="train.py", hbm_used_bytes=5.0, duty_cycle_percent=97)
    s = fleet(host("a", devices=(one,), processes=(process(7, **{"step_time_s.mean": 0.25}),)))
    (made,) = to_dict(s)["hosts"]
    (device_keys,), (process_keys,) = made["devices"], made["processes"]
    assert device_keys["hbm_used_bytes"] == 5
    assert isinstance(device_keys["hbm_used_bytes"], int)
    assert device_keys["duty_cycle_percent"] == 97.0
    assert device_keys["idle_s"] is None
    assert (process_keys["step_time_s"], process_keys["steps"]) == (0.25, None)
    assert (made["slice"], made["topology"], made["held_chips"]) == (None, None, None)


def test_json_has_memory_that_is_known_of_whole_chips_alone_beside_that_of_devices() -> None:
    shared = {"hbm_used_bytes": 3e9, "hbm_limit_bytes": 16e9}
    s = fleet(host("v2", devices=[device(0, of_chip=shared), device(1, hbm_used_bytes=1e9)]))
    of_chip, own = to_dict(s)["hosts"][0]["devices"]
    assert (of_chip["hbm_used_bytes"], own["hbm_used_bytes"]) == (None, 1_000_000_000)
    assert of_chip["chip_hbm_used_bytes"] == 3_000_000_000
    assert of_chip["chip_hbm_limit_bytes"] == 16_000_000_000
    assert (own["chip_hbm_used_bytes"], own["chip_hbm_limit_bytes"]) == (None, None)


def test_json_has_the_jobs_and_slices_with_totals_that_say_how_much_is_known() -> None:
    used = {"hbm_used_bytes": 5 << 30, "hbm_limit_bytes": 16 << 30}
    live = host("a", devices=(device(0, pid=1, job="train.py", **used),), slice="s")
    silent = host("b", state=HostState.DOWN, chips=None, slice="s")
    made = to_dict(fleet(live, silent))["groups"]
    assert [(g["by"], g["name"], g["hosts"]) for g in made] == [
        ("job", "no job", ["b"]),
        ("job", "train.py", ["a"]),
        ("slice", "s", ["a", "b"]),
    ]
    whole = made[2]
    assert whole["states"] == {"live": 1, "old": 0, "down": 1, "pending": 0}
    assert whole["chips"] == {"value": 1, "known": 1, "of": 2}
    assert whole["hbm_used_bytes"] == {"value": 5 << 30, "known": 1, "of": 2}
    assert whole["memory_percent"] == {"value": 31.25, "known": 1, "of": 2}
    assert whole["duty_cycle_percent"] == {"value": None, "known": 0, "of": 2}
    assert (whole["step_time_s"], whole["stragglers"]) == (None, [])


def test_a_time_has_milliseconds_and_is_in_utc() -> None:
    assert timestamp(1_800_000_000.0625) == "2027-01-15T08:00:00.062Z"


# -- CSV


def test_csv_has_a_line_for_each_device_and_one_for_a_host_without_any() -> None:
    one = device(0, pid=7, job="a,b", hbm_used_bytes=5 << 30, duty_cycle_percent=97.4)
    hosts = host("a", devices=(one, device(1))), host("b", state=HostState.DOWN, age_s=None)
    text = csv_text(fleet(*hosts), Layout(), with_header=True)
    head, first, second, third = (line.split(", ") for line in text.splitlines())
    assert {len(line) for line in (head, first, second, third)} == {23}
    rows = [dict(zip(head, line, strict=True)) for line in (first, second, third)]
    assert [row["hostname"] for row in rows] == ["a", "a", "b"]
    assert rows[0]["job"] == "a;b"
    assert rows[0]["memory.used [MiB]"] == "5120 MiB"
    assert rows[0]["utilization.gpu [%]"] == "97 %"
    assert rows[1]["memory.used [MiB]"] == rows[2]["index"] == rows[2]["age [s]"] == "[N/A]"
    assert rows[2]["state"] == "down"


def test_csv_without_header_and_units() -> None:
    s = fleet(host("a", devices=(device(0, duty_cycle_percent=50.0),)))
    text = csv_text(s, Layout(header=False, units=False), with_header=True)
    assert text.count("\n") == 1
    assert "%" not in text


# -- the command


def run(*words: str) -> int:
    return main(["fleet", *words])


def test_without_a_source_it_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == run("--once") == 2
    said = capsys.readouterr().err
    for option in ("--prometheus http", "--hosts tpu", "--hosts @", "--simulate v5e"):
        assert option in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--simulate x", "unknown accelerator type"),
        ("--simulate 16 --match a=b", "--match selects series of a Prometheus server"),
        ("--simulate 16 --http-config f", "a simulated fleet has none"),
        ("--simulate 16 --sort up", "--sort takes worst, name"),
        ("--simulate 16 --filter ~(", "--filter: "),
        ("--simulate 16 --group rack", "--group"),
        ("--simulate 16 --once --count 2", "leave out either"),
        ("--simulate 16 --format xml", "is not csv"),
        ("--simulate 16 --json --csv", "not allowed with"),
        ("--simulate 16 --json --format csv", "leave out --once and --json"),
        ("--simulate 16 --hosts a", "not allowed with"),
        ("--prometheus http://ann:secret@a:9090", "--http-config"),
        ("--prometheus ftp://a", "http"),
        ("--prometheus http://a --match {", "matcher"),
        ("--hosts https://ann:secret@a", "--http-config"),
        ("--hosts ,", "exporter"),
        ("--hosts a --http-config /does/not/exist", "/does/not/exist"),
    ],
)
def test_wrong_usage_gets_a_sentence_without_secrets(
    capsys: pytest.CaptureFixture[str], words: str, why: str
) -> None:
    assert run(*words.split()) == 2
    said = capsys.readouterr().err
    assert why in said
    assert "secret" not in said


def test_json_csv_and_table_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--simulate", "v5e-16", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["hosts"]) == 4
    assert run("--simulate", "v5e-16", "--csv", "--filter", "host=v5e-16-0-w1") == 0
    assert capsys.readouterr().out.count("\n") == 1 + 4
    for csv in ([], ["--csv"]):
        assert run("--simulate", "v5e-16", *csv, "--format", "csv,noheader") == 0
        assert capsys.readouterr().out.count("\n") == 16
    assert run("--simulate", "v5e-16", "--group", "slice") == 0
    assert "v5e-16-0" in capsys.readouterr().out


def test_a_loop_prints_the_header_once_and_json_a_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    often = ("--simulate", "1", "--loop", "0.1", "--count", "3")
    assert run(*often, "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len({json.loads(line)["timestamp"] for line in lines}) == len(lines) == 3
    assert run(*often, "--csv") == 0
    assert capsys.readouterr().out.count("timestamp") == 1


def test_a_filter_that_fits_no_host_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--simulate", "4", "--filter", "host=nobody") == 1
    assert "no host matches the filter host=nobody" in capsys.readouterr().err


class _Source:
    """Answers with the given snapshots, the last one for ever; an error is raised."""

    label = "a source"
    no_past = ""

    def __init__(self, *answers: FleetSnapshot | FleetError) -> None:
        self._answers = list(answers)

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, FleetError):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (FleetError("a:9090 does not answer"), 4, "a:9090 does not answer"),
        (fleet(), 1, "knows no host"),
        (fleet(host("a", state=HostState.DOWN)), 4, "no host answers: a: it does not answer"),
        (fleet(host("a", state=HostState.OLD), host("b", state=HostState.DOWN)), 0, ""),
    ],
)
def test_the_exit_code_says_what_is_there(
    capsys: pytest.CaptureFixture[str],
    answer: FleetSnapshot | FleetError,
    code: int,
    said: str,
) -> None:
    options = parser().parse_args(["--prometheus", "a", "--json"])
    assert fleet_output.run(options, _Source(answer)) == code  # type: ignore[arg-type]
    err = capsys.readouterr().err
    assert said in err
    assert bool(err) == bool(said)


def test_a_server_without_a_host_that_matches_is_not_blamed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = parser().parse_args(["--prometheus", "a", "--json", "--match", "cluster='b'"])
    assert fleet_output.run(options, _Source(fleet())) == 1  # type: ignore[arg-type]
    assert capsys.readouterr().err == "tpusmi: a test knows no host that matches --match\n"


def test_a_name_without_addresses_is_hosts_that_do_not_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = fleet()._replace(problems=("the name workers cannot be looked up",))
    options = parser().parse_args(["--hosts", "@workers", "--json"])
    assert fleet_output.run(options, _Source(nothing)) == 4  # type: ignore[arg-type]
    assert capsys.readouterr().err == (
        "tpusmi: no host answers: the name workers cannot be looked up\n"
    )


def test_a_loop_goes_on_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    options = parser().parse_args(["--hosts", "a", "--json", "--loop", "0.1", "--count", "2"])
    source = _Source(FleetError("gone"), fleet(host("a")))
    assert fleet_output.run(options, source) == 0  # type: ignore[arg-type]
    printed = capsys.readouterr()
    assert (printed.err, len(printed.out.splitlines())) == ("tpusmi: gone\n", 1)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--hosts", "a", "--time", "5m"], "--time needs a past: exporters have none"),
        (["--simulate", "4", "--time", "5m", "--loop"], "--time shows one moment"),
        (["--simulate", "4", "--at", "5m", "--count", "2"], "--time shows one moment"),
        (["--simulate", "4", "--time", "soon"], "soon is not a time"),
    ],
)
def test_a_time_that_cannot_be_shown_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert run(*words) == 2
    assert why in capsys.readouterr().err


def test_time_prints_one_moment_of_the_past(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--simulate", "v5e-64", "--time", "1790000000", "--interval", "1", "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    printed = json.loads(line)
    assert printed["timestamp"] == "2026-09-21T14:13:20.000Z"
    assert {h["state"] for h in printed["hosts"]} == {"live"}
