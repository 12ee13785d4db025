"""The machine itself: name, load, memory, uptime. Read again in every look."""

from __future__ import annotations

import os
import time

from tpusmi.model import Host, HostFacts, within
from tpusmi.sources.sysfs.files import text_of
from tpusmi.text import clean

READ_MOST = 1024
"""Bytes read of a file: the first lines are enough."""
CPUS = "/sys/devices/system/cpu/online"
MACHINE_ID = "/etc/machine-id"
NUMBER_MOST = 2.0**53


def host_facts(host: Host) -> HostFacts:
    """The facts of a host; None for a fact that cannot be read."""
    now = time.time()
    clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    own = host.path(host.own_proc)
    memory = _memory_bytes(_text(f"{own}/meminfo"))
    uptime, _, idle = _text(f"{own}/uptime").partition(" ")
    return HostFacts(
        name=os.uname().nodename,
        time=f"{clock}.{int(now % 1 * 1000):03d}Z",
        boot_id=clean(_text(host.path("/proc/sys/kernel/random/boot_id")), 64) or None,
        container=_in_container(host),
        load_averages=_load_averages(_text(f"{own}/loadavg")),
        cpus=_count(_text(host.path(CPUS))),
        memory_total_bytes=memory.get("MemTotal"),
        memory_available_bytes=memory.get("MemAvailable"),
        uptime_s=_number(uptime),
        idle_s=_number(idle),
        kernel=clean(_text(f"{own}/sys/kernel/osrelease"), 80) or None,
        machine_id=_machine_id(_text(host.path(MACHINE_ID))),
    )


def _text(path: str) -> str:
    """The beginning of a file; empty when it cannot be read."""
    try:
        return text_of(path, READ_MOST)
    except OSError:
        return ""


def _machine_id(text: str) -> str | None:
    """32 hexadecimal digits. An image may have an empty file, or `uninitialized`."""
    digits = text.strip()
    is_id = len(digits) == 32 and all(c in "0123456789abcdef" for c in digits)
    return digits if is_id and digits.strip("0") else None


def _in_container(host: Host) -> bool | None:
    """True where a container engine left its mark; None when neither that nor a machine's init can
    be seen.
    """
    if any(os.path.exists(host.path(mark)) for mark in ("/.dockerenv", "/run/.containerenv")):
        return True
    init = _text(host.path("/proc/1/comm")).strip()
    return False if init in ("systemd", "init") else None


def _load_averages(text: str) -> tuple[float, float, float] | None:
    """`0.42 0.40 0.31 2/2100 4321`"""
    loads = [number for word in text.split()[:3] if (number := _number(word)) is not None]
    return (loads[0], loads[1], loads[2]) if len(loads) == 3 else None


def _memory_bytes(text: str) -> dict[str, int]:
    """Bytes by name, from lines such as `MemTotal:  385000000 kB`."""
    rows = (line.split() for line in text.splitlines())
    sizes = {row[0].rstrip(":"): _number(row[1]) for row in rows if row[2:] == ["kB"]}
    return {name: int(number) * 1024 for name, number in sizes.items() if number is not None}


def _count(text: str) -> int | None:
    """How many CPUs a list such as `0-3,8` has; None for other text."""
    total = 0
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and len(part) < 16):
            return None
        total += int(last) - int(first) + 1
    return total if total > 0 else None


def _number(text: str) -> float | None:
    try:
        return within(float(text), NUMBER_MOST)
    except ValueError:
        return None
