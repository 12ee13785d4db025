"""Which hosts a filter keeps. Pure."""

from __future__ import annotations

from tpusmi.fleet.figures import FleetHost, FleetSnapshot


def kept(s: FleetSnapshot, text: str) -> FleetSnapshot:
    """The hosts that match the filter."""
    words = text.casefold().split()
    return s._replace(hosts=tuple(h for h in s.hosts if all(word in _searched(h) for word in words)))


def problem(text: str) -> str:
    """What is wrong with the filter; empty if nothing is."""
    return ""


def _searched(h: FleetHost) -> str:
    parts = [h.name, h.slice or "", h.state, *(n.code for n in h.notices)]
    parts += [f"{p.job or ''} {p.user or ''}" for p in h.processes]
    return " ".join(parts).casefold()
