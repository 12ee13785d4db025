"""How the objects of a snapshot show themselves: what it is, in a line."""

from __future__ import annotations

from typing import Any

from tpusmi.api.item import TEXT_MOST, Item
from tpusmi.report import words
from tpusmi.text import counted


def _line(kind: str, *facts: str | None) -> str:
    return f"<{kind} {', '.join(filter(None, facts))}>"


class DevicePart(Item):
    """A device's own repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        plain = self._plain
        memory = words.size_pair(plain["hbm_used_bytes"], plain["hbm_limit_bytes"])
        name = " ".join(filter(None, (plain["name"], plain["kind"])))
        pid = None if plain["pid"] is None else f"pid {plain['pid']}"
        return _line("Device", name, None if memory == words.UNKNOWN else memory, pid)


class ProcessPart(Item):
    """A process's own repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        plain = self._plain
        command = words.shortened(words.command(plain["command"]), TEXT_MOST)
        state = plain["phase"] if plain["state"] == "live" else plain["state"]
        verdict = {"stale": "stale", "maybe": "maybe stale"}.get(plain["verdict"])
        devices = counted(len(plain["devices"]), "device")
        return _line("Process", f"{plain['pid']} {command}", state, verdict, devices)


class SitePart(Item):
    """The repr of a line of code that holds memory."""

    __slots__ = ()

    def __repr__(self) -> str:
        plain = self._plain
        size = None if plain["bytes"] is None else words.size(plain["bytes"])
        return _line("Site", f"{plain['function']} {plain['file']}:{plain['line']}", size)


class NoticePart(Item):
    """The repr of a notice."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Notice {self._plain['code']}: {self._plain['message']}>"


def headline(plain: dict[str, Any]) -> str:
    """The repr of a snapshot."""
    host = plain["host"]
    simulated = " (simulated)" if plain["simulated"] else ""
    counts = [
        counted(len(plain["devices"]), "device"),
        counted(len(plain["processes"]), "process", "processes"),
    ]
    if plain["warnings"]:
        counts.append(counted(len(plain["warnings"]), "warning"))
    return f"<Snapshot of {host['name']}{simulated} at {host['time']}: {', '.join(counts)}>"
