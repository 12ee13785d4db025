"""Several addresses of one machine: it is shown once."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.fleet.exporters.exporter_record import ExporterReading, ExporterRecord
from tpusmi.fleet.fleet_figures import FleetHost
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
        """Each host once, and a sentence about those that are there again."""
        by_sign: dict[tuple[object, ...], str] = {}
        present = {str(record.exporter) for record in records}
        hosts, again = [], []
        for record in records:
            address = str(record.exporter)
            first = self._same_as(record, address, by_sign)
            if first is None or first not in present:
                hosts.append(record.host())
            else:
                again.append(f"{address} is {first}")
        if not again:
            return tuple(hosts), ()
        names = ", ".join(again[:NAMED_MOST]) + (", …" if len(again) > NAMED_MOST else "")
        what = counted(len(again), "address is a host that is", "addresses are hosts that are")
        return tuple(hosts), (f"{what} already in the list: {names}",)

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
