"""The detail pane: everything known of one process, the most useful first."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.model import Process, Site, Snapshot
from tpusmi.tui import quantities as q
from tpusmi.tui.look import Look, Row
from tpusmi.tui.processes import device_range, letter

_FACTS = (("jax", "jax_version"), ("jaxlib", "jaxlib_version"), ("libtpu", "libtpu_version"),
          ("python", "python_version"))  # fmt: skip
_NAME_WIDTH = 10


def detail_lines(look: Look, snapshot: Snapshot, p: Process, width: int, height: int) -> list[Row]:
    """At most `height` lines about the process."""
    title = f"{letter(p)} {p.pid} {p.command}"
    lines = [
        look.cell(title, width, "head"),
        *_Detail(look, snapshot, p).facts(),
        *_notices(look, p),
    ]
    room = height - len(lines)
    if p.profile is not None and room >= 2:
        lines += _sites(look, snapshot, p, width)[:room]
    return lines[:height]


class _Detail:
    """Lines of name and value, for one process in one snapshot."""

    def __init__(self, look: Look, snapshot: Snapshot, process: Process) -> None:
        self._look, self._snapshot, self._p = look, snapshot, process

    def facts(self) -> list[Row]:
        """Who it is, how its steps go, what it compiled."""
        return [
            self._line("job", self._who()),
            self._line("steps", self._steps()),
            self._line("step time", self._step_times()),
            self._line("compiles", self._compiles()),
        ]

    def _line(self, name: str, parts: Iterator[str]) -> Row:
        text = f" {self._look.glyphs.dot} ".join(parts) or self._look.glyphs.unknown
        return self._look.line(
            (name.ljust(_NAME_WIDTH), "title"),
            (text, "dim" if self._p.state == "dead" else "plain"),
        )

    def _who(self) -> Iterator[str]:
        facts = self._p.facts
        if facts.get("device_kind") or facts.get("platform"):
            kind = facts.get("device_kind") or facts["platform"]
            yield f"{kind} {device_range(self._snapshot, self._p)}".strip()
        if facts.get("process_count") is not None:
            yield f"process {facts.get('process_index', '?')} of {facts['process_count']}"
        if self._p.user:
            yield f"user {self._p.user}"
        for label, name in _FACTS:
            if facts.get(name):
                yield f"{label} {facts[name]}"

    def _steps(self) -> Iterator[str]:
        if (steps := self._value("steps")) is not None:
            yield q.in_count(steps)
        if (rate := self._value("steps_per_s")) is not None:
            yield f"{q.in_rate(rate)} per second"
        if (since := self._value("since_last_step_s")) is not None:
            yield f"last {q.in_seconds(since)} ago"
        if (cost := self._value("agent_cost_percent")) is not None:
            yield f"agent {cost:.2f}% of a core"

    def _step_times(self) -> Iterator[str]:
        for part in ("min", "mean", "p50", "p95", "max"):
            value = self._value(f"step_time_s.{part}")
            if value is not None:
                yield f"{part} {q.in_seconds(value)}"

    def _compiles(self) -> Iterator[str]:
        if (count := self._value("compilations")) is not None:
            seconds = self._value("compile_s")
            yield q.in_count(count) + ("" if seconds is None else f" in {q.in_seconds(seconds)}")
        if (recent := self._value("recent_compilations")) is not None:
            yield f"{q.in_count(recent)} in the last minute"
        if (programs := self._value("executables")) is not None:
            yield f"{q.in_count(programs)} programs in memory"

    def _value(self, name: str) -> float | None:
        return self._snapshot.value(name, self._p.key)


def _notices(look: Look, p: Process) -> list[Row]:
    reason = [p.stale_reason] if p.stale_reason else []
    return [
        look.line(("! ", "warn"), (text, "warn"))
        for text in (*reason, *(n.message for n in p.warnings))
    ]


def _sites(look: Look, snapshot: Snapshot, p: Process, width: int) -> list[Row]:
    """The largest allocation sites under a title row."""
    assert p.profile is not None
    old = q.age(snapshot.at_s - p.profile.at_s)
    title = f"{'BYTES':>9} {'COUNT':>7}  ALLOCATED BY ({old} ago)"
    return [look.cell(title, width, "head"), *(_site(look, s) for s in p.profile.sites)]


def _site(look: Look, s: Site) -> Row:
    size = look.glyphs.unknown if s.bytes is None else q.in_bytes(s.bytes)
    numbers = f"{size:>9} {q.in_count(s.count):>7}  "
    kind = "" if s.kind == "buffer" else f"  ({s.kind})"
    return look.line(
        (numbers, "plain"), (s.function, "bold"), (f"  {s.file}:{s.line}{kind}", "dim")
    )
