"""A process with devices: what its agent says, what the kernel says, and the verdict on it.

No I/O, no clock.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tpusmi.model.notice import Notice
from tpusmi.model.states import VERDICT_WORDS, Phase, State, Verdict


class ProcessKey(NamedTuple):
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    start_ticks: int
    claim: str = ""
    """Path of the segment that names this process, when the kernel has not confirmed that it is the
    segment's writer; empty for a process that the kernel shows. A claim is equal to no process.
    """


PROCESS_FACTS = (
    "platform",
    "device_kind",
    "process_index",
    "process_count",
    "device_count",
    "python_version",
    "jax_version",
    "jaxlib_version",
    "libtpu_version",
    "recompiled",
    "profiler_port",
)
"""What a job reports once: strings and integers, None when it does not."""


ENDING_CODES = ("releasing", "unkillable")
"""Codes of signs that another signal does not change."""
LOST_CODES = ("orphaned", "session_gone")
"""Codes of signs that a process has outlived what started it. Many jobs do so on purpose."""
LOST_AFTER_S = 600.0
"""A younger process is not stale because it has outlived what started it."""
IDLE_S, STUCK_S = 30 * 60.0, 10 * 60.0


class Limits(NamedTuple):
    """For how long a holder may do nothing."""

    idle_s: float = IDLE_S
    stuck_s: float = STUCK_S


USUAL = Limits()


class Sign(NamedTuple):
    """Something about a holder that suggests that it is stale: a code, and why in a sentence."""

    code: str
    message: str


OTHER_MOUNTS = "other_mounts"


class Missing(NamedTuple):
    """A witness that could not be asked: "could not ask" is not "no objection"."""

    source: str
    message: str
    """Which witness, and why it could not be asked."""
    uid: int | None = None
    """User whose processes it could have known about; None when that may be any user."""
    process: ProcessKey | None = None
    """The only process that it could have known about, if that is known."""
    code: str = ""
    """`other_mounts` where it may be among the mounts of that process, out of sight."""
    among: frozenset[int] = frozenset()
    """The only pids that it could have known about; empty when that may be any."""

    def concerns(self, process: "Process") -> bool:
        """Whether it could have changed the verdict on that process."""
        if self.process is not None:
            return self.process == process.key
        if self.among:
            return process.key.pid in self.among
        return self.uid is None or process.uid is None or self.uid == process.uid


class Life(NamedTuple):
    """What the kernel says about a holder. None is unknown, or was not asked for."""

    state: str
    """State letter of its main thread: `R`, `S`, `D`, `T`, `t`, `Z`."""
    parent: int | None
    group: int | None
    session: int | None
    age_s: float | None
    threads: int | None
    container: str | None = None
    """Id of the container that it runs in."""
    inner_pid: int | None = None
    """Its pid inside the container."""
    signs: tuple[Sign, ...] = ()
    """Signs that it is stale, the strongest first."""
    platform: bool = False
    """One of the platform's own agents, which are never stale."""
    role: str | None = None
    """What it is in its job, when its command line tells: `resource tracker`, `fork server`."""
    newest_thread_s: float | None = None
    """Age of its newest thread. Nothing that it does with threads began later."""
    mean_cpu_percent: float | None = None
    """CPU time since its start, in percent of one core."""
    ties: tuple[str, ...] = ()
    """What ties it to a living process, or may, in words; looked for on suspects only."""
    ancestors: tuple[tuple[int, str], ...] = ()
    """Pid and command of its parent, its parent's parent, …, without the init process."""
    ports: tuple[int, ...] = ()
    """TCP ports on which it listens."""
    client_ports: tuple[int, ...] = ()
    """Ports that do not belong to libtpu, by their numbers or by the process's variables."""
    recent_cpu_percent: float | None = None
    """CPU time of the process and all that it started, in percent of one core; measured on suspects
    only.
    """
    recent_s: float | None = None
    """Time over which `recent_cpu_percent` was measured."""
    terminal: str | None = None
    """Its terminal: `pts/0`."""
    cpu_percent: float | None = None
    """CPU time since the last look, in percent of one core."""
    rss_bytes: int | None = None
    cwd: str | None = None


Place = tuple[str, str, int]
"""A line of code: function, file, line."""


class Site(NamedTuple):
    """A line of code and what it keeps alive on all devices together."""

    function: str
    file: str
    line: int
    kind: str
    """`buffer` or `executable`."""
    bytes: int | None
    """None when the backend does not know the size (executables on a TPU)."""
    count: int  # type: ignore[assignment]  # hides tuple.count
    growth_bytes_per_s: float | None = None
    """How fast it grows; None until that is known, and for programs."""


class Allocation(NamedTuple):
    """What a line of code keeps alive on one device."""

    function: str
    file: str
    line: int
    kind: str
    """`buffer` or `executable`."""
    device: int | None
    """Global id, as JAX says; None where the profile names no device."""
    bytes: int | None
    """None when the backend does not know the size (executables on a TPU)."""
    count: int  # type: ignore[assignment]  # hides tuple.count


class MemoryProfile(NamedTuple):
    """The newest device memory profile of a process, largest sites first."""

    at_s: float
    sites: tuple[Site, ...]
    allocations: tuple[Allocation, ...] = ()
    """The same by device, largest first; empty unless asked for."""
    allocations_left_out_bytes: int | None = 0
    """Bytes of the smallest, which the list has no room for; None when unknown."""
    allocations_left_out_count: int | None = 0
    rates: Mapping[Place, float | None] = {}
    """How fast lines grow on all devices together, in bytes per second. None: not known yet."""


class Process(NamedTuple):
    """A process with devices, and what its agent reports about it."""

    key: ProcessKey
    user: str | None
    command: str
    state: State = State.LIVE
    phase: Phase | None = None
    """None when unknown."""
    sampled_at_s: float | None = None
    """CLOCK_MONOTONIC of its agent's newest sample; None without one."""
    interval_s: float | None = None
    """Period of its agent's samples; None without an agent."""
    facts: Mapping[str, Any] = {}
    """PROCESS_FACTS by name."""
    profile: MemoryProfile | None = None
    warnings: tuple[Notice, ...] = ()
    holds: tuple[str, ...] = ()
    """Device nodes it holds open."""
    environment: Mapping[str, str] = {}
    """Its TPU_, JAX_ and LIBTPU_ variables that tpusmi reads at all, cleaned."""
    loaded_only: bool = False
    """It has mapped libtpu.so and holds no node: a monitor, perhaps."""
    verdict: Verdict | None = None
    """Whether this holder will do any more work; None for a process that holds nothing."""
    stale_code: str | None = None
    """Code of the sign that the verdict rests on; None when it is not stale."""
    stale_reason: str | None = None
    """Why the verdict is what it is, in a sentence; None when there is nothing to say."""
    signs: tuple[Sign, ...] = ()
    """All signs that it is stale, the strongest first."""
    life: Life | None = None
    uid: int | None = None
    """Real uid of the process by the kernel; of a claim the owner of its segment's file."""
    elsewhere: str = ""
    """Where it is, if its agent's lock proves it alive and /proc does not show it: `in another pid
    namespace`. Empty for every other process.
    """

    @property
    def stale(self) -> bool | None:
        """True and False are certain. None when it holds nothing, and when the verdict is `maybe`
        or `unknown`.
        """
        certain = {Verdict.STALE: True, Verdict.NOT_STALE: False}
        return None if self.verdict is None else certain.get(self.verdict)

    @property
    def judgment(self) -> str:
        """The verdict, its sign and the reason, after the name: `may be stale (orphaned): its
        launcher …`. A sign that the reason begins with is not repeated. Empty without a verdict.
        """
        if self.verdict is None:
            return ""
        reason, code = self.stale_reason or "", self.stale_code or ""
        sign = f" ({code})" if code and not reason.startswith(code) else ""
        return f"{VERDICT_WORDS[self.verdict]}{sign}{f': {reason}' if reason else ''}"

    @property
    def is_verified(self) -> bool:
        """False when only a file says that there is such a process."""
        return not self.key.claim

    @property
    def is_living(self) -> bool:
        """False when it has ended, and when it may have: its agent stopped writing."""
        return self.state in (State.LIVE, State.SILENT)

    @property
    def is_dead(self) -> bool:
        """True for a process that has ended and is kept for what it left."""
        return self.state == State.DEAD

    @property
    def is_stale(self) -> bool:
        """True for a process that holds the TPU and will do no more work."""
        return self.verdict == Verdict.STALE and not self.is_dead

    @property
    def is_suspect(self) -> bool:
        """True for a holder that may be stale: only its pid ends it."""
        return self.verdict == Verdict.MAYBE and not self.is_dead

    @property
    def is_doubtful(self) -> bool:
        """True where a person has to look: it is, may be, or looks stale."""
        is_unknown = self.verdict == Verdict.UNKNOWN and self.stale_code is not None
        return self.is_stale or self.is_suspect or (is_unknown and not self.is_dead)

    @property
    def is_stopped(self) -> bool:
        """True while a signal or a debugger keeps it from running."""
        return not self.is_dead and self.life is not None and self.life.state in ("T", "t")

    @property
    def status(self) -> str:
        """What it is doing, in one word; empty when unknown. That it is stale comes first."""
        if self.is_dead:
            return Phase.ENDED
        if self.verdict == Verdict.STALE:
            return Verdict.STALE
        if self.is_stopped:
            return "stopped"
        if self.verdict == Verdict.MAYBE:
            return Verdict.MAYBE
        if not self.is_verified and not self.elsewhere:
            return ""
        return State.SILENT if self.state == State.SILENT else self.phase or ""

    @property
    def pid(self) -> int:
        return self.key.pid
