"""The facts of one process in words: the parts of lines on several pages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpusmi.chips import usual_kind
from tpusmi.model import SOLE_HOLDER, Notice, Phase, Process, Snapshot, State, Verdict
from tpusmi.report import words
from tpusmi.report.concerns import OF_VERDICT, Concerns
from tpusmi.text import noun
from tpusmi.tui.draw.look import Look, Row

SILENT, DEAD, UNKNOWN, STALE, SUSPECT, STOPPED = "!", "X", "?", "L", "M", "T"
LETTERS: dict[str, str] = {
    Phase.STARTING: "S",
    Phase.COMPILING: "C",
    Phase.RUNNING: "R",
    Phase.IDLE: "I",
    Phase.ENDED: DEAD,
}
"""The letter of each phase, which needs no color to see."""
_MARKS = {"stale": STALE, "stopped": STOPPED, Verdict.MAYBE: SUSPECT, "silent": SILENT}
_STYLES = {
    "R": "good",
    "C": "warn",
    "S": "warn",
    SILENT: "bad",
    STALE: "bad",
    DEAD: "dim",
    SUSPECT: "warn",
    STOPPED: "bad",
}
VERSIONS = (
    ("jax", "jax_version"),
    ("jaxlib", "jaxlib_version"),
    ("libtpu", "libtpu_version"),
    ("python", "python_version"),
)
NO_AGENT = "none: add `import tpusmi; tpusmi.start()` for steps, memory, compilations"
STEP_PARTS = ("min", "mean", "p50", "p95", "max")


STILL_STEPS, STILL_LEAST_S = 10, 5.0
"""A job that has taken no step for this many step times, and at least this long, stands still."""


def still_s(s: Snapshot, p: Process) -> float | None:
    """For how long a job that should be taking steps has taken none; None where it does take them,
    or compiles, or where that is unknown.
    """
    since = s.values.get((p.key, "since_last_step_s"))
    step_s = s.value("step_time_s.p50", p.key) or s.value("step_time_s.mean", p.key)
    is_working = p.state == State.LIVE and p.phase in (Phase.RUNNING, Phase.IDLE)
    if not is_working or since is None or since.stale or step_s is None:
        return None
    return since.value if since.value >= max(STILL_STEPS * step_s, STILL_LEAST_S) else None


def no_step(seconds: float) -> str:
    """`no step for 18s`."""
    return f"no step for {words.elapsed(seconds)}"


NAME_WIDTH = 11
"""The width of a name before its text."""


def named(look: Look, name: str, text: str, width: int, style: str = "plain") -> list[Row]:
    """A text behind its name, in as many lines as it needs, all beginning below each other."""
    lines = look.wrapped(text, width, style, " " * NAME_WIDTH)
    first = look.line((name.ljust(NAME_WIDTH), "title"))
    return [(*first, *lines[0][1:]), *lines[1:]]


class JobFacts:
    """The facts of one process in one snapshot, each kind as parts of a line."""

    def __init__(self, snapshot: Snapshot, process: Process) -> None:
        self._snapshot, self._p = snapshot, process

    def where(self, devices: str) -> Iterator[str]:
        """The kind of its devices, and their numbers, as `0-7`."""
        facts = self._p.facts
        kind = facts.get("device_kind") or facts.get("platform")
        if kind:
            yield f"{usual_kind(str(kind))} {devices}".strip()

    def rank(self) -> Iterator[str]:
        """Its index among the processes of its job."""
        facts = self._p.facts
        if facts.get("process_count") is not None:
            yield f"process {facts.get('process_index', '?')} of {facts['process_count']}"

    def versions(self) -> Iterator[str]:
        """Its versions of JAX and the like, as far as they are known."""
        for label, name in VERSIONS:
            if self._p.facts.get(name):
                yield f"{label} {self._p.facts[name]}"

    def environment(self) -> Iterator[str]:
        """Its known environment variables."""
        for name, value in self._p.environment.items():
            yield f"{name}={value}"

    def steps(self) -> Iterator[str]:
        """How many steps, and how fast."""
        if (steps := self.value("steps")) is not None:
            yield f"{steps:,.0f}"
        if (rate := self.value("steps_per_s")) is not None:
            yield f"{words.rate(rate)} per second"

    def flops(self) -> Iterator[str]:
        """MFU, and FLOP/s."""
        if (mfu := self.value("mfu_percent")) is not None:
            yield f"MFU {words.percent(mfu)}"
        if (flops := self.value("flops_per_s")) is not None:
            yield words.flops(flops)

    def last_step(self) -> Iterator[str]:
        """How long ago the last step was, or how long before its end."""
        if (since := self.value("since_last_step_s")) is not None:
            if still_s(self._snapshot, self._p) is not None:
                yield no_step(since)
                return
            took = words.duration(since)
            is_dead = self._p.is_dead
            yield f"last step {took} before it ended" if is_dead else f"last {took} ago"

    def cost(self) -> Iterator[str]:
        """The agent's cost for the job."""
        if (cost := self.value("agent_cost_percent")) is not None:
            yield f"agent {cost:.2f} % of a core"

    def step_times(self) -> Iterator[str]:
        """Minimum, mean, percentiles and maximum of the last minute."""
        for part in STEP_PARTS:
            value = self.value(f"step_time_s.{part}")
            if value is not None:
                yield f"{part} {words.duration(value)}"

    def step_body(self) -> Iterator[str]:
        """How long the bodies of `with tpusmi.step():` take, out of the time between steps."""
        body, period = self.value("step_body_s.mean"), self.value("step_time_s.mean")
        if body is None or period is None:
            return
        yield f"mean {words.duration(body)} of {words.duration(period)}"
        for part in ("p50", "p95"):
            if (value := self.value(f"step_body_s.{part}")) is not None:
                yield f"{part} {words.duration(value)}"

    def compilations(self) -> Iterator[str]:
        """How many, how long they took, how many just now."""
        if (count := self.value("compilations")) is not None:
            seconds = self.value("compile_s")
            took = f" in {words.duration(seconds)}" if count and seconds is not None else ""
            yield words.count(count) + took
        if recent := self.value("recent_compilations"):
            of_them = "" if count is None else " of them"
            yield f"{words.count(recent)}{of_them} in the last minute"
        if (programs := self.value("executables")) is not None:
            yield f"{words.count(programs)} {noun(programs, 'program')} in memory"

    def memory(self) -> Iterator[str]:
        """Its share of the device memory."""
        used = self._snapshot.values.get((self._p.key, "hbm_used_bytes"))
        if used is not None:
            whose = " on chips that only it holds" if used.source == SOLE_HOLDER else ""
            yield f"{words.size(used.value)} used{whose}"
        if (live := self.value("live_array_bytes")) is not None:
            yield f"{words.size(live)} in live arrays"
        if (arrays := self.value("live_arrays")) is not None:
            yield f"{words.count(arrays)} {noun(arrays, 'array')}"

    def runs(self) -> Iterator[str]:
        """How long it has run, and its use of CPU and host memory."""
        life = self._p.life
        if life is None:
            return
        if life.age_s is not None:
            yield f"up {words.duration(life.age_s)}"
        if life.cpu_percent is not None:
            yield f"CPU {words.percent(life.cpu_percent)}"
        if life.rss_bytes is not None:
            yield f"{words.size(life.rss_bytes)} of host memory"
        if life.role:
            yield life.role

    def place(self) -> Iterator[str]:
        """Its nearest and its farthest ancestor, terminal, directory and container."""
        life = self._p.life
        if life is None:
            return
        above = [f"{_program(command)} ({pid})" for pid, command in life.ancestors]
        if above:
            yield "by " + " under ".join(dict.fromkeys((above[0], above[-1])))
        elif life.parent is not None:
            yield f"by pid {life.parent}"
        if life.terminal:
            yield life.terminal
        if life.cwd:
            yield f"directory {life.cwd}"
        if life.container:
            inner = f" as pid {life.inner_pid}" if life.inner_pid is not None else ""
            yield f"container {life.container[:12]}{inner}"

    def value(self, name: str) -> float | None:
        """The process's own value of that metric."""
        return self._snapshot.value(name, self._p.key)


def own_warnings(s: Snapshot, p: Process) -> list[Notice]:
    """The warnings about the process and about its chips, each once. Of one that has ended, or
    that only a file shows, its own words alone: its pid may be another's.
    """
    notices = (*p.warnings, *Concerns(s).of_process(p, s.devices_of(p.key)))
    return list({n.message: n for n in notices}.values())


def without_verdict(notices: Iterable[Notice]) -> list[Notice]:
    """The notices but for the verdict, where that is shown by itself."""
    return [n for n in notices if n.code not in OF_VERDICT]


def _program(command: str) -> str:
    """The name of a program, without the state that a daemon may write after it."""
    return words.command(command).partition(" ")[0].rstrip(":")


def letter(p: Process) -> str:
    """The letter for the state of a process."""
    state = p.status
    return _MARKS.get(state) or LETTERS.get(state, UNKNOWN)


def letter_style(p: Process) -> str:
    """The style of that letter."""
    return _STYLES.get(letter(p), "plain")


def verdict_style(p: Process) -> str:
    """The style of the verdict in words."""
    return "bad" if p.stale else "warn" if p.is_doubtful else "plain"
