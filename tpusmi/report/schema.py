"""The JSON Schema of `tpusmi --json`, derived from the metrics.

`python -m tpusmi.report.schema` prints it; `assets/tpusmi.schema.json` is what it printed.
"""

from __future__ import annotations

import json
import sys

from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    PROCESS_FACTS,
    PROCESS_METRICS,
    SCHEMA,
    Metric,
)
from tpusmi.report.holderschema import holding, life, verdict
from tpusmi.report.shapes import (
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Schema,
    a_list,
    an_object,
    or_null,
    said,
)


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
    device = an_object(_device())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tpusmi snapshot",
        "description": "What `tpusmi --json` prints: one object, with --loop one per line.",
        **an_object(
            {
                "schema": {"const": SCHEMA},
                "tpusmi_version": TEXT,
                "simulated": said(TRUTH, "True when the host is a simulated one."),
                "host": an_object(_host()),
                "chips": a_list(an_object(_chip()), "The TPUs that the kernel shows."),
                "devices": a_list(device, "Devices of living processes."),
                "processes": a_list(an_object(_process(device)), "Living ones first."),
                "sources": a_list(an_object(_source()), "What was asked, and what it answered."),
                "servers": a_list(an_object(_server()), "libtpu's metrics servers."),
                "cores": a_list(an_object(_core()), "What each core runs; empty unless asked for."),
                "holding": an_object(holding()),
                "warnings": a_list(an_object(_warning()), "What a person can act on."),
            }
        ),
    }


def _host() -> Schema:
    return {
        "name": TEXT,
        "time": said(TEXT, "RFC 3339, UTC."),
        "boot_id": or_null(TEXT),
        "container": said(or_null(TRUTH), "Whether this is inside a container."),
        "libtpu_version": or_null(TEXT),
        "load_averages": said(
            {"type": ["array", "null"], "items": NUMBER, "minItems": 3, "maxItems": 3},
            "Over the last 1, 5 and 15 minutes.",
        ),
        "cpus": said(or_null(WHOLE), "That are online."),
        "memory_total_bytes": or_null(WHOLE),
        "memory_available_bytes": said(or_null(WHOLE), "What programs can still have."),
        "uptime_s": or_null(NUMBER),
        "kernel": said(or_null(TEXT), "Its release."),
        "tpu_driver": said(or_null(TEXT), "What drives the chips: `vfio-pci`."),
        "tpu_driver_version": said(or_null(TEXT), "Of a driver with a version of its own."),
        "dcn": {
            "type": "object",
            "description": "Distributions of the data center network since the job's start.",
            "additionalProperties": {"type": "object", "additionalProperties": _percentiles()},
        },
    }


def _percentiles() -> Schema:
    parts = ("mean", "p50", "p90", "p95", "p999")
    return an_object({"count": or_null(WHOLE), **{part: or_null(NUMBER) for part in parts}})


def _chip() -> Schema:
    link = {"name": TEXT, "health": said(WHOLE, "0 healthy, 10 unusable.")}
    return {
        "index": said(WHOLE, "In PCI order, counted from 0."),
        "generation": said(or_null(TEXT), "`v5e`; null for one that is not known."),
        "kind": TEXT,
        "pci_address": or_null(TEXT),
        "pci_addresses": a_list(TEXT, "One for each PCI function."),
        "node": or_null(TEXT),
        "nodes": a_list(TEXT, "One device node for each function."),
        "numa_node": or_null(WHOLE),
        "pcie_link": or_null(TEXT),
        "hbm_nominal_bytes": or_null(WHOLE),
        "notes": a_list(TEXT, "What is missing or could not be read."),
        "ici_links": a_list(an_object(link), "Links to other chips."),
        **_measured(CHIP_METRICS),
    }


def _server() -> Schema:
    return {
        **dict.fromkeys(("address", "status", "message"), TEXT),
        "pid": said(or_null(WHOLE), "The process that listens there."),
        "user": or_null(TEXT),
        "holds_tpu": said(or_null(TRUTH), "False: what it reports is left out. Null: not known."),
        "device_ids": a_list(WHOLE, "Every device that it has reported."),
    }


def _core() -> Schema:
    return {
        "server": TEXT,
        "id": WHOLE,
        "chip_id": or_null(WHOLE),
        "type": or_null(TEXT),
        "index": or_null(WHOLE),
        "hlo_location": or_null(TEXT),
        "program_fingerprint": or_null(TEXT),
        "queued_programs": or_null(WHOLE),
        "error": or_null(TEXT),
    }


def _device() -> Schema:
    return {
        "index": said(WHOLE, "Local, counted from 0."),
        "id": said(or_null(WHOLE), "Global, as JAX and libtpu say."),
        "chip": said(or_null(WHOLE), "Index of the TPU chip."),
        "core_on_chip": or_null(WHOLE),
        "coords": said(or_null({"type": "array", "items": WHOLE}), "Place in the slice."),
        "kind": said(
            or_null(TEXT),
            "As JAX calls it in its job: `TPU v5 lite`; else the chip's name: `TPU v5e`.",
        ),
        "platform": or_null(TEXT),
        "name": said(TEXT, "Platform and global id: `tpu:8`."),
        "node": said(or_null(TEXT), "Device node of its chip."),
        "pid": said(or_null(WHOLE), "The process that owns it, the first of several."),
        "pids": a_list(WHOLE, "Every process that owns it."),
        "error": said(or_null(TEXT), "Why it could not be read."),
        **_measured(DEVICE_METRICS),
    }


def _process(device: Schema) -> Schema:
    return {
        "pid": WHOLE,
        "start_ticks": said(WHOLE, "With the pid: a process no later one is taken for."),
        "user": or_null(TEXT),
        "uid": or_null(WHOLE),
        "verified": said(TRUTH, "False when only a segment file says that there is this process."),
        "command": said(TEXT, "Command line, secrets hidden."),
        "devices": a_list(WHOLE, "Local indexes of its devices."),
        "last_devices": a_list(device, "Of a dead process: what its devices held last."),
        "holds": a_list(TEXT, "Device nodes it holds open."),
        "environment": {
            "type": "object",
            "description": "Its TPU_ and JAX_ variables that tpusmi reads.",
            "additionalProperties": TEXT,
        },
        "loaded_only": said(TRUTH, "It maps libtpu.so and holds no node."),
        **verdict(),
        **life(),
        "phase": {"enum": ["starting", "compiling", "running", "idle", "ended", None]},
        "state": {"enum": ["live", "silent", "dead", "unknown"]},
        "sample_age_s": said(or_null(NUMBER), "Age of its agent's newest sample."),
        "interval_s": said(or_null(NUMBER), "Period of its agent's samples."),
        **{name: {"type": ["string", "integer", "null"]} for name in PROCESS_FACTS},
        "memory_profile": or_null(an_object(_memory_profile())),
        **_measured(PROCESS_METRICS),
    }


def _memory_profile() -> Schema:
    site = {
        "function": TEXT,
        "file": TEXT,
        "line": WHOLE,
        "kind": said(TEXT, "`buffer` or `executable`."),
        "bytes": or_null(WHOLE),
        "count": WHOLE,
    }
    return {"age_s": NUMBER, "sites": a_list(an_object(site), "What holds memory, largest first.")}


def _source() -> Schema:
    return {
        "name": TEXT,
        "status": {"enum": ["ok", "absent", "denied", "failed"]},
        "message": TEXT,
        "took_s": NUMBER,
        "notes": a_list(TEXT, "One sentence for each thing that could not be read."),
    }


def _warning() -> Schema:
    return {"code": TEXT, "message": TEXT, "pid": or_null(WHOLE)}


def _measured(metrics: tuple[Metric, ...]) -> Schema:
    """Every metric of a scope, and where the known ones come from."""
    fields: Schema = {}
    for m in metrics:
        kind = said(or_null(WHOLE if m.is_integer else NUMBER), f"{m.help} Unit: {m.unit}.")
        name, _, part = m.name.partition(".")
        if part:
            parts = fields.setdefault(name, an_object({}))
            parts["properties"][part] = kind
            parts["required"].append(part)
        else:
            fields[name] = kind
    witness = an_object({"source": TEXT, "age_s": NUMBER, "stale": TRUTH})
    fields["provenance"] = {
        "type": "object",
        "description": "Of every value that is known: who said it, and how long ago.",
        "additionalProperties": witness,
    }
    return fields


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
