"""Hosts of a fleet with the figures that a test needs, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpusmi.fleet.fleet_figures import (
    FleetDevice,
    FleetHost,
    FleetNotice,
    FleetProcess,
    FleetSnapshot,
    HostState,
)


def device(chip: int | None, **given: Any) -> FleetDevice:
    """A device: what is a field of it is one, everything else a value."""
    usual = {
        "name": str(chip),
        "kind": "TPU v5 lite",
        "coords": None,
        "core_on_chip": 0,
        "pid": None,
        "job": None,
        "platform": "tpu",
    }
    fields, values = _apart(FleetDevice._fields, given)
    return FleetDevice(chip=chip, values=values, **{**usual, **fields})


def process(pid: int, job: str = "train.py", **given: Any) -> FleetProcess:
    """A process: what is a field of it is one, everything else a value."""
    usual = {
        "user": "ann",
        "command": f"python {job}",
        "phase": "running",
        "state": "live",
        "verdict": None,
        "process_index": None,
        "process_count": None,
    }
    fields, values = _apart(FleetProcess._fields, given)
    return FleetProcess(pid=pid, job=job, values=values, **{**usual, **fields})


def _apart(fields: Sequence[str], given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    return (
        {name: v for name, v in given.items() if name in fields},
        {name: v for name, v in given.items() if name not in fields},
    )


def notice(code: str, **given: Any) -> FleetNotice:
    """A notice."""
    usual = {"chip": None, "device": None, "pid": None, "problems": 1, "age_s": None}
    return FleetNotice(code=code, **{**usual, **given})


def host(name: str, **given: Any) -> FleetHost:
    """A host; its chips are those of its devices unless it is given another number."""
    devices = given.get("devices", ())
    state = given.get("state", HostState.LIVE)
    usual = {
        "address": f"{name}:8781",
        "state": state,
        "reason": "" if state == HostState.LIVE else "it does not answer",
        "age_s": 0.0,
        "slice": None,
        "topology": None,
        "worker": None,
        "accelerator_type": None,
        "simulated": False,
        "chips": len({d.chip for d in devices if d.chip is not None}) or None,
        "held_chips": None,
        "devices": (),
        "processes": (),
        "notices": (),
        "links": (),
    }
    key = f"{name}/{given.get('slice') or ''}/{name}:8781"
    return FleetHost(key=key, name=name, **{**usual, **given})


def fleet(*hosts: FleetHost) -> FleetSnapshot:
    """These hosts at one time."""
    return FleetSnapshot(at_s=0.0, source="a test", hosts=hosts, problems=(), took_s=0.0)
