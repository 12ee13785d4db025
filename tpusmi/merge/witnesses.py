"""Witnesses of whether holders work that could not be asked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tpusmi.model import AGENT, FAILED, HOLDERS, LIBTPU, Missing, Outcome, Process, Server, Snapshot

SHARED = (AGENT, LIBTPU, HOLDERS, "sysfs")
"""Sources whose answers concern every process. Not every command asks libtpu's SDK."""


def missing_witnesses(outcomes: Iterable[Outcome]) -> tuple[Missing, ...]:
    """The witnesses that the sources name, and each source that failed as a whole."""
    return tuple(dict.fromkeys(witness for o in outcomes for witness in _missing(o)))


def _missing(o: Outcome) -> Iterator[Missing]:
    # A source may tell what it missed. And where every metrics server is silent it has failed, but
    # each of them is the witness of its own process alone: its silence is a sign about that one.
    if o.source in SHARED and o.status == FAILED and not (o.servers or o.missing):
        yield Missing(o.source, o.message)
    yield from o.missing


def missing_for(s: Snapshot, p: Process) -> list[Missing]:
    """The witnesses that could have changed the verdict on that process."""
    return [witness for witness in s.missing if _matters(witness, p)]


def _matters(witness: Missing, p: Process) -> bool:
    """A segment that could not be read is not that of a process whose own was read."""
    is_whole = witness.uid is None and witness.process is None and not witness.among
    has_answered = witness.source == AGENT and p.interval_s is not None and not is_whole
    return witness.concerns(p) and not has_answered


def in_words(missing: Sequence[Missing]) -> str:
    """Which could not be asked: the first, and how many more."""
    first = missing[0]
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"a witness could not be asked ({first.source}: {first.message}{more})"


def explained(
    outcomes: Sequence[Outcome], processes: Iterable[Process]
) -> tuple[tuple[Outcome, ...], tuple[Server, ...]]:
    """The outcomes, and their metrics servers, with why a server is silent: its process is stopped.
    What one source knows explains the failure of another.
    """
    why = {p.key: f"pid {p.pid} is {text}" for p in processes if (text := stopped(p))}
    explained, servers = [], []
    for o in outcomes:
        for server in o.servers:
            if server.status == FAILED and server.message and server.process in why:
                message = f"{server.message}: {why[server.process]}"
                o = o._replace(
                    message=o.message.replace(server.message, message),
                    notes=tuple(note.replace(server.message, message) for note in o.notes),
                )
                server = server._replace(message=message)
            servers.append(server)
        explained.append(o)
    return tuple(explained), tuple(servers)


def stopped(p: Process) -> str:
    """That a process is stopped, in words; empty of one that runs or waits."""
    signs = () if p.life is None else p.life.signs
    return next((sign.message for sign in signs if sign.code == "stopped"), "")
