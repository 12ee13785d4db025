"""The JSON Schema of `tpusmi --json`, derived from the metrics.

`python -m tpusmi.report.schema` prints it; `assets/tpusmi.schema.json` is what it printed.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    LOCK_STATES,
    PROCESS_FACTS,
    PROCESS_METRICS,
    SCHEMA,
    Metric,
)

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TRUTH: Schema = {"type": "boolean"}
_WHOLE: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}


def json_schema(strict: bool = False) -> Schema:
    """The schema of one snapshot. Every key is always there; what is unknown is null.

    A later version may add keys, so others are allowed, unless `strict`.
    """
    return _strict(_schema()) if strict else _schema()


def _strict(schema: Schema) -> Schema:
    """The schema without room for keys that it does not name."""
    inner = {k: _strict(v) if isinstance(v, dict) else v for k, v in schema.items()}
    if "properties" in schema and schema.get("type") in ("object", ["object", "null"]):
        inner.setdefault("additionalProperties", False)
    return inner


def _schema() -> Schema:
    device = _object(_device())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tpusmi snapshot",
        "description": "What `tpusmi --json` prints: one object, with --loop one per line.",
        **_object(
            {
                "schema": {"const": SCHEMA},
                "tpusmi_version": _TEXT,
                "simulated": _said(_TRUTH, "True when the host is a simulated one."),
                "host": _object(_host()),
                "chips": _list(_object(_chip()), "The TPUs that the kernel shows."),
                "devices": _list(device, "Devices of living processes."),
                "processes": _list(_object(_process(device)), "Living ones first."),
                "sources": _list(_object(_source()), "What was asked, and what it answered."),
                "servers": _list(_object(_server()), "libtpu's metrics servers."),
                "cores": _list(_object(_core()), "What each core runs; empty unless asked for."),
                "holding": _object(_holding()),
                "warnings": _list(_object(_warning()), "What a person can act on."),
            }
        ),
    }


def _host() -> Schema:
    return {
        "name": _TEXT,
        "time": _said(_TEXT, "RFC 3339, UTC."),
        "boot_id": _or_null(_TEXT),
        "container": _said(_or_null(_TRUTH), "Whether this is inside a container."),
        "libtpu_version": _or_null(_TEXT),
        "dcn": {
            "type": "object",
            "description": "Distributions of the data center network since the job's start.",
            "additionalProperties": {"type": "object", "additionalProperties": _percentiles()},
        },
    }


def _percentiles() -> Schema:
    parts = ("mean", "p50", "p90", "p95", "p999")
    return _object({"count": _or_null(_WHOLE), **{part: _or_null(_NUMBER) for part in parts}})


def _chip() -> Schema:
    link = {"name": _TEXT, "health": _said(_WHOLE, "0 healthy, 10 unusable.")}
    return {
        "index": _said(_WHOLE, "In PCI order, counted from 0."),
        "generation": _said(_or_null(_TEXT), "`v5e`; null for one that is not known."),
        "kind": _TEXT,
        "pci_address": _or_null(_TEXT),
        "pci_addresses": _list(_TEXT, "One for each PCI function."),
        "node": _or_null(_TEXT),
        "nodes": _list(_TEXT, "One device node for each function."),
        "numa_node": _or_null(_WHOLE),
        "pcie_link": _or_null(_TEXT),
        "hbm_nominal_bytes": _or_null(_WHOLE),
        "notes": _list(_TEXT, "What is missing or could not be read."),
        "ici_links": _list(_object(link), "Links to other chips."),
        **_measured(CHIP_METRICS),
    }


def _server() -> Schema:
    return {
        "address": _TEXT,
        "pid": _said(_or_null(_WHOLE), "The process that serves it."),
        "device_ids": _list(_WHOLE, "Every device that it has reported."),
        "status": _TEXT,
        "message": _TEXT,
    }


def _core() -> Schema:
    return {
        "server": _TEXT,
        "id": _WHOLE,
        "chip_id": _or_null(_WHOLE),
        "type": _or_null(_TEXT),
        "index": _or_null(_WHOLE),
        "hlo_location": _or_null(_TEXT),
        "program_fingerprint": _or_null(_TEXT),
        "queued_programs": _or_null(_WHOLE),
        "error": _or_null(_TEXT),
    }


def _device() -> Schema:
    return {
        "index": _said(_WHOLE, "Local, counted from 0."),
        "id": _said(_or_null(_WHOLE), "Global, as JAX and libtpu say."),
        "chip": _said(_or_null(_WHOLE), "Index of the TPU chip."),
        "core_on_chip": _or_null(_WHOLE),
        "coords": _said(_or_null({"type": "array", "items": _WHOLE}), "Place in the slice."),
        "kind": _said(
            _or_null(_TEXT),
            "As JAX calls it in its job: `TPU v5 lite`; else the chip's name: `TPU v5e`.",
        ),
        "platform": _or_null(_TEXT),
        "name": _said(_TEXT, "Platform and global id: `tpu:8`."),
        "node": _said(_or_null(_TEXT), "Device node of its chip."),
        "pid": _said(_or_null(_WHOLE), "The process that owns it, the first of several."),
        "pids": _list(_WHOLE, "Every process that owns it."),
        "error": _said(_or_null(_TEXT), "Why it could not be read."),
        **_measured(DEVICE_METRICS),
    }


def _process(device: Schema) -> Schema:
    return {
        "pid": _WHOLE,
        "start_ticks": _said(_WHOLE, "With the pid: a process no later one is taken for."),
        "user": _or_null(_TEXT),
        "command": _said(_TEXT, "Command line, secrets hidden."),
        "devices": _list(_WHOLE, "Local indexes of its devices."),
        "last_devices": _list(device, "Of a dead process: what its devices held last."),
        "holds": _list(_TEXT, "Device nodes it holds open."),
        "environment": {
            "type": "object",
            "description": "Its TPU_ and JAX_ variables that tpusmi reads.",
            "additionalProperties": _TEXT,
        },
        "loaded_only": _said(_TRUTH, "It maps libtpu.so and holds no node."),
        "stale": _said(_or_null(_TRUTH), "True for a holder that will not do work again."),
        "stale_code": _said(_or_null(_TEXT), "`orphaned`, `idle`, …; `stuck` by `ps` alone."),
        "stale_reason": _said(_or_null(_TEXT), "Why it is stale; or why not, if it looks so."),
        **_life(),
        "phase": {"enum": ["starting", "compiling", "running", "idle", "ended", None]},
        "state": {"enum": ["live", "silent", "dead"]},
        "sample_age_s": _said(_or_null(_NUMBER), "Age of its agent's newest sample."),
        "interval_s": _said(_or_null(_NUMBER), "Period of its agent's samples."),
        **{name: {"type": ["string", "integer", "null"]} for name in PROCESS_FACTS},
        "memory_profile": _or_null(_object(_memory_profile())),
        **_measured(PROCESS_METRICS),
    }


def _life() -> Schema:
    """What the kernel says of a holder; null of other processes."""
    return {
        "os_state": _said(_or_null(_TEXT), "Of its main thread: R, S, D, T, Z."),
        "parent_pid": _or_null(_WHOLE),
        "process_group": _or_null(_WHOLE),
        "session": _or_null(_WHOLE),
        "age_s": _said(_or_null(_NUMBER), "Since it was started."),
        "threads": _or_null(_WHOLE),
        "terminal": _said(_or_null(_TEXT), "`pts/0`. Not asked by `tpusmi --json`."),
        "cpu_percent": _said(_or_null(_NUMBER), "Of one core. Not asked by `tpusmi --json`."),
        "rss_bytes": _said(_or_null(_WHOLE), "Memory of the host. Not asked by `tpusmi --json`."),
        "cwd": _said(_or_null(_TEXT), "Not asked by `tpusmi --json`."),
        "container_id": _said(_or_null(_TEXT), "Of the container that it runs in."),
        "inner_pid": _said(_or_null(_WHOLE), "Its pid in there."),
        "role": _said(_or_null(_TEXT), "In its job: `resource tracker`, `spawned worker`."),
        "listens_on": _list(_WHOLE, "TCP ports. Not asked by `tpusmi --json`."),
    }


def _holding() -> Schema:
    node = {
        "node": _TEXT,
        "chip": _or_null(_WHOLE),
        "state": {"enum": ["free", "no_permission", "held", "stale", "releasing", "not_visible"]},
        "pids": _list(_WHOLE, "Every process that holds it."),
    }
    lock_file = {
        "path": _TEXT,
        "state": {"enum": list(LOCK_STATES)},
        "owner": _or_null(_TEXT),
        "pids": _list(_WHOLE, "Who locks it, or has the deleted one open."),
        "message": _TEXT,
    }
    return {
        "status": {
            "enum": [
                *("free", "no_permission", "held", "stale", "not_visible"),
                *("no_node", "no_tpu"),
            ]
        },
        "nodes": _list(_object(node), "Every device node of a TPU."),
        "not_inspected": _said(_WHOLE, "Processes that may hold one and could not be looked at."),
        "own_pid_namespace": _said(_TRUTH, "Only processes of this container can be seen."),
        "lock_files": _list(_object(lock_file), "libtpu's lock file."),
    }


def _memory_profile() -> Schema:
    site = {
        "function": _TEXT,
        "file": _TEXT,
        "line": _WHOLE,
        "kind": _said(_TEXT, "`buffer` or `executable`."),
        "bytes": _or_null(_WHOLE),
        "count": _WHOLE,
    }
    return {"age_s": _NUMBER, "sites": _list(_object(site), "What holds memory, largest first.")}


def _source() -> Schema:
    return {
        "name": _TEXT,
        "status": {"enum": ["ok", "absent", "denied", "failed"]},
        "message": _TEXT,
        "took_s": _NUMBER,
        "notes": _list(_TEXT, "One sentence for each thing that could not be read."),
    }


def _warning() -> Schema:
    return {"code": _TEXT, "message": _TEXT, "pid": _or_null(_WHOLE)}


def _measured(metrics: tuple[Metric, ...]) -> Schema:
    """Every metric of a scope, and where the known ones come from."""
    fields: Schema = {}
    for m in metrics:
        kind = _said(_or_null(_WHOLE if m.is_integer else _NUMBER), f"{m.help} Unit: {m.unit}.")
        name, _, part = m.name.partition(".")
        if part:
            parts = fields.setdefault(name, _object({}))
            parts["properties"][part] = kind
            parts["required"].append(part)
        else:
            fields[name] = kind
    witness = _object({"source": _TEXT, "age_s": _NUMBER, "stale": _TRUTH})
    fields["provenance"] = {
        "type": "object",
        "description": "Of every value that is known: who said it, and how long ago.",
        "additionalProperties": witness,
    }
    return fields


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _list(items: Schema, help: str) -> Schema:
    return {"type": "array", "description": help, "items": items}


def _said(kind: Schema, help: str) -> Schema:
    return {**kind, "description": help}


def _or_null(kind: Schema) -> Schema:
    return {**kind, "type": [kind["type"], "null"]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
