"""What each notice means and what to do about it: one table by code. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tpusmi.merge.causes import CASES, cure_in_general, in_general
from tpusmi.model import OTHER_MOUNTS, STALE_HOLDER, SUSPECT_HOLDER, Notice, Process

UNKNOWN_CODE = "another version of tpusmi wrote this: see its docs/notices.md"
"""The advice for a code that an agent of another version has, and this one has not."""


class Entry(NamedTuple):
    """A code's line in the table. `{pid}` and the like stand for what the notice is about."""

    meaning: str
    advice: str


SILENT_SERVER = "silent_server"
STOPPED = "resume it with `kill -CONT {pid}`, or end it with `tpusmi kill {pid}`"
COUNT_FLOPS = "pass the count yourself: step(flops=N)"

TABLE: Mapping[str, Entry] = {
    STALE_HOLDER: Entry(
        "A process holds the TPU and will do no more work.",
        "end it: `tpusmi kill {pid}`, or k on the screen",
    ),
    SUSPECT_HOLDER: Entry(
        "A process that holds the TPU may be left over, or cannot be judged.",
        "end it if you know that it is left over: `tpusmi kill {pid}`",
    ),
    "unseen_holders": Entry(
        "A device node may have a holder that this user cannot see.",
        "run tpusmi with sudo, and outside of the container if it is in one",
    ),
    "chip": Entry(
        "Something about a chip is missing, or could not be read.",
        "in a container pass all device nodes in; else read `dmesg`, and restart the VM",
    ),
    "throttled": Entry(
        "A chip slows itself down, and the whole slice waits for it.",
        "restart the job on another host, and report this host",
    ),
    "ici_link": Entry(
        "A link between chips has a fault: collectives slow down or stop.",
        "restart the job on another host, and report this host",
    ),
    "ici_link.passing": Entry(
        "A link between chips has passing faults.",
        "watch it; if the faults go on, restart the job on another host, and report this host",
    ),
    "lock_file": Entry(
        "libtpu's lock file keeps this user from starting a job.",
        "{owner} or root can remove it: `tpusmi kill --stale`",
    ),
    "lock_file.deleted": Entry(
        "libtpu's lock file was deleted while a process had it locked.",
        "start no job on the TPU before pid {pids} has ended",
    ),
    "no_chips": Entry(
        "A metrics server reports devices of a TPU that this machine does not show.",
        "run tpusmi where the job runs, or pass the TPU's device nodes into this container",
    ),
    "silent_agent": Entry(
        "A job lives, and its agent has stopped writing.",
        "see where it hangs: `py-spy dump --pid {pid}`",
    ),
    "silent_agent.stopped": Entry(
        "The same, and the job is stopped by a signal or a debugger.", STOPPED
    ),
    SILENT_SERVER: Entry(
        "A job's libtpu does not answer: the columns that come from it are missing.",
        "tpusmi keeps asking; if the job takes no steps either, see where it hangs: "
        "`py-spy dump --pid {pid}`",
    ),
    "silent_server.stopped": Entry(
        "The same, and the job is stopped by a signal or a debugger.", STOPPED
    ),
    "silent_server.stranger": Entry(
        "What answers on a job's metrics port is not libtpu.",
        "give the job a free port: TPU_RUNTIME_METRICS_PORTS, before it starts",
    ),
    "silent_server.unowned": Entry(
        "The same, of a process that cannot be seen.", "run tpusmi with sudo to see whose it is"
    ),
    OTHER_MOUNTS: Entry(
        "A job may have an agent among mounts that are out of sight, as in a container.",
        "try sudo, look from inside, or share a directory with TPUSMI_DIR",
    ),
    "no_program": Entry(
        "A process holds the TPU and has not loaded a program yet.",
        "wait: its numbers appear once a program runs",
    ),
    "no_metrics": Entry(
        "A process holds the TPU, and libtpu reports nothing about it.",
        "call tpusmi.start() in it: an agent needs no metrics server",
    ),
    "no_metrics.local": Entry(
        "The same, because of a variable in its environment.",
        "start it without TPU_PROCESS_ADDRESSES, or call tpusmi.start() in it",
    ),
    "no_metrics.package": Entry(
        "The same, because a package is missing where tpusmi runs.",
        "`pip install protobuf` where tpusmi is installed",
    ),
    "no_metrics.agent": Entry(
        "The same, for a job that has an agent, or may have one that is out of sight.",
        "start it with TPU_RUNTIME_METRICS_PORTS=8431; if it is in a container, look from inside",
    ),
    "unused": Entry(
        "A process holds the TPU and leaves it idle for minutes.",
        "see what it waits for; if it is no longer needed, end it: `tpusmi kill {pid}`",
    ),
    "memory_grows": Entry(
        "A line of code has only kept more memory for minutes: a leak.",
        "keep numbers, float(loss), not arrays; empty lists and caches; m shows the lines",
    ),
    "memory_grows.lines": Entry(
        "The live arrays of a job have only grown for minutes, and no single line has.",
        "press m for its lines of code, and S until they are sorted by RATE",
    ),
    "memory_grows.programs": Entry(
        "The memory in use has only grown for minutes, and the live arrays have not.",
        "look for programs that are compiled again and again, each with another shape",
    ),
    "memory_grows.bare": Entry(
        "The memory in use has only grown for minutes, of a job without an agent.",
        "call tpusmi.start() in it to see which lines of code hold the memory",
    ),
    "slice_silent": Entry(
        "Hosts of the job have stopped reporting: collectives will wait for them.",
        "look there: `tpusmi ps` shows if the job lives; else restart the job without that host",
    ),
    "slice_straggler": Entry(
        "A host takes longer for its steps than the others, and the whole slice waits for it.",
        "run tpusmi there: is a chip throttled, or its CPU or its input slow?",
    ),
    "slice_straggler.behind": Entry(
        "A host has taken fewer steps than the others.",
        "see where it waits: `py-spy dump` of the job on that host",
    ),
    "slice_memory": Entry(
        "A host holds more device memory than the others, and runs out of it first.",
        "check the shardings: m on that host shows the lines of code that hold its memory",
    ),
    "slice_clock": Entry(
        "The clock of a host is wrong, or this one's is: logs and traces of them do not match.",
        "let chrony or systemd-timesyncd set the clock on that host",
    ),
    "slice_off": Entry(
        "The agent no longer reads the other hosts of its job. The job is not affected.",
        "look at each host by itself; if process 0 of the job hangs, restart the job",
    ),
    "cpu_fallback": Entry(
        "There are TPUs, and JAX runs on the CPU without having been told to.",
        "check JAX_PLATFORMS, that jax[tpu] is installed, and who has the TPU: `tpusmi ps`",
    ),
    "agent_off": Entry(
        "The agent in a job switched itself off after an error. The job is not affected.",
        "restart the job to have its numbers again, and report the error",
    ),
    "no_memory_profile": Entry(
        "The agent takes no memory profile: lines of code and live arrays are missing.",
        "nothing: memory in use is still measured, only the lines of code are missing",
    ),
    "no_utilization": Entry(
        "The agent no longer reads the libtpu metrics of its own job.",
        "run tpusmi where it can ask libtpu's metrics server, or restart the job",
    ),
    "no_profiler_server": Entry(
        "JAX's profiler server does not listen on the port that tpusmi.start() was given.",
        "choose another port, or update jaxlib; `tpusmi profile PID` works without one",
    ),
    "compilations_missed": Entry(
        "A library removed JAX's monitoring listeners: the total of compilations is unknown.",
        "call tpusmi.start() after jax.monitoring.clear_event_listeners()",
    ),
    "flops_ignored": Entry(
        "step(flops=) was given something that is not a number of FLOPs.",
        "pass a plain number, the FLOPs of one step: step(flops=6e12)",
    ),
    "flops_unknown": Entry("XLA does not tell the FLOPs of a tracked function.", COUNT_FLOPS),
    "flops_incomplete": Entry("Some FLOPs of a tracked function are not counted.", COUNT_FLOPS),
    "flops_estimated": Entry("The FLOPs of a tracked function are an estimate.", COUNT_FLOPS),
}
"""By code; after a dot, a case of it that has an advice of its own."""
CODES = frozenset((*(c.partition(".")[0] for c in TABLE), *(c.notice for c in CASES if c.notice)))
"""Every code. What slows a job down has its meaning and its advice in `causes.py`."""
OF_AGENTS = frozenset(
    (
        "cpu_fallback",
        "agent_off",
        "no_memory_profile",
        "no_utilization",
        "no_profiler_server",
        "slice_off",
        "compilations_missed",
        "flops_ignored",
        "flops_unknown",
        "flops_incomplete",
        "flops_estimated",
    )
)
"""Codes that an agent may write: its word counts for no other."""
ON_DEVICES = frozenset(
    (
        STALE_HOLDER,
        SUSPECT_HOLDER,
        SILENT_SERVER,
        "no_metrics",
        "no_program",
        "unused",
        "busy_for_nothing",
        "memory_grows",
    )
)
"""Codes about a process that concern each of its devices as well."""


def notice(code: str, message: str, pid: int | None = None, **more: Any) -> Notice:
    """A notice with the advice for its code, which names a `case` after a dot: `lock_file.deleted`.

    `more` are other fields of the notice, and what the advice names.
    """
    fields = {name: more.pop(name) for name in ("chip", "device", "since_s") if name in more}
    advice = TABLE[code].advice.format(pid=pid, **more)
    return Notice(code.partition(".")[0], message, pid, advice=advice, **fields)


def rows() -> Iterator[tuple[str, str, str]]:
    """Code, meaning and advice of every case, in the order of docs/notices.md."""
    for code, entry in TABLE.items():
        names = dict.fromkeys(("pid", "pids"), "PID") | {"owner": "its owner"}
        yield code.partition(".")[0], entry.meaning, entry.advice.format(**names)
    warned = (case for case in CASES if case.notice)
    yield from ((case.notice, in_general(case), cure_in_general(case)) for case in warned)


def advised(p: Process) -> Process:
    """The process with advice in what its agent warns of."""
    return p._replace(warnings=tuple(n._replace(advice=_of_agent(n)) for n in p.warnings))


def _of_agent(n: Notice) -> str:
    return TABLE[n.code].advice.format(pid=n.pid) if n.code in OF_AGENTS else UNKNOWN_CODE
