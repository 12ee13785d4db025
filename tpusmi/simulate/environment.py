"""The environment that a launcher gives to each process of a job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tpusmi.simulate.machine import Coords, Machine

FOREIGN = ("TPU_", "JAX_", "LIBTPU_", "XLA_", "MEGASCALE_", "TPUSMI_", "CLOUD_TPU_")
"""What the user set for jobs of their own is not for the simulated one."""
SLICE_BUILDER_PORT = 8476
BOUNDS: dict[int, Coords] = {1: (1, 1, 1), 2: (1, 2, 1), 4: (2, 2, 1), 8: (2, 4, 1)}


def job_environment(
    machine: Machine, processes: Sequence[Mapping[str, Any]], number: int, local: bool = False
) -> dict[str, str]:
    """Of the process of that number; `local` sets the addresses as notebooks do."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    return kept | {
        "TPU_ACCELERATOR_TYPE": machine.accelerator_type,
        "TPU_TOPOLOGY": "x".join(map(str, machine.topology)),
        "TPU_WORKER_ID": str(machine.worker),
        "TPU_WORKER_HOSTNAMES": ",".join(_host(machine, i) for i in range(machine.hosts)),
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_RUNTIME_METRICS_PORTS": str(processes[number]["port"]),
        **(_bounds(machine, processes, number) if len(processes) > 1 else {}),
        **({"TPU_PROCESS_ADDRESSES": "local"} if local else {}),
    }


def _host(machine: Machine, worker: int) -> str:
    return "localhost" if machine.hosts == 1 else f"simulated-w-{worker}"


def _bounds(
    machine: Machine, processes: Sequence[Mapping[str, Any]], number: int
) -> dict[str, str]:
    """What splits a host among processes."""
    count, mine = len(processes), processes[number]["chips"]
    addresses = (f"localhost:{SLICE_BUILDER_PORT + i}" for i in range(count))
    return {
        "TPU_VISIBLE_CHIPS": ",".join(map(str, mine)),
        "TPU_CHIPS_PER_PROCESS_BOUNDS": _text(len(mine)),
        "TPU_PROCESS_BOUNDS": _text(count),
        "TPU_PROCESS_ADDRESSES": ",".join(addresses),
        "TPU_PROCESS_PORT": str(SLICE_BUILDER_PORT + number),
        "CLOUD_TPU_TASK_ID": str(number),
    }


def _text(count: int) -> str:
    return ",".join(map(str, BOUNDS.get(count, (count, 1, 1))))
