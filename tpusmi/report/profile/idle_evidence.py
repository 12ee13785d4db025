"""Why the cores were idle, as far as a trace shows it: what other findings do not explain. Pure."""

from __future__ import annotations

from collections import Counter

from tpusmi.report import words
from tpusmi.text import clean
from tpusmi.trace.figures import ProgramRuns, TraceProfile

NAME_MOST = 60
SMALL_PROGRAM_S = 1e-3
MANY_PER_S = 200.0
"""Short programs, one after the other, at this rate per core: starting them takes the time."""
COMPILE_LEAST_PERCENT = 2.0
"""For less of the time, compiling is not a finding, and does not explain idle time."""
NOTHING_LEAST_PERCENT = 99.9
CPU_LEAST_PERCENT = 25.0
"""A CPU that is never idle has gaps of up to a fifth of the time: between the operations of one
program, while its threads hand work to each other.
"""
MAIN_RUNS_LEAST = 5
MAIN_LEAST_PERCENT = 25.0
"""A program with so many runs and so much of the time is the loop of the job."""
BETWEEN_MOST_SHARE = 0.25
"""With less of the idle time than this between two runs, the rest of it is in a few pauses."""


def idle_fields(p: TraceProfile) -> dict[str, object]:
    """The idle fields of the evidence; without any where the idle time is unknown."""
    idle = p.idle_percent if p.idle_percent is not None else p.shares.idle_percent
    if idle is None:
        return {}
    if idle >= NOTHING_LEAST_PERCENT:
        return {"nothing_percent": idle}
    rest = max(0.0, idle - _waiting_for_input(p) - _compiling(p))
    if p.backend == "cpu" and rest < CPU_LEAST_PERCENT:
        return {}
    of_all = f"the rest of {words.percent(idle)} idle time" if rest < idle else ""
    return {"idle_of_all": of_all, **_by_cause(p, rest)}


def _by_cause(p: TraceProfile, rest: float) -> dict[str, object]:
    small = [r for r in p.programs if r.mean_s < SMALL_PROGRAM_S]
    runs = sum(r.runs for r in small)
    if runs and p.captured_s and runs / p.captured_s >= MANY_PER_S:
        return {
            "idle_small_percent": rest,
            "small_per_s": runs / p.captured_s,
            "small_mean": words.duration(sum(r.runs * r.mean_s for r in small) / runs),
        }
    main = _main_program(p)
    between = main and _between_percent(main)
    if main is None or between is None or between > BETWEEN_MOST_SHARE * rest:
        return {"idle_percent": rest}
    return {"idle_pauses_percent": rest, "main_program": clean(main.name, NAME_MOST)}


def _waiting_for_input(p: TraceProfile) -> float:
    """Idle time that waits for input; the time of infeed operations is not idle."""
    return max(0.0, (p.input_bound_percent or 0.0) - (p.shares.infeed_percent or 0.0))


def _compiling(p: TraceProfile) -> float:
    """The host starts no program while it compiles."""
    share = p.shares.compile_percent or 0.0
    return share if share >= COMPILE_LEAST_PERCENT else 0.0


def _main_program(p: TraceProfile) -> ProgramRuns | None:
    main = max(p.programs, key=lambda r: r.busy_percent, default=None)
    if main is None or main.runs < MAIN_RUNS_LEAST or main.busy_percent < MAIN_LEAST_PERCENT:
        return None
    return main


def _between_percent(main: ProgramRuns) -> float | None:
    """Share of the usual time from run to run that is not the run itself."""
    if not main.period_s:
        return None
    return max(0.0, 100.0 * (1.0 - main.mean_s / main.period_s))


def recompiled(p: TraceProfile) -> str:
    """`7 versions of jit_train_step ran`: of the program with the most; empty without such."""
    versions = Counter(r.name for r in p.programs).most_common(1)
    if not versions or versions[0][1] < 2:
        return ""
    name, count = versions[0]
    return f"{count} versions of {clean(name, NAME_MOST)} ran"
