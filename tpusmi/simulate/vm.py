"""The virtual machine around the simulated chips: its load, memory and uptime, as files.

They cannot stand in the host's /proc, which leads to the real one for the sake of its processes.
"""

from __future__ import annotations

import math
import os

from tpusmi.simulate.description import OWN_PROC
from tpusmi.simulate.machine import Machine

KERNEL = "6.8.0-1027-gcp"
CPUS, CPUS_OTHERS = {"v5e": 28, "v5p": 52, "v6e": 45, "7x": 56}, 24
"""Of each chip; those that Google's pages tell, and for the others something likely."""
GIGABYTES, GIGABYTES_OTHERS = {"v5e": 48, "v5p": 112, "v6e": 180, "7x": 240}, 96
BOOTED_BEFORE_S = 3 * 86400.0 + 4 * 3600.0
"""The job."""
EACH_CPU_LOAD = 0.11
USED, WAVE_S = 0.17, 90.0


def build(root: str, machine: Machine) -> None:
    """Write what does not change; the rest is written again while the job runs."""
    name, chips = machine.generation.name, machine.chips
    cpus = CPUS.get(name, CPUS_OTHERS) * chips
    os.makedirs(f"{root}{OWN_PROC}/sys/kernel")
    os.makedirs(f"{root}/sys/devices/system/cpu")
    _write(f"{root}/sys/devices/system/cpu/online", f"0-{cpus - 1}\n")
    _write(f"{root}{OWN_PROC}/sys/kernel/osrelease", f"{KERNEL}\n")
    kilobytes = GIGABYTES.get(name, GIGABYTES_OTHERS) * chips * 10**6
    _write(f"{root}{OWN_PROC}/meminfo", _meminfo(kilobytes, 0.0))
    update(root, 0.0)


def update(root: str, job_time_s: float) -> None:
    """Write what the machine says at that time of the job."""
    with open(f"{root}/sys/devices/system/cpu/online", encoding="ascii") as file:
        cpus = int(file.read().rpartition("-")[2]) + 1
    with open(f"{root}{OWN_PROC}/meminfo", encoding="ascii") as file:
        kilobytes = int(file.readline().split()[1])
    wave = math.sin(job_time_s / WAVE_S)
    loads = [cpus * EACH_CPU_LOAD * (1 + part * wave) for part in (0.3, 0.1, 0.03)]
    words = " ".join(f"{load:.2f}" for load in loads)
    _write(f"{root}{OWN_PROC}/loadavg", f"{words} {round(loads[0])}/2100 4321\n")
    _write(f"{root}{OWN_PROC}/meminfo", _meminfo(kilobytes, wave))
    up_s = BOOTED_BEFORE_S + job_time_s
    _write(f"{root}{OWN_PROC}/uptime", f"{up_s:.2f} {up_s * cpus * (1 - EACH_CPU_LOAD):.2f}\n")


def _meminfo(kilobytes: int, wave: float) -> str:
    available = round(kilobytes * (1 - USED - 0.01 * wave))
    rows = {"MemTotal": kilobytes, "MemFree": available * 3 // 4, "MemAvailable": available}
    return "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in rows.items())


def _write(path: str, text: str) -> None:
    """In one go: a viewer never sees half of it."""
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text)
    os.replace(f"{path}.new", path)
