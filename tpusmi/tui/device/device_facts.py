"""The current values of one device: memory, work, its job, its links. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tpusmi.model import LIBTPU_SDK, Device, Link, Snapshot, Value, servers
from tpusmi.model.several import fragmented_percent
from tpusmi.report import rows, words
from tpusmi.tui.draw.blocks import Block, Fact, of_facts
from tpusmi.tui.draw.look import Look
from tpusmi.tui.process.process_facts import letter

Read = Callable[[float | None], str]

_EXECUTION = ("mean", "p50", "p90", "p95", "p999")
_STEPS = ("p50", "p95")
_SHORT = {LIBTPU_SDK: "SDK"}


class Health(NamedTuple):
    """The meaning of a link's health number."""

    letter: str
    word: str
    style: str


HEALTHY = Health("H", "healthy", "good")
TRANSIENT = Health("T", "transient", "warn")
PERSISTENT = Health("P", "persistent", "bad")
UNUSABLE = Health("U", "unusable", "bad")


def health(number: int) -> Health:
    """The state of a link: 0 healthy, 1 to 5 transient faults, 6 to 9 persistent, 10 unusable."""
    if number <= 0:
        return HEALTHY
    if number <= servers.PASSING_MOST:
        return TRANSIENT
    return PERSISTENT if number < servers.UNUSABLE else UNUSABLE


class DeviceFacts:
    """The facts of one device in one snapshot, as blocks."""

    def __init__(self, look: Look, snapshot: Snapshot, device: Device, *, is_past: bool) -> None:
        self._look, self._s, self._d = look, snapshot, device
        self._is_past = is_past
        """An earlier moment is shown: ages are left out, for all values are of that moment."""

    def blocks(self) -> list[Block]:
        """The blocks that are not empty, the most important first."""
        owner = f" {self._d.owners[0].pid}" if self._d.owners else ""
        blocks = (
            ("MEMORY", tuple(self._memory())),
            ("WORK", tuple(self._work())),
            (f"JOB{owner}", tuple(self._job())),
            (f"ICI LINKS OF CHIP {self._d.chip}", tuple(self._links())),
        )
        return [of_facts(self._look, title, facts) for title, facts in blocks if facts]

    # -- memory

    def _memory(self) -> Iterator[Fact]:
        always = self._d.platform == "tpu"
        yield from self._value("used", "hbm_used_bytes", words.size, always=always)
        yield from self._value("limit", "hbm_limit_bytes", words.size, always=always)
        yield from self._value("peak", "hbm_peak_bytes", words.size)
        yield from self._value("reserved", "hbm_reserved_bytes", words.size)
        yield from self._value("largest free", "hbm_largest_free_block_bytes", words.size)
        used, limit = self._own("hbm_used_bytes"), self._own("hbm_limit_bytes")
        largest, live = self._own("hbm_largest_free_block_bytes"), self._own("live_array_bytes")
        fragmented = fragmented_percent(_number(used), _number(limit), _number(largest))
        if fragmented is not None:
            yield self._computed("fragmented", words.percent(fragmented), used, limit, largest)
        yield from self._value("live arrays", "live_array_bytes", words.size)
        yield from self._value("arrays", "live_arrays", words.count)
        if used is not None and live is not None and used.value >= live.value:
            rest = words.size(used.value - live.value)
            yield self._computed("unattributed", rest, used, live)
        yield from self._value("allocations", "allocations", words.count)

    # -- work

    def _work(self) -> Iterator[Fact]:
        yield from self._value("MXU", "tensorcore_utilization_percent", words.percent)
        yield from self._value("duty cycle", "duty_cycle_percent", words.percent)
        yield from self._value("HBM bandwidth", "hbm_bandwidth_utilization_percent", words.percent)
        yield from self._value("idle", "idle_s", words.idle)
        yield from self._value("HLO queue", "hlo_queue_size", words.count)
        for part in _EXECUTION:
            name = "HLO p99.9" if part == "p999" else f"HLO {part}"
            yield from self._value(name, f"hlo_execution_time_us.{part}", words.microseconds)
        for fact in self._value("throttled", "throttle_percent", words.percent):
            slow = rows.device_value(self._s, self._d, "throttle_percent").value
            yield fact._replace(style="bad") if slow is not None and slow.value > 0 else fact

    # -- its job

    def _job(self) -> Iterator[Fact]:
        """The job of a device with one owner; of several, only the page's title says more."""
        owners = [p for p in self._s.processes if p.key in self._d.owners]
        if len(owners) != 1:
            return
        (p,) = owners
        state = p.status
        if state:
            yield Fact("phase", f"{letter(p)} {state}")
        for name, metric, read in (
            ("steps", "steps", words.count),
            ("steps/s", "steps_per_s", words.rate),
            *((f"step {part}", f"step_time_s.{part}", words.duration) for part in _STEPS),
            ("MFU", "mfu_percent", words.percent),
            ("model FLOPs", "flops_per_s", words.flops),
        ):
            value = self._s.values.get((p.key, metric))
            if value is not None:
                yield self._fact(name, value, read(value.value))

    # -- links

    def _links(self) -> Iterator[Fact]:
        for link in links_of(self._s, self._d):
            state = health(link.health)
            text = f"{state.letter} {link.health} {state.word}"
            yield Fact(link.port, text, style=state.style)

    # -- facts

    def _value(self, name: str, metric: str, read: Read, *, always: bool = False) -> Iterator[Fact]:
        """The value of the device, or of its whole chip. A dash if unknown and `always`."""
        value = rows.device_value(self._s, self._d, metric).value
        if value is None:
            if always:
                yield Fact(name, words.UNKNOWN)
            return
        fact = self._fact(name, value, words.source_mark(value) + read(value.value))
        if self._own(metric) is None and metric != "throttle_percent":
            fact = fact._replace(name=f"{name} {rows.DITTO}", note=f"{fact.note} of chip")
        yield fact

    def _fact(self, name: str, v: Value, text: str) -> Fact:
        source = _SHORT.get(v.source, v.source)
        note = source if self._is_past else f"{source} {words.elapsed(v.age_s)}"
        if v.stale:
            return Fact(name, text, note, old=f"{words.elapsed(v.age_s)} old", style="dim")
        return Fact(name, text, note)

    def _computed(self, name: str, text: str, *of: Value | None) -> Fact:
        """A fact computed from these values, as old as the oldest of them."""
        oldest = max((v for v in of if v is not None), key=lambda v: v.age_s)
        return self._fact(name, oldest._replace(source="computed"), text)

    def _own(self, metric: str) -> Value | None:
        return self._s.values.get((self._d.key, metric))


def links_of(s: Snapshot, d: Device) -> list[Link]:
    """The links of the device's chip by name."""
    return sorted(s.links_of(d), key=lambda link: link.name)


def _number(v: Value | None) -> float | None:
    return None if v is None else v.value
