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
        has = self._plain
        memory = words.size_pair(has["hbm_used_bytes"], has["hbm_limit_bytes"])
        name = " ".join(filter(None, (has["name"], has["kind"])))
        pid = None if has["pid"] is None else f"pid {has['pid']}"
        return _line("Device", name, None if memory == words.UNKNOWN else memory, pid)


class ProcessPart(Item):
    """A process's own repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        has = self._plain
        command = words.shortened(words.command(has["command"]), TEXT_MOST)
        state = has["phase"] if has["state"] == "live" else has["state"]
        verdict = {"stale": "stale", "maybe": "maybe stale"}.get(has["verdict"])
        devices = counted(len(has["devices"]), "device")
        return _line("Process", f"{has['pid']} {command}", state, verdict, devices)


class SitePart(Item):
    """The repr of a line of code that holds memory."""

    __slots__ = ()

    def __repr__(self) -> str:
        has = self._plain
        size = None if has["bytes"] is None else words.size(has["bytes"])
        return _line("Site", f"{has['function']} {has['file']}:{has['line']}", size)


class NoticePart(Item):
    """The repr of a notice."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Notice {self._plain['code']}: {self._plain['message']}>"


def headline(has: dict[str, Any]) -> str:
    """The repr of a snapshot."""
    host = has["host"]
    simulated = " (simulated)" if has["simulated"] else ""
    several = {"device": "", "process": "processes", "warning": ""}
    counts = [counted(len(has[many or f"{one}s"]), one, many) for one, many in several.items()]
    shown = [count for count in counts if not count.startswith("0 warn")]
    return f"<Snapshot of {host['name']}{simulated} at {host['time']}: {', '.join(shown)}>"
