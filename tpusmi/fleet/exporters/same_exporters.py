"""Several addresses of one machine: it is shown once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from tpusmi.fleet.exporters.exporter_record import ExporterReading, ExporterRecord
from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.text import counted

NAMED_MOST = 3
Sign = tuple[object, ...]


class SameExporters:
    """Remembers which addresses have been the same machine.

    An exporter only says which machine it is of. Two addresses are one machine if both answer and
    say the same; one that says so when the other no longer answers may be a stranger, and both are
    shown.
    """

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        """By address: the one that is shown in its place."""
        self._since: dict[str, tuple[Sign | None, int]] = {}
        """By address: the identity that it has, and which one it was of all."""
        self._count = 0
        self._doubts: list[tuple[str, str]] = []

    def shown(
        self, records: Sequence[ExporterRecord]
    ) -> tuple[tuple[FleetHost, ...], tuple[str, ...]]:
        """Each host once, at an address that answers if one does, and sentences about those that
        are there again, or may be.
        """
        hosts_of = {str(record.exporter): record.host() for record in records}
        live = {address for address, host in hosts_of.items() if host.state == HostState.LIVE}
        self._note_identities(records, hosts_of)
        self._prefer(live)
        self._doubts = []
        answering = {str(r.exporter) for r in records if r.reading is not None and not r.failures}
        by_sign: dict[Sign, str] = {}
        firsts = {
            str(record.exporter): self._same_as(record, answering, by_sign)
            for record in sorted(records, key=lambda r: self._rank(str(r.exporter), live))
        }
        hosts, again = [], []
        for address, host in hosts_of.items():
            first = firsts[address]
            if first is None or first not in hosts_of:
                hosts.append(host)
            else:
                again.append(f"{address} is {first}")
        return tuple(hosts), tuple(_sentences(again, self._doubts))

    def _note_identities(
        self, records: Sequence[ExporterRecord], hosts_of: Mapping[str, FleetHost]
    ) -> None:
        """Remember since when each address has been what it is, and forget those that have left."""
        self._since = {a: since for a, since in self._since.items() if a in hosts_of}
        self._first = {a: first for a, first in self._first.items() if a in hosts_of}
        for record in records:
            address = str(record.exporter)
            if record.reading is None:
                continue
            old, identity = self._since.get(address), record.reading.identity
            if old is None or old[0] != identity:
                self._count += 1
                self._since[address] = identity, self._count

    def _rank(self, address: str, live: Set[str]) -> tuple[bool, int]:
        """Live ones come first, then those that have been their machine for longest."""
        _, number = self._since.get(address, (None, self._count + 1))
        return address not in live, number

    def _prefer(self, live: Set[str]) -> None:
        """Have a machine shown at an address that answers, in place of one that no longer does."""
        for address, first in [*self._first.items()]:
            if address in live and first not in live and self._first.get(address) == first:
                del self._first[address]
                others = {a: address for a, shown in self._first.items() if shown == first}
                self._first |= {**others, first: address}

    def _same_as(
        self, record: ExporterRecord, answering: Set[str], by_sign: dict[Sign, str]
    ) -> str | None:
        """The address of the same machine that comes before it; None if it is the first."""
        address = str(record.exporter)
        if record.reading is None:
            return self._first.get(address)
        signs = _signs(record.reading)
        first = next((by_sign[sign] for sign in signs if sign in by_sign), None)
        if first is not None and not self._is_sure(address, first, answering):
            self._doubts.append((first, address))
            return None
        for sign in signs:
            by_sign.setdefault(sign, first or address)
        if first is not None:
            self._first[address] = first
        elif record.reading.identity is not None:  # it has become another machine
            self._first.pop(address, None)
        return self._first.get(address)

    def _is_sure(self, address: str, first: str, answering: Set[str]) -> bool:
        """Whether both of them have said at one time that they are this machine."""
        if address in answering and first in answering:
            return True
        return self._first.get(address) == first or self._first.get(first) == address


def _sentences(again: Sequence[str], doubts: Sequence[tuple[str, str]]) -> list[str]:
    sentences = []
    if again:
        what = counted(len(again), "address is a host that is", "addresses are hosts that are")
        sentences.append(f"{what} already in the list: {_named(again)}")
    if doubts:
        what = counted(len(doubts), "host")
        pairs = [f"{one} and {other}" for one, other in doubts]
        sentences.append(
            f"{what} may be in the list twice: only one of the addresses answers: {_named(pairs)}"
        )
    return sentences


def _named(texts: Sequence[str]) -> str:
    return ", ".join(texts[:NAMED_MOST]) + (", …" if len(texts) > NAMED_MOST else "")


def _signs(reading: ExporterReading) -> list[Sign]:
    """Two machines have none in common. One text, read twice, has the same microsecond."""
    host = reading.host
    signs: list[Sign] = []
    if reading.at_s is not None:
        signs.append((host.name, host.slice, reading.at_s))
    if reading.identity is not None:
        signs.append(reading.identity)
    return signs
