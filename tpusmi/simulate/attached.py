"""Reads a simulated host that is running: quick to import, for `--simulate DIR`."""

from __future__ import annotations

import os
from typing import Any

from tpusmi.model import Host
from tpusmi.simulate import description, sdk
from tpusmi.wire import identity


def attach(directory: str) -> Host:
    """The simulated host in that directory. Raises ValueError when there is none."""
    directory = os.path.abspath(directory)
    told = description.read(directory)
    if not _is_kept(told):
        raise ValueError(f"the simulated host in {directory} is not running any more")
    return Host(
        root=directory,
        segment_dir=f"{directory}/segments",
        metrics_ports=tuple(int(port) for port in told["ports"]),
        sdk_command=sdk.command(directory),  # ours: the directory may be somebody else's
        simulated=True,
        own_proc=description.OWN_PROC,
        older_s=float(told.get("older_s", 0.0)),
    )


def is_running(directory: str) -> bool:
    """True while somebody keeps the host in that directory."""
    try:
        return _is_kept(description.read(directory))
    except ValueError:
        return False


def _is_kept(told: dict[str, Any]) -> bool:
    pid, ticks = told["keeper"]
    return bool(identity.start_ticks("/proc", pid) == ticks)
