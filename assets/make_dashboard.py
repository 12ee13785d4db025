"""Writes the Grafana dashboard of `tpusmi serve`: deploy/grafana.json.

    python assets/make_dashboard.py [--check]

With --check it writes nothing, and fails when the file is not the one that it would write.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parents[1] / "deploy" / "grafana.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
HOSTS = 'host=~"$host"'
JOBS = f'{HOSTS}, job_name=~"$job_name"'
BY_DEVICE = "{{host}} {{chip}}/{{device}}"
BY_CHIP = "{{host}} {{chip}}"
BY_JOB = "{{job_name}} {{host}} {{pid}}"
BOTH = " or "

Target = tuple[str, str]
"""An expression, and the legend of its series."""


def graph(
    title: str, unit: str, *targets: Target, about: str = "", most: float | None = None
) -> Any:
    """A graph over time. `most` is the top of its axis."""
    defaults: dict[str, Any] = {"unit": unit, "min": 0, "custom": {"fillOpacity": 5}}
    if most is not None:
        defaults["max"] = most
    return {
        "type": "timeseries",
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [*_targets(targets)],
    }


def stat(title: str, unit: str, expression: str, *steps: tuple[float | None, str]) -> Any:
    """One number, with the colors from which value on."""
    thresholds = [{"value": value, "color": color} for value, color in steps or ((None, "text"),)]
    return {
        "type": "stat",
        "title": title,
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "thresholds": {"mode": "absolute", "steps": thresholds},
            },
            "overrides": [],
        },
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"},
        "targets": [*_targets([(expression, "")])],
    }


def listing(title: str, expression: str, *labels: str, value: str = "Value") -> Any:
    """A table of the series of an expression, with these labels as its columns."""
    shown = [*labels, "Value"]
    return {
        "type": "table",
        "title": title,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {}, "overrides": []},
        "options": {},
        "targets": [
            {**t, "format": "table", "instant": True} for t in _targets([(expression, "")])
        ],
        "transformations": [
            {"id": "filterFieldsByName", "options": {"include": {"names": shown}}},
            {
                "id": "organize",
                "options": {
                    "indexByName": {name: place for place, name in enumerate(shown)},
                    "renameByName": {"Value": value},
                },
            },
        ],
    }


def _targets(targets: Any) -> Iterator[dict[str, Any]]:
    for number, (expression, legend) in enumerate(targets):
        yield {
            "refId": chr(ord("A") + number),
            "datasource": SOURCE,
            "expr": expression,
            "legendFormat": legend,
        }


def of_chip_or_device(name: str) -> tuple[Target, Target]:
    """The series of devices, and of chips whose devices are not measured separately."""
    return (
        (f"tpusmi_{name}{{{HOSTS}}}", BY_DEVICE),
        (f"tpusmi_chip_{name}{{{HOSTS}}}", BY_CHIP),
    )


# Where no exporter answers, a number is unknown and not 0: `> bool` keeps the zeros of the series
# that are there, and what counts series is 0 only beside an exporter that has none.
KNOWN_HOSTS = f'0 * count(tpusmi_left_out{{{HOSTS}, what="processes"}})'
HELD = f"sum(tpusmi_chip_holders{{{HOSTS}}} > bool 0)"
IDLE = (
    f"(min by (host, chip) (tpusmi_idle_seconds{{{HOSTS}}}) "
    f"or max by (host, chip) (tpusmi_chip_idle_seconds{{{HOSTS}}}))"
)
GREEN_TO_RED = ((None, "green"), (1.0, "red"))
ROWS: tuple[tuple[str, int, tuple[Any, ...]], ...] = (
    ("Fleet", 4, (
        stat("Chips", "short", f"count(tpusmi_chip_info{{{HOSTS}}})"),
        stat("Held chips", "short", HELD),
        stat("Held and idle for 15 minutes", "short",
             f"sum(({IDLE} > bool 900) * on (host, chip) "
             f"(max by (host, chip) (tpusmi_chip_holders{{{HOSTS}}}) > bool 0)) "
             f"or {HELD} == 0",
             *GREEN_TO_RED),
        stat("Jobs", "short",
             f"count(count by (job_name, slice) (tpusmi_process_info{{{JOBS}}})) "
             f"or {KNOWN_HOSTS}"),
        stat("Mean TensorCore utilization", "percentunit",
             f"avg(tpusmi_tensorcore_utilization_ratio{{{HOSTS}}} "
             f"or tpusmi_chip_tensorcore_utilization_ratio{{{HOSTS}}})"),
        stat("Sources that fail", "short",
             f"sum(tpusmi_source_up{{{HOSTS}}} == bool 0)", *GREEN_TO_RED),
    )),
    ("Problems", 8, (
        listing("Notices", f"tpusmi_notice{{{HOSTS}}}", "host", "code", "chip", "device", "pid",
                value="how many"),
        listing("Jobs", f"tpusmi_process_info{{{JOBS}}}",
                "host", "slice", "job_name", "pid", "user", "process_index"),
    )),
    ("Chips", 9, (
        graph("TensorCore utilization", "percentunit",
              *of_chip_or_device("tensorcore_utilization_ratio"), most=1.0,
              about="Share of the peak matrix throughput."),
        graph("Duty cycle", "percentunit", *of_chip_or_device("duty_cycle_ratio"), most=1.0,
              about="Share of time that the chip was busy with anything."),
    )),
    ("", 9, (
        graph("HBM in use", "percentunit",
              (f"tpusmi_hbm_used_bytes{{{HOSTS}}} / tpusmi_hbm_limit_bytes{{{HOSTS}}}", BY_DEVICE),
              (f"tpusmi_chip_hbm_used_bytes{{{HOSTS}}} / tpusmi_chip_hbm_limit_bytes{{{HOSTS}}}",
               BY_CHIP),
              most=1.0),
        graph("HBM bandwidth", "percentunit",
              *of_chip_or_device("hbm_bandwidth_utilization_ratio"), most=1.0,
              about="Share of the peak."),
    )),
    ("", 8, (
        graph("Idle time", "s", *of_chip_or_device("idle_seconds"),
              about="Time since the TensorCore last ran."),
        graph("Throttling", "percentunit",
              (f"tpusmi_chip_throttle_ratio{{{HOSTS}}}", BY_CHIP), most=1.0),
        graph("Health of ICI links that have a fault", "short",
              (f"tpusmi_ici_link_health{{{HOSTS}}} > 0", "{{host}} {{chip}} {{link}}"), most=10,
              about="1 to 5 passing faults, 6 to 9 a lasting fault, 10 unusable."),
    )),
    ("Jobs", 9, (
        graph("Step time, median", "s",
              (f"tpusmi_process_step_time_p50_seconds{{{JOBS}}}", BY_JOB)),
        graph("Step time, 95th percentile", "s",
              (f"tpusmi_process_step_time_p95_seconds{{{JOBS}}}", BY_JOB)),
        graph("Time since the last step", "s",
              (f"tpusmi_process_since_last_step_seconds{{{JOBS}}}", BY_JOB)),
    )),
    ("", 8, (
        graph("Steps", "ops", (f"rate(tpusmi_process_steps_total{{{JOBS}}}[5m])", BY_JOB)),
        graph("Model FLOPs utilization", "percentunit",
              (f"tpusmi_process_mfu_ratio{{{JOBS}}}", BY_JOB), most=1.0),
        graph("Time spent compiling", "percentunit",
              (f"rate(tpusmi_process_compile_seconds_total{{{JOBS}}}[5m])", BY_JOB)),
    )),
    ("Jobs of several hosts", 8, (
        graph("Processes that report to each other", "short",
              ("max by (slice, job_name, slice_job, state) "
               f"(tpusmi_slice_processes{{{JOBS}}})", "{{slice}} {{job_name}} {{state}}"),
              about="Each host of the slice has the same numbers."),
        graph("Step time of the median and of the slowest process", "s",
              ("max by (slice, job_name, slice_job) "
               f"(tpusmi_slice_step_time_p50_seconds{{{JOBS}}})", "{{slice}} {{job_name}} median"),
              ("max by (slice, job_name, slice_job) "
               f"(tpusmi_slice_step_time_max_seconds{{{JOBS}}})",
               "{{slice}} {{job_name}} slowest")),
    )),
    ("Network between slices", 8, (
        graph("Transfer of buffers, median", "s",
              (f"tpusmi_network_buffer_transfer_latency_p50_seconds{{{HOSTS}}}",
               "{{host}} {{bucket}}")),
        graph("Collectives, median", "s",
              (f"tpusmi_network_collective_e2e_latency_p50_seconds{{{HOSTS}}}",
               "{{host}} {{bucket}}")),
    )),
    ("The exporter", 7, (
        graph("Age of sources", "s",
              (f"tpusmi_source_age_seconds{{{HOSTS}}}", "{{host}} {{source}}")),
        graph("Time that a source takes", "s",
              (f"tpusmi_source_read_seconds{{{HOSTS}}}", "{{host}} {{source}}")),
    )),
)  # fmt: skip


def _panels() -> Iterator[dict[str, Any]]:
    y, number = 0, 0
    for title, height, panels in ROWS:
        if title:
            number += 1
            place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
            yield {"id": number, "type": "row", "title": title, "gridPos": place, "panels": []}
            y += 1
        width = COLUMNS // len(panels)
        for column, panel in enumerate(panels):
            number += 1
            place = {"x": column * width, "y": y, "w": width, "h": height}
            yield {"id": number, **panel, "gridPos": place}
        y += height


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
    }


def dashboard() -> str:
    """The file."""
    whole = {
        "uid": "tpusmi",
        "title": "TPUs (tpusmi)",
        "description": "Chips, jobs and problems of hosts with `tpusmi serve`.",
        "tags": ["tpu", "tpusmi"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                _variable("host", "label_values(tpusmi_build_info, host)"),
                _variable("job_name", f"label_values(tpusmi_process_info{{{HOSTS}}}, job_name)"),
            ]
        },
        "panels": [*_panels()],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file, or compare it."""
    if "--check" not in sys.argv:
        PATH.write_text(dashboard(), encoding="utf-8")
    elif PATH.read_text(encoding="utf-8") != dashboard():
        raise SystemExit(f"{PATH.name} is another one; run this without --check")


if __name__ == "__main__":
    main()
