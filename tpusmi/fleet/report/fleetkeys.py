"""The keys of `tpusmi fleet --json`: the printed object and its schema are made from these tables.

`python -m tpusmi.fleet.report.fleetkeys` prints the schema;
`assets/tpusmi.fleet.schema.json` is what it printed.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from typing import Any

from tpusmi.fleet.fleet_figures import FleetDevice, FleetProcess, FleetSnapshot, HostState
from tpusmi.fleet.fleet_series import SHOWN_OF_DEVICES, SHOWN_OF_PROCESSES
from tpusmi.fleet.groups.stragglers import STEP
from tpusmi.fleet.report.groupkeys import GROUP, groups_of
from tpusmi.model import DEVICE, METRICS, PHASES, PROCESS, Metric, State, Verdict
from tpusmi.model.jsonobject import (
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    TRUTH,
    WHOLE,
    WHOLE_OR_NULL,
    JsonKey,
    JsonObject,
    Schema,
    key,
    keys,
    or_null,
    rounded,
)

SCHEMA = 1
"""Version of the JSON: raised when a key goes or changes its meaning."""
_OF_PROCESS = ("hbm_used_bytes", *(name for name in SHOWN_OF_PROCESSES if name != STEP))


def timestamp(at_s: float) -> str:
    """That Unix time in UTC: `2026-07-28T09:30:00.123Z`."""
    at = datetime.fromtimestamp(at_s, timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def _metric(m: Metric) -> JsonKey:
    kind = WHOLE_OR_NULL if m.is_integer else NUMBER_OR_NULL
    return key(m.name, kind, f"{m.help} Unit: {m.unit}.", lambda s, x: _value(x, m))


def _value(x: FleetDevice | FleetProcess, m: Metric) -> Any:
    number = x.values.get(m.name)
    if number is None:
        return None
    return round(number) if m.is_integer else rounded(float(number))


def _metrics(scope: str, names: tuple[str, ...]) -> list[JsonKey]:
    return [_metric(m) for name in names for m in METRICS if (m.scope, m.name) == (scope, name)]


def _number(name: str, help: str, value_of: str) -> JsonKey:
    return key(name, NUMBER_OR_NULL, help, lambda s, x: rounded(x.values.get(value_of)))


def _of_chip(name: str, what: str) -> JsonKey:
    """Memory that is known of a whole chip alone: of each of its devices it would count twice."""
    help = (
        f"{what} of its whole chip, where it is known of no single device: all devices of that "
        "chip have this number. Unit: bytes."
    )
    return key(f"chip_{name}", WHOLE_OR_NULL, help, lambda s, d: _whole(d.of_chip.get(name)))


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _age(help: str) -> JsonKey:
    return key("age_s", NUMBER_OR_NULL, help, lambda s, x: rounded(x.age_s))


# fmt: off
_DEVICE = JsonObject(
    key("chip", WHOLE_OR_NULL, "Index of its chip on the host."),
    key("name", TEXT, "Its index on the host; the name of a device without a chip."),
    key("kind", TEXT_OR_NULL, "JAX's name of its kind."),
    key("coords", or_null({"type": "array", "items": WHOLE}), "Place in the slice.",
        lambda s, d: None if d.coords is None else list(d.coords)),
    key("core_on_chip", WHOLE_OR_NULL),
    key("pid", WHOLE_OR_NULL, "The process that owns it."),
    key("job", TEXT_OR_NULL, "The name of that process's program."),
    *_metrics(DEVICE, SHOWN_OF_DEVICES),
    _number("throttle_percent", "How far its chip slows itself down.", "throttle_percent"),
    _of_chip("hbm_used_bytes", "Memory in use"),
    _of_chip("hbm_limit_bytes", "Memory limit"),
)
_PROCESS = JsonObject(
    key("pid", WHOLE),
    key("job", TEXT_OR_NULL, "The name of its program."),
    key("user", TEXT_OR_NULL),
    key("command", TEXT_OR_NULL, "Its command line, without secrets."),
    key("phase", {"enum": [*PHASES, None]}, "What the job is doing, as its agent says."),
    key("state", {"enum": [*State, None]}),
    key("verdict", {"enum": [*Verdict, None]}, "Whether the holder will do more work."),
    key("process_index", WHOLE_OR_NULL, "Its number in the job."),
    key("process_count", WHOLE_OR_NULL, "Processes of the job."),
    *_metrics(PROCESS, _OF_PROCESS),
    _number("step_time_s", "Mean time between the ends of steps, over the last minute.",
            STEP),
)
_NOTICE = JsonObject(
    key("code", TEXT, "As in docs/notices.md."),
    key("chip", WHOLE_OR_NULL),
    key("device", TEXT_OR_NULL),
    key("pid", WHOLE_OR_NULL),
    key("problems", WHOLE, "How many there are of this code."),
    _age("For how long it has been so, at least."),
)
_LINK = JsonObject(
    key("chip", WHOLE_OR_NULL),
    key("name", TEXT),
    key("health", WHOLE, "0 healthy, 1 to 5 passing faults, 6 to 9 a lasting one, 10 unusable."),
)
_HOST = JsonObject(
    key("name", TEXT, "The machine's name; its address where that is unknown."),
    key("address", TEXT_OR_NULL, "Where its exporter is asked."),
    key("state", {"enum": [*HostState]}),
    key("reason", TEXT, "Why it is not live; empty for a live host."),
    _age("Age of its numbers."),
    key("slice", TEXT_OR_NULL),
    key("topology", TEXT_OR_NULL, "Size of the slice: `4x4x8`."),
    key("wraps", or_null({"type": "array", "items": TRUTH}),
        "Whether the ends of each axis of the slice are joined.",
        lambda s, h: None if h.wraps is None else list(h.wraps)),
    key("worker", WHOLE_OR_NULL, "Its number in the slice."),
    key("accelerator_type", TEXT_OR_NULL),
    key("simulated", TRUTH),
    key("chips", WHOLE_OR_NULL, "How many it has."),
    key("held_chips", WHOLE_OR_NULL, "How many of them a process holds."),
    keys("devices", _DEVICE, "Its devices."),
    keys("processes", _PROCESS, "Its processes that have devices."),
    keys("notices", _NOTICE, "What a person can act on."),
    keys("links", _LINK, "Links between its chips and others."),
)
FLEET = JsonObject(
    key("schema", {"const": SCHEMA}, get=lambda s, _: SCHEMA),
    key("timestamp", TEXT, "When the fleet was read, in UTC.", lambda s, _: timestamp(s.at_s)),
    key("source", TEXT, "Who was asked, without credentials."),
    key("simulated", TRUTH, "Whether any of the hosts is simulated.",
        lambda s, _: any(h.simulated for h in s.hosts)),
    key("took_s", NUMBER, "How long it took to read it.", lambda s, _: rounded(s.took_s)),
    keys("problems", TEXT, "Sentences about what could not be read."),
    keys("groups", GROUP, "Its jobs, then its slices, the worst of each first, with the numbers "
         "of their live hosts.", lambda s, _: groups_of(s)),
    keys("hosts", _HOST, "The hosts that the filter lets through."),
)
# fmt: on


def to_dict(s: FleetSnapshot) -> dict[str, Any]:
    """The object: plain numbers, strings, lists, dicts and None."""
    # Its keys read the item alone; the first argument is a host's snapshot elsewhere.
    return FLEET.value(s, s)  # type: ignore[arg-type]


def json_schema() -> Schema:
    """The schema. Every key is always there, and unknown values are null. A later version may add
    keys.
    """
    from tpusmi.report.schema import of_object

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tpusmi fleet",
        "description": "What `tpusmi fleet --json` prints: one object, with --loop one per line.",
        **of_object(FLEET),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
