"""What a person can act on in a slice: hosts that have stopped reporting, that are slow, that hold
more memory than others, or whose clock is wrong. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from tpusmi.merge.advice import notice
from tpusmi.model import Notice, SliceState
from tpusmi.model.slice_hosts import Slice, SliceProcess
from tpusmi.text import counted, duration, elapsed, noun

NAMED_MOST = 3
"""How many hosts a notice names; of more it says how many there are."""
LEAST = 3
"""Hosts from which on one can be slower than the others."""
SLOWER = 1.2
"""A step that takes this many times as long as on the others makes the whole slice slow."""
BEHIND_S = 30.0
"""How far a host may be behind the others, by their steps: more than reports are late."""
UNEVEN_PERCENT = 20.0
"""Share of the memory by which the fullest host may be above the median."""
CLOCK_S = 5.0
"""Difference of two clocks from which on logs and traces mislead."""


def of_slice(s: Slice) -> Iterator[Notice]:
    """The notices about a slice."""
    live = [h for h in s.hosts if not h.is_old]
    yield from _silent(s)
    yield from _slow(s, live)
    yield from _behind(s, live)
    yield from _uneven(s, live)
    yield from _clocks(s, live)


def _silent(s: Slice) -> Iterator[Notice]:
    silent = [h for h in s.hosts if h.state == SliceState.STOPPED]
    if silent:
        count = f"{counted(len(silent), 'host')} of {s.process_count}"
        has = noun(len(silent), "has", "have")
        text = f"{count} {has} stopped reporting: {_named(silent, lambda h: '')}"
        yield notice("slice_silent", text, s.pid, since_s=max(h.age_s for h in silent))


def stragglers(s: Slice) -> set[int]:
    """The numbers of the processes for which the others wait: slow ones, and those that are behind
    in their steps.
    """
    live = [h for h in s.hosts if not h.is_old]
    slow, _ = _slow_hosts(live)
    late, _ = _late_hosts(live)
    return {h.process_index for h in (*slow, *late)}


def _slow(s: Slice, live: Sequence[SliceProcess]) -> Iterator[Notice]:
    slow, usual_s = _slow_hosts(live)
    if slow:
        text = _named(slow, lambda h: f" {duration(h.step_time_s or 0.0)}")
        message = f"slow steps (usually {duration(usual_s)}): {text}"
        yield notice("slice_straggler", message, s.pid)


def _slow_hosts(live: Sequence[SliceProcess]) -> tuple[list[SliceProcess], float]:
    """Hosts with slow steps, the slowest first, and the time that a step usually takes."""
    times = [h.step_time_s for h in live if h.step_time_s]
    if len(times) < LEAST:
        return [], 0.0
    usual_s = median(times)
    slow = [h for h in live if h.step_time_s and h.step_time_s > SLOWER * usual_s]
    return sorted(slow, key=lambda h: -(h.step_time_s or 0.0)), usual_s


def _behind(s: Slice, live: Sequence[SliceProcess]) -> Iterator[Notice]:
    late, missing = _late_hosts(live)
    if late:
        text = _named(late, lambda h: f" {missing[h]:.0f} steps")
        yield notice("slice_straggler.behind", f"behind the other hosts: {text}", s.pid)


def _late_hosts(
    live: Sequence[SliceProcess],
) -> tuple[list[SliceProcess], dict[SliceProcess, float]]:
    """Hosts that have taken fewer steps, which those of one program do in the same order, and how
    many fewer each has.
    """
    ahead = {h: steps for h in live if (steps := _steps_now(h)) is not None}
    times = [h.step_time_s for h in ahead if h.step_time_s]
    if len(times) < LEAST:
        return [], {}
    usual, step_s = median(ahead.values()), median(times)
    missing = {h: usual - steps for h, steps in ahead.items()}
    return [h for h in ahead if missing[h] * step_s > BEHIND_S], missing


def _steps_now(h: SliceProcess) -> float | None:
    """How many steps it has taken so far, if it goes on as it did; None where that is unknown."""
    if h.steps is None or not h.step_time_s:
        return None
    since_s = h.since_last_step_s or 0.0
    is_going_on = since_s < 3 * h.step_time_s
    return h.steps + (h.data_age_s / h.step_time_s if is_going_on else 0.0)


def _uneven(s: Slice, live: Sequence[SliceProcess]) -> Iterator[Notice]:
    percents = {h: max(shares) for h in live if (shares := h.memory_percents)}
    if len(percents) < LEAST:
        return
    usual = median(percents.values())
    full = [h for h, percent in percents.items() if percent - usual > UNEVEN_PERCENT]
    if full:
        full.sort(key=lambda h: -percents[h])
        text = _named(full, lambda h: f" {percents[h]:.0f} %")
        yield notice(
            "slice_memory", f"more memory in use than the usual {usual:.0f} %: {text}", s.pid
        )


def _clocks(s: Slice, live: Sequence[SliceProcess]) -> Iterator[Notice]:
    """Clocks that differ from this host's by more than could be seen only in a long period; where
    most do so by the same, it is this host that differs from them.
    """
    most_s = max(CLOCK_S, s.period_s)
    ahead_s = {h: seconds for h in live if (seconds := h.clock_difference_s) is not None}
    usual_s = median(ahead_s.values()) if len(ahead_s) >= LEAST else 0.0
    if abs(usual_s) <= most_s:
        usual_s = 0.0
    wrong = [h for h, seconds in ahead_s.items() if abs(seconds - usual_s) > most_s]
    if wrong:
        text = _named(wrong, lambda h: _by_how_much(ahead_s[h] - usual_s))
        where = "most hosts" if usual_s else "this host"
        yield notice("slice_clock", f"another time than on {where}: {text}", s.pid)


def _by_how_much(seconds: float) -> str:
    return f" {elapsed(abs(seconds))} {'ahead' if seconds > 0 else 'behind'}"


def _named(hosts: Sequence[SliceProcess], figure: Callable[[SliceProcess], str]) -> str:
    """`host-3 (process 3) 350 ms, host-5 (process 5) 310 ms, 7 more`"""
    names = [f"{_name(h)}{figure(h)}" for h in hosts[:NAMED_MOST]]
    more = len(hosts) - NAMED_MOST
    return ", ".join([*names, *([f"{more} more"] if more > 0 else [])])


def _name(h: SliceProcess) -> str:
    number = f"process {h.process_index}"
    return f"{h.name} ({number})" if h.name else number
