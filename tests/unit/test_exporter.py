"""What a scrape says of a snapshot: names, units and labels, and nothing that is not known."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as of_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as of_text
from support.goldens import same_as_golden
from support.snapshots import TRAIN, everything, machine, many, nothing

from tpusmi.exporter import families as families_module
from tpusmi.exporter import of_processes, of_snapshot
from tpusmi.exporter.catalog import EVERYWHERE, KINDS
from tpusmi.exporter.exposition import Format, accepts_gzip, body, negotiated
from tpusmi.exporter.families import LABEL_MOST, Families
from tpusmi.exporter.job_names import job_name
from tpusmi.exporter.of_snapshot import add_snapshot
from tpusmi.model import (
    HOLDERS,
    METRICS,
    NOMINAL,
    VIEWER,
    DeviceKey,
    Link,
    Notice,
    Outcome,
    Snapshot,
    Status,
    Value,
    Visibility,
    metric,
)
from tpusmi.model.series_names import SERIES

GOLDENS = Path(__file__).parents[1] / "goldens"
LABELS = ("host", "slice", "simulated")


def families(s: Snapshot, with_processes: bool = True) -> Families:
    f = Families({"host": s.host.name})
    add_snapshot(f, s, with_processes)
    return f


def samples(s: Snapshot, form: Format = Format.TEXT) -> dict[str, dict[frozenset[Any], float]]:
    """All that Prometheus reads, by name and labels."""
    text = body(families(s).in_order(), form).decode()
    parse = of_text if form is Format.TEXT else of_openmetrics
    found: dict[str, dict[frozenset[Any], float]] = {}
    for family in parse(text):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            assert labels not in found.setdefault(sample.name, {})
            found[sample.name][labels] = sample.value
    return found


def value(s: Snapshot, name: str, **labels: object) -> float | None:
    """The value of the one sample with these labels; None without one."""
    wanted = {(k, str(v)) for k, v in labels.items()}
    fits = [v for all_, v in samples(s).get(name, {}).items() if wanted <= all_]
    assert len(fits) < 2, fits
    return fits[0] if fits else None


def with_value(s: Snapshot, subject: Any, name: str, v: Value) -> Snapshot:
    return s._replace(values={**s.values, (subject, name): v})


# -- names


def test_the_names_of_all_series_are_these() -> None:
    lines = [f"{k.name} {k.kind} {','.join(k.labels)}\n" for k in KINDS.values()]
    same_as_golden("".join(lines), GOLDENS / "series.txt")


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_name_is_as_prometheus_wants_it(kind: Any) -> None:
    assert re.fullmatch(r"tpusmi_[a-z][a-z0-9_]*", kind.name)
    assert not re.search(r"percent|_us\b|_ms\b|_mib\b|_s$", kind.name)
    assert kind.name.endswith("_total") == (kind.kind == "counter")
    assert kind.name.endswith("_info") == (kind.kind == "info")
    assert not kind.name.endswith(("_count", "_sum", "_bucket"))  # of histograms
    assert kind.help.endswith(".")
    assert not {*kind.labels} & {*EVERYWHERE, "job", "instance", "le", "quantile", "type"}


def test_no_two_metrics_have_one_name() -> None:
    assert len({s.name for s in SERIES.values()}) == len(METRICS)


@pytest.mark.parametrize(
    ("scope", "name", "series", "before", "after"),
    [
        ("device", "hbm_used_bytes", "tpusmi_hbm_used_bytes", 123, 123),
        ("device", "duty_cycle_percent", "tpusmi_duty_cycle_ratio", 29.0, 0.29),
        ("device", "idle_s", "tpusmi_idle_seconds", 2.5, 2.5),
        (
            *("device", "hlo_execution_time_us.p999", "tpusmi_hlo_execution_time_p999_seconds"),
            *(812.5, 0.0008125),
        ),
        ("chip", "throttle_percent", "tpusmi_chip_throttle_ratio", 30.0, 0.3),
        ("process", "compile_s", "tpusmi_process_compile_seconds_total", 93.5, 93.5),
        ("process", "steps_per_s", "tpusmi_process_steps_per_second", 3.21, 3.21),
        ("process", "mfu_percent", "tpusmi_process_mfu_ratio", 41.5, 0.415),
    ],
)
def test_a_value_is_in_the_base_unit_of_its_name(
    scope: str, name: str, series: str, before: float, after: float
) -> None:
    found = SERIES[metric(scope, name)]
    assert (found.name, found.converted(before)) == (series, after)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py --config=big", "train.py"),
        ("/usr/bin/python3.11 -u -X dev /home/ann/my_run.py", "my_run.py"),
        ("python3 -m maxtext.train --lr=1", "maxtext.train"),
        ("python -c import", "python"),
        ("python", "python"),
        ("VLLM::EngineCore", "VLLM::EngineCore"),
        ("/opt/bin/serving --model x", "serving"),
        ("", ""),
        ("python " + "x" * 5000, "x" * 64),
    ],
)
def test_a_job_has_the_name_of_its_program(command: str, name: str) -> None:
    assert job_name(command) == name


# -- values


@pytest.mark.parametrize("snapshot", [everything, machine, nothing], ids=lambda s: s.__name__)
@pytest.mark.parametrize("form", Format)
def test_both_formats_say_the_same(snapshot: Any, form: Format) -> None:
    s = snapshot()
    assert samples(s, form) == samples(s)


def test_every_fresh_value_is_there_and_no_other() -> None:
    s = machine()
    fresh = {(k, n) for (k, n), v in s.values.items() if not v.stale and v.source != NOMINAL}
    assert len(fresh) < len(s.values)
    for d in s.devices:
        for m in METRICS:
            if m.scope == "device":
                measured = s.value(m.name, d.key)
                exported = value(s, SERIES[m].name, chip=d.chip, device=d.index)
                assert (exported is not None) == ((d.key, m.name) in fresh)
                if measured is not None and exported is not None:
                    assert exported == pytest.approx(SERIES[m].converted(measured), rel=1e-8)


def test_unknown_is_absent_and_zero_is_zero() -> None:
    s = everything()
    assert value(s, "tpusmi_hbm_reserved_bytes", device="tpu:8") == 0
    assert value(s, "tpusmi_idle_seconds", device="tpu:8") is None
    assert "tpusmi_idle_seconds" not in samples(s)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_absent(number: float) -> None:
    s = everything()
    key = DeviceKey(TRAIN, 0)
    s = with_value(s, key, "hbm_used_bytes", Value(number, "agent", 0.1, False))
    assert "tpusmi_hbm_used_bytes" not in samples(s)


def test_a_value_that_is_old_is_absent() -> None:
    s = everything()
    key = DeviceKey(TRAIN, 0)
    assert value(s, "tpusmi_hbm_used_bytes", device="tpu:8") == 12 * 1024**3
    s = with_value(s, key, "hbm_used_bytes", Value(1, "agent", 60.0, True))
    assert "tpusmi_hbm_used_bytes" not in samples(s)


@pytest.mark.parametrize("source", [NOMINAL, VIEWER])
def test_a_value_that_no_source_measured_is_absent(source: str) -> None:
    key = DeviceKey(TRAIN, 0)
    s = with_value(everything(), key, "hbm_peak_bytes", Value(1, source, 0.0, False))
    assert "tpusmi_hbm_peak_bytes" not in samples(s)


def test_that_no_holder_was_seen_is_only_said_where_all_could_be_seen() -> None:
    s = machine()
    free = s._replace(processes=())
    assert not s.visibility.is_complete
    assert value(s, "tpusmi_chip_holders", chip=0) == 1
    assert value(free, "tpusmi_chip_holders", chip=0) is None
    complete = s.visibility._replace(
        nodes=tuple(n for c in s.chips for n in c.nodes), not_inspected=0, own_pid_namespace=False
    )
    assert value(free._replace(visibility=complete), "tpusmi_chip_holders", chip=0) == 0


def test_a_source_that_was_denied_is_down_and_one_without_anything_is_up() -> None:
    s = everything()
    assert value(s, "tpusmi_source_up", source="libtpu") == 0
    assert value(s, "tpusmi_source_status", source="libtpu", status="denied") == 1
    absent = s._replace(sources=tuple(o._replace(status="absent") for o in s.sources))
    assert value(absent, "tpusmi_source_up", source="libtpu") == 1


def test_a_process_that_has_ended_or_is_only_claimed_is_absent() -> None:
    s = everything()
    pids = {dict(labels)["pid"] for labels in samples(s)["tpusmi_process_info"]}
    assert pids == {"4321", "5000"}  # the dead one is not there
    claimed = [p._replace(key=p.key._replace(claim="/tmp/x.seg")) for p in s.processes]
    assert "tpusmi_process_info" not in samples(s._replace(processes=tuple(claimed)))


def test_without_processes_there_is_no_series_of_any() -> None:
    names = [f.kind.name for f in families(everything(), with_processes=False).in_order()]
    assert [name for name in names if name.startswith("tpusmi_process_")] == []


# -- what comes from strangers


HOSTILE = 'train "\n} 1\ntpusmi_hbm_used_bytes{evil="1"} 7 \\ \u202e\x1b[2J \udcff end'


def test_hostile_text_stays_inside_of_its_label() -> None:
    s = everything()
    p = s.processes[0]._replace(command=HOSTILE, user=HOSTILE)
    s = s._replace(
        processes=(p, *s.processes[1:]),
        links=(Link(0, HOSTILE, 3),),
        host=s.host._replace(kernel=HOSTILE),
    )
    for form in Format:
        found = samples(s, form)
        assert not any("evil" in dict(labels) for labels in found["tpusmi_hbm_used_bytes"])
        for labels in (dict(labels) for all_ in found.values() for labels in all_):
            assert all(text.isprintable() for text in labels.values()), labels
    (labels,) = samples(s)["tpusmi_ici_link_health"]
    assert dict(labels)["link"].startswith('train " } 1 tpusmi_hbm_used_bytes{evil="1"} 7 \\')


def test_a_label_has_a_limit() -> None:
    f = Families({})
    f.add("ici_link_health", 1, link="x" * 100_000)
    ((labels, _),) = f.in_order()[0].samples.items()
    assert labels == (("link", "x" * LABEL_MOST),)


def test_two_samples_with_the_same_labels_are_one() -> None:
    """Prometheus would reject the whole scrape."""
    s = everything()
    twice = (*s.devices, *s.devices)
    again = samples(s._replace(devices=twice))
    f = families(s._replace(devices=twice))
    assert f.left_out >= len(s.devices)
    assert {**again, "tpusmi_process_devices": 0} == {**samples(s), "tpusmi_process_devices": 0}


def test_a_process_whose_devices_are_unknown_has_no_number_of_them() -> None:
    s = everything()
    assert value(s, "tpusmi_process_devices", pid=TRAIN.pid) == len(s.devices_of(TRAIN)) > 0
    others = tuple(d for d in s.devices if d not in s.devices_of(TRAIN))
    starting = s._replace(devices=others)
    assert value(starting, "tpusmi_process_devices", pid=TRAIN.pid) is None


@pytest.mark.parametrize(
    ("status", "seen", "number"),
    [("ok", 0, 0), ("ok", 2, 2), ("absent", 0, 0), ("failed", 0, None), ("denied", 0, None)],
)
def test_processes_that_nobody_has_looked_for_are_not_0(
    status: str, seen: int, number: int | None
) -> None:
    """As in the first moment, before the processes of the machine were read."""
    holders = Outcome(HOLDERS, Status(status), "", 0.001)
    visible = Visibility(not_inspected=seen)
    s = everything()._replace(sources=(holders,), visibility=visible)
    assert value(s, "tpusmi_not_inspected_processes") == number


def test_a_code_that_only_an_agent_knows_is_called_other() -> None:
    notices = tuple(Notice(f"made_up_{n}", "text", 4321) for n in range(500))
    s = everything()._replace(warnings=notices)
    assert value(s, "tpusmi_notice", code="other", pid=4321) == 500
    assert len(samples(s)["tpusmi_notice"]) == 1


def test_notices_are_counted_by_what_they_are_about() -> None:
    notices = (
        Notice("throttled", "a", chip=1),
        Notice("chip", "b", chip=1),
        Notice("chip", "c", chip=1),
        Notice("unused", "d", 4321, since_s=400.0),
    )
    s = everything()._replace(warnings=notices)
    assert value(s, "tpusmi_notice", code="throttled", chip=1) == 1
    assert value(s, "tpusmi_notice", code="chip", chip=1) == 2
    assert value(s, "tpusmi_notice_age_seconds", code="unused", pid=4321) == 400
    assert len(samples(s)["tpusmi_notice_age_seconds"]) == 1


def test_many_processes_do_not_crowd_out_the_holders_of_the_tpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert of_processes.PROCESSES_MOST <= 128
    monkeypatch.setattr(of_processes, "PROCESSES_MOST", 3)
    s = everything()
    one = s.processes[0]
    others = [one._replace(key=one.key._replace(pid=pid)) for pid in range(100, 110)]
    holder = one._replace(key=one.key._replace(pid=9), holds=("/dev/vfio/0",))
    s = s._replace(processes=(*others, holder))
    pids = {dict(labels)["pid"] for labels in samples(s)["tpusmi_process_info"]}
    assert pids == {"9", "100", "101"}
    assert value(s, "tpusmi_left_out", what="processes") == 8


def test_devices_and_samples_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_snapshot, "DEVICES_MOST", 5)
    s = many(8)
    assert len(samples(s)["tpusmi_device_info"]) == 5
    assert value(s, "tpusmi_left_out", what="devices") == 3
    assert value(s, "tpusmi_left_out", what="chips") == 0
    monkeypatch.setattr(of_snapshot, "CHIPS_MOST", 2)
    assert len(samples(s)["tpusmi_chip_info"]) == 2
    assert value(s, "tpusmi_left_out", what="chips") == len(s.chips) - 2 > 0
    monkeypatch.setattr(families_module, "SAMPLES_MOST", 2)
    f = families(s)
    assert max(len(family.samples) for family in f.in_order()) == 2
    assert f.left_out > 0


# -- what a client may ask for


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,"
            "application/openmetrics-text;version=0.0.1;q=0.4,"
            "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            Format.OPENMETRICS,
        ),
        ("text/plain;version=0.0.4;q=0.9, application/openmetrics-text;q=0.1", Format.TEXT),
        ("application/openmetrics-text; version=2.0.0, text/plain;q=0.1", Format.TEXT),
        ("application/openmetrics-text; q=x", Format.TEXT),
        ("application/openmetrics-text;q=0", Format.TEXT),
        ("," * 5000 + ";;=;q=", Format.TEXT),
    ],
)
def test_the_format_is_the_one_that_the_client_prefers(header: str, form: Format) -> None:
    assert negotiated(header) is form


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [("gzip", True), ("", False), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False), ("*", True)],
)
def test_only_a_client_that_accepts_gzip_gets_it(header: str, is_accepted: bool) -> None:
    assert accepts_gzip(header) is is_accepted


def test_the_labels_of_every_series_are_documented() -> None:
    assert (*EVERYWHERE,) == LABELS
    for labels in _all_labels(machine()):
        assert "" not in dict(labels).values()


def _all_labels(s: Snapshot) -> Iterable[frozenset[Any]]:
    return [labels for all_ in samples(s).values() for labels in all_]
