"""What a holder uses of the host, by psutil: for screens, where its import is worth the time."""

from __future__ import annotations

import os
from typing import NamedTuple

from tpusmi.sources.holders.life import stream_terminal
from tpusmi.text import clean, redacted


class Usage(NamedTuple):
    """None is what may not be asked."""

    terminal: str | None = None
    cpu_percent: float | None = None
    """Of one core: since its start at the first look, then since the last one."""
    rss_bytes: int | None = None
    cwd: str | None = None


class Meter:
    """Measures one process again and again."""

    def __init__(self, proc: str, pid: int) -> None:
        import psutil

        self._path = f"{proc}/{pid}"
        self._process: psutil.Process | None = None
        self._before: tuple[float, float] | None = None
        if os.path.realpath(proc) != psutil.PROCFS_PATH:
            return  # another path would be set for the whole program, which may not be ours
        try:
            self._process = psutil.Process(pid)
        except (psutil.Error, OSError, ValueError):
            pass

    def read(self, age_s: float | None) -> Usage:
        """Its use now. `age_s` is how long it has been running."""
        import psutil

        if self._process is None:
            return Usage()
        found: dict[str, object] = {}
        for name in ("terminal", "memory_info", "cwd", "cpu_times"):
            try:
                found[name] = getattr(self._process, name)()
            except (psutil.Error, OSError, ValueError):
                continue  # one that may not be asked leaves the others
        return Usage(
            _text(found.get("terminal"), "/dev/") or stream_terminal(self._path),
            self._cpu_percent(found.get("cpu_times"), age_s),
            getattr(found.get("memory_info"), "rss", None),
            _text(found.get("cwd"), ""),
        )

    def _cpu_percent(self, times: object, age_s: float | None) -> float | None:
        if times is None or age_s is None:
            return None
        used_s = float(getattr(times, "user", 0.0)) + float(getattr(times, "system", 0.0))
        before_s, at_s = self._before or (0.0, 0.0)
        self._before = (used_s, age_s)
        return 100 * max(0.0, used_s - before_s) / (age_s - at_s) if age_s > at_s else None


def _text(value: object, prefix: str) -> str | None:
    return (
        clean(redacted(value.removeprefix(prefix)), 400)
        if isinstance(value, str) and value
        else None
    )
