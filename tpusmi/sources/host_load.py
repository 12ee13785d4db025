"""How busy and how full the machine itself is, as readings for the history: host_facts has the
numbers of one moment.
"""

from __future__ import annotations

from tpusmi.model import HOST_CPU, HOST_KEY, HOST_LOAD, HOST_MEMORY, HostFacts, Reading

SOURCE = "host"
FRESH_S = 65.0
"""As long as the longest interval of the dashboard, and a little more."""
APART_S = 0.5
"""The CPUs' time since an earlier look is too coarse over less than this."""


class HostLoad:
    """Remembers the look before: the CPUs' time is measured between two."""

    def __init__(self) -> None:
        self._before: HostFacts | None = None

    def readings(self, facts: HostFacts, at_s: float) -> list[Reading]:
        """What these facts say, and the ones before them. Unknown values are left out."""
        total, free = facts.memory_total_bytes, facts.memory_available_bytes
        values = {
            HOST_CPU: self._cpu_percent(facts),
            HOST_LOAD: None if facts.load_averages is None else facts.load_averages[0],
            HOST_MEMORY: None if total is None or free is None else max(0, total - free),
        }
        return [
            Reading(name, HOST_KEY, value, at_s, SOURCE, FRESH_S)
            for name, value in values.items()
            if value is not None
        ]

    def _cpu_percent(self, facts: HostFacts) -> float | None:
        """Share of the CPUs' time since the look before in which they were not idle."""
        before, now_s, idle_s = self._before, facts.uptime_s, facts.idle_s
        if before is None or before.uptime_s is None or now_s is None or now_s < before.uptime_s:
            self._before = facts
            return None
        elapsed_s = now_s - before.uptime_s
        if elapsed_s < APART_S:
            return None
        self._before = facts
        if idle_s is None or before.idle_s is None or not facts.cpus:
            return None
        idle = (idle_s - before.idle_s) / (elapsed_s * facts.cpus)
        return 100 * min(1.0, max(0.0, 1 - idle))
