"""Several addresses of one machine: it is shown once."""

from __future__ import annotations

from collections.abc import Sequence, Set

from tpusmi.fleet.exporters.exporter_record import ExporterReading, ExporterRecord
from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.text import counted

NAMED_MOST = 3


class SameExporters:
    """Remembers which addresses have been the same machine."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        """By address: the one that is shown in its place."""

    def shown(
        self, records: Sequence[ExporterRecord]
    ) -> tuple[tuple[FleetHost, ...], tuple[str, ...]]:
        """Each host once, at an address that answers if one does, and a sentence about those that
        are there again.
        """
        hosts_of = {str(record.exporter): record.host() for record in records}
        live = {address for address, host in hosts_of.items() if host.state == HostState.LIVE}
        self._prefer(live)
        by_sign: dict[tuple[object, ...], str] = {}
        firsts = {
            address: self._same_as(record, address, by_sign)
            for record in sorted(records, key=lambda r: str(r.exporter) not in live)
            for address in [str(record.exporter)]
        }
        hosts, again = [], []
        for address, host in hosts_of.items():
            first = firsts[address]
            if first is None or first not in hosts_of:
                hosts.append(host)
            else:
                again.append(f"{address} is {first}")
        if not again:
            return tuple(hosts), ()
        names = ", ".join(again[:NAMED_MOST]) + (", …" if len(again) > NAMED_MOST else "")
        what = counted(len(again), "address is a host that is", "addresses are hosts that are")
        return tuple(hosts), (f"{what} already in the list: {names}",)

    def _prefer(self, live: Set[str]) -> None:
        """Have a machine shown at an address that answers, in place of one that no longer does."""
        for address, first in [*self._first.items()]:
            if address in live and first not in live and self._first.get(address) == first:
                del self._first[address]
                others = {a: address for a, shown in self._first.items() if shown == first}
                self._first |= {**others, first: address}

    def _same_as(
        self, record: ExporterRecord, address: str, by_sign: dict[tuple[object, ...], str]
    ) -> str | None:
        """The address of the same machine that comes before it; None if it is the first."""
        if record.reading is None:
            return self._first.get(address)
        signs = _signs(record.reading)
        first = next((by_sign[sign] for sign in signs if sign in by_sign), None)
        for sign in signs:
            by_sign.setdefault(sign, first or address)
        if first is not None:
            self._first[address] = first
        elif record.reading.identity is not None:  # it has become another machine
            self._first.pop(address, None)
        return self._first.get(address)


def _signs(reading: ExporterReading) -> list[tuple[object, ...]]:
    """Two machines have none in common. One text, read twice, has the same microsecond."""
    host = reading.host
    signs: list[tuple[object, ...]] = []
    if reading.at_s is not None:
        signs.append((host.name, host.slice, reading.at_s))
    if reading.identity is not None:
        signs.append(reading.identity)
    return signs
