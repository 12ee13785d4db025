"""The detail pane: everything known of one process, the most useful first."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from textual.geometry import Size

from tpusmi.model import STALE_HOLDER, Life, Process, Site, Snapshot
from tpusmi.report import words
from tpusmi.tui.cells import age
from tpusmi.tui.look import Look, Row
from tpusmi.tui.processes import is_dead, letter, verdict

_VERSIONS = (
    ("jax", "jax_version"),
    ("jaxlib", "jaxlib_version"),
    ("libtpu", "libtpu_version"),
    ("python", "python_version"),
)
_NAME_WIDTH = 10
_NO_AGENT = "none in it: `import tpusmi; tpusmi.start()` shows steps, memory by line, compilations"
LEAST_PLACE = 12
"""Of a file and line, however long the function's name."""


def detail_lines(
    look: Look, snapshot: Snapshot, p: Process, devices: str, told: str | None, size: Size
) -> list[Row]:
    """As many lines about the process as there is room for. `devices` are its, as `0-7`; `told` is
    how far its end is.
    """
    width, height = size
    detail = _Detail(look, snapshot, p)
    title = look.cell(f"{letter(p)} {p.pid} {p.command}", width, "head")
    end = [] if told is None else [detail.line("ending", iter([told]), "warn")]
    lines = [title, *end, *_notices(look, snapshot, p, width), *detail.facts(devices)]
    room = height - len(lines)
    if p.profile is not None and room >= 2:
        lines += _sites(look, snapshot.at_s - p.profile.at_s, p.profile.sites[: room - 1], width)
    return lines[:height]


class _Detail:
    """Lines of name and value, for one process in one snapshot."""

    def __init__(self, look: Look, snapshot: Snapshot, process: Process) -> None:
        self._look, self._snapshot, self._p = look, snapshot, process

    def facts(self, devices: str) -> list[Row]:
        """Who it is, what it holds, how its steps go, what it compiled."""
        lines = [self.line("job", self._who(devices))]
        if self._p.holds:
            lines.append(self.line("holds", self._holds()))
        if self._p.interval_s is None:
            return [*lines, *self._life(), self.line("agent", iter([_NO_AGENT]))]
        return [
            *lines,
            self.line("steps", self._steps()),
            self.line("step time", self._step_times()),
            self.line("compiles", self._compiles()),
            self.line("memory", self._memory()),
            *self._life(),
        ]

    def line(self, name: str, parts: Iterator[str], style: str = "plain") -> Row:
        """A line of that name; grey when the process has ended."""
        text = f" {self._look.glyphs.dot} ".join(parts) or words.UNKNOWN
        style = "dim" if is_dead(self._p) else style
        return self._look.line((name.ljust(_NAME_WIDTH), "title"), (text, style))

    def _who(self, devices: str) -> Iterator[str]:
        facts = self._p.facts
        if facts.get("device_kind") or facts.get("platform"):
            yield f"{facts.get('device_kind') or facts['platform']} {devices}".strip()
        if facts.get("process_count") is not None:
            yield f"process {facts.get('process_index', '?')} of {facts['process_count']}"
        if self._p.user:
            yield f"user {self._p.user}"
        for label, name in _VERSIONS:
            if facts.get(name):
                yield f"{label} {facts[name]}"

    def _life(self) -> list[Row]:
        """What the kernel knows of a holder, as far as it was told."""
        life = self._p.life
        if life is None:
            return []
        lines = (("process", [*_runs(life)]), ("started", [*_place(life)]))
        return [self.line(name, iter(parts)) for name, parts in lines if parts]

    def _holds(self) -> Iterator[str]:
        yield words.nodes(self._p.holds)
        for name, value in self._p.environment.items():
            yield f"{name}={value}"

    def _steps(self) -> Iterator[str]:
        if (steps := self._value("steps")) is not None:
            yield f"{steps:,.0f}"
        if (rate := self._value("steps_per_s")) is not None:
            yield f"{words.rate(rate)} per second"
        if (mfu := self._value("mfu_percent")) is not None:
            yield f"MFU {words.percent(mfu)}"
        if (flops := self._value("flops_per_s")) is not None:
            yield words.flops(flops)
        if (since := self._value("since_last_step_s")) is not None:
            when = "before its end" if is_dead(self._p) else "ago"
            yield f"last {words.duration(since)} {when}"
        if (cost := self._value("agent_cost_percent")) is not None:
            yield f"agent {cost:.2f} % of a core"

    def _step_times(self) -> Iterator[str]:
        for part in ("min", "mean", "p50", "p95", "max"):
            value = self._value(f"step_time_s.{part}")
            if value is not None:
                yield f"{part} {words.duration(value)}"

    def _compiles(self) -> Iterator[str]:
        if (count := self._value("compilations")) is not None:
            seconds = self._value("compile_s")
            took = f" in {words.duration(seconds)}" if count and seconds is not None else ""
            yield words.count(count) + took
        if recent := self._value("recent_compilations"):
            yield f"{words.count(recent)} of them in the last minute"
        if (programs := self._value("executables")) is not None:
            yield f"{words.count(programs)} programs in memory"

    def _memory(self) -> Iterator[str]:
        if (used := self._value("hbm_used_bytes")) is not None:
            yield f"{words.size(used)} used"
        if (live := self._value("live_array_bytes")) is not None:
            yield f"{words.size(live)} in live arrays"
        if (arrays := self._value("live_arrays")) is not None:
            yield f"{words.count(arrays)} arrays"

    def _value(self, name: str) -> float | None:
        return self._snapshot.value(name, self._p.key)


def _runs(life: Life) -> Iterator[str]:
    """How long it has run, and what it takes of the host."""
    if life.age_s is not None:
        yield f"up {words.duration(life.age_s)}"
    if life.cpu_percent is not None:
        yield f"CPU {words.percent(life.cpu_percent)}"
    if life.rss_bytes is not None:
        yield f"{words.size(life.rss_bytes)} of host memory"
    if life.role:
        yield life.role


def _program(command: str) -> str:
    """Its name alone. A daemon may write its state after it: `sshd: ann@pts/3`."""
    return words.command(command).partition(" ")[0].rstrip(":")


def _place(life: Life) -> Iterator[str]:
    """By whom it was started, and where. Of those above it the nearest and the farthest tell."""
    above = [f"{_program(command)} {pid}" for pid, command in life.ancestors]
    if above:
        yield "by " + " under ".join(dict.fromkeys((above[0], above[-1])))
    elif life.parent is not None:
        yield f"parent {life.parent}"
    if life.terminal:
        yield life.terminal
    if life.cwd:
        yield f"in {life.cwd}"
    if life.container:
        inner = f" as pid {life.inner_pid}" if life.inner_pid is not None else ""
        yield f"container {life.container[:12]}{inner}"


def _notices(look: Look, s: Snapshot, p: Process, width: int) -> list[Row]:
    """The verdict on it, and what a person can do something about. Whole: the notices below are cut
    at the edge.
    """
    told = [n for n in s.warnings if n.pid == p.pid and n.code != STALE_HOLDER]
    said = [("! ", n.message, "warn") for n in (*p.warnings, *told)]
    if p.stale:
        said.insert(0, ("! ", verdict(p), "bad"))
    elif p.stale_reason:
        said.append(("  ", verdict(p), "plain"))
    lines = []
    for mark, text, style in dict.fromkeys(said):
        lines += look.wrapped(text, width, style, mark)
    return lines


def _sites(look: Look, age_s: float, sites: tuple[Site, ...], width: int) -> list[Row]:
    """The largest allocation sites under a title row."""
    title = f"{'BYTES':>10} {'COUNT':>6}  ALLOCATED BY ({age(age_s)} ago)"
    return [look.cell(title, width, "head"), *(_site(look, s, width) for s in sites)]


def _site(look: Look, s: Site, width: int) -> Row:
    """A site; of a long path the end is what tells."""
    numbers = f"{words.size(s.bytes):>10} {words.count(s.count):>6}  "
    kind = "" if s.kind == "buffer" else f"  ({s.kind})"
    place = f"{s.file}:{s.line}"
    room = max(width - cell_len(numbers + s.function + kind) - 2, LEAST_PLACE)
    if cell_len(place) > room:
        place = look.glyphs.cut + place[-(room - 1) :]
    return look.line((numbers, "plain"), (s.function, "bold"), (f"  {place}{kind}", "dim"))
