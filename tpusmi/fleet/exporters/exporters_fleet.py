"""The fleet as its exporters report it, without a Prometheus server. Exporters are asked on threads
whenever the fleet is looked at, and a slow or dead one does not delay the others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

from tpusmi.fleet.exporters.exporter_addresses import Exporter, exporters_of
from tpusmi.fleet.exporters.exporter_record import ExporterRecord
from tpusmi.fleet.exporters.exporters_asking import Asking
from tpusmi.fleet.exporters.exporters_reading import ExporterError, NotAskedError, read
from tpusmi.fleet.exporters.exporters_services import Services
from tpusmi.fleet.exporters.means_ring import MeansRing, looks_kept
from tpusmi.fleet.exporters.same_exporters import SameExporters
from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostHistory, HostState
from tpusmi.fleet.fleet_series import FLEET_SERIES, SHOWN_METRICS, SHOWN_SERIES
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.http.http_config import read_http_config
from tpusmi.fleet.http.http_secrets import unencrypted
from tpusmi.interpreter import WHERE
from tpusmi.model import CHIP_METRICS, DEVICE_METRICS
from tpusmi.text import counted

FIRST_LOOK_S = 2.0
"""How long the first look waits for exporters."""
PATIENCE_S = 10.0
"""The same where no other look follows, and exporters that hang keep others waiting for a thread or
a file.
"""
SOON_S = 0.4
"""The same where other looks follow and some exporters have answered."""
LATER_LOOK_S = 0.2
"""How long a look waits for exporters that answered the last time."""
FIRST_ANSWER_S, ANSWER_S = 1.8, 5.0
"""How long an exporter is waited for, on its thread. The first time, a dead one shows as such at
once.
"""
EVERY_S = 0.8
"""An exporter makes a new text each second, and a look each second asks for it."""
CPU_SHARE = 0.5
"""How much of a core it takes to read all of them."""
NO_PAST = "Exporters (--hosts) have no past: look back with --prometheus"
NAMED_MOST = 5
"""Exporters that a sentence names."""
ITEMS_OF_ALL_MOST = 200_000
"""Devices, processes, links and notices."""
_NAMES, _ALL_NAMES = frozenset(SHOWN_SERIES), frozenset(FLEET_SERIES)
_OF_DEVICES = {metric.name for metric in (*CHIP_METRICS, *DEVICE_METRICS)}
KEPT_METRICS = tuple(name for name in SHOWN_METRICS if name in _OF_DEVICES)


def _standard_input(most_bytes: int) -> bytes:
    return sys.stdin.buffer.read(most_bytes)


class ExporterFleet:
    """A FleetSource without a past: `at_s` must be None."""

    no_past = NO_PAST

    def __init__(
        self,
        addresses: str,
        http_config: str | None,
        is_patient: bool = True,
    ) -> None:
        """`is_patient`: whether the first look waits for all exporters, or only until some have
        answered, because other looks follow. `addresses` as `exporter_addresses` has them,
        `http_config` is the path of a file. Asks no exporter yet. Raises FleetError for what
        cannot be used.
        """
        try:
            exporters = exporters_of(addresses, _standard_input)
            self._config = read_http_config(http_config)
        except ValueError as error:
            raise FleetError(str(error)) from None
        self.label = str(exporters)
        named = (one.server for one in (*exporters.exporters, *exporters.services))
        self._warnings = (*self._config.warnings, *unencrypted(named, self._config))
        self._services = Services(exporters)
        self._records: dict[Exporter, ExporterRecord] = {}
        self._asking = Asking(self._ask)
        self._same = SameExporters()
        self._items = 0
        self._cost_s = 0.005
        """CPU time of one answer, on average."""
        self._has_looked = False
        self._is_patient = is_patient

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        """All hosts now: the first time after two seconds at most, or PATIENCE_S where exporters
        wait for their turn and no other look follows; then almost at once. Raises FleetError when
        no thread can be started, or no name has an address.
        """
        _check_present(at_s)
        began_s = time.monotonic()
        self._wait(began_s + (LATER_LOOK_S if self._has_looked else FIRST_LOOK_S))
        self._has_looked = True
        with self._asking.changed:
            records = [*self._records.values()]
            hosts, problems = self._same.shown(records)
        if not records and (why := self._services.problems()):
            raise FleetError("; ".join(why))
        took_s = time.monotonic() - began_s
        source = counted(len(records), "exporter") if records else self.label
        return FleetSnapshot(
            at_s=time.time(),
            source=source,
            hosts=hosts,
            problems=(
                *self._services.problems(),
                *problems,
                *(self._still_pending(hosts) if self._is_patient else ()),
                *self._warnings,
            ),
            took_s=took_s,
        )

    def details(self, host: FleetHost, at_s: float | None = None) -> FleetHost:
        """That host with all its metrics, asked at once. Raises FleetError."""
        _check_present(at_s)
        record = self._record_of(host)
        if record is None:
            raise FleetError(f"{host.name} is no longer one of these exporters")
        until_s = time.monotonic() + FIRST_ANSWER_S
        try:
            full, _ = read(record.exporter, self._config, until_s, _ALL_NAMES, record.is_large)
        except ExporterError as error:
            raise FleetError(f"{record.exporter}: {error}") from None
        with self._asking.changed:
            shown = record.host()
            reason = record.why_unchanged()
        return full.host._replace(
            key=host.key,
            address=host.key,
            state=HostState.OLD if reason else HostState.LIVE,
            reason=reason,
            age_s=shown.age_s,
        )

    def history(
        self,
        host: FleetHost,
        metrics: Sequence[str],
        span_s: float,
        points: int,
        at_s: float | None = None,
    ) -> Mapping[str, HostHistory]:
        """The past since this fleet was first looked at, of the metrics of a snapshot."""
        _check_present(at_s)
        if points < 1 or not span_s > 0:
            return {}
        record = self._record_of(host)
        if record is None:
            return {}
        with self._asking.changed:
            return record.ring.history(metrics, span_s, points, time.monotonic())

    def close(self) -> None:
        """Threads that wait for an exporter end with its deadline, and the process does not wait
        for them.
        """
        self._asking.close()

    def _record_of(self, host: FleetHost) -> ExporterRecord | None:
        """The exporter of that host; None where it is no longer one of these."""
        with self._asking.changed:
            return next((r for r in self._records.values() if str(r.exporter) == host.key), None)

    def _still_pending(self, hosts: Sequence[FleetHost]) -> Sequence[str]:
        """A sentence about those that are still waited for: a table is printed without them."""
        names = [host.name for host in hosts if host.state == HostState.PENDING]
        if not names:
            return ()
        more = f" and {len(names) - NAMED_MOST} more" if len(names) > NAMED_MOST else ""
        listed = f"{', '.join(names[:NAMED_MOST])}{more}"
        return (f"{counted(len(names), 'exporter')} had no time to answer yet: {listed}",)

    def _wait(self, until_s: float) -> None:
        """Have all exporters asked, and wait for those that can be expected to answer."""
        is_first, began_s = not self._has_looked, time.monotonic()
        while True:
            is_complete = self._look_for_exporters()
            try:
                self._asking.begin(self._records.values())
            except RuntimeError:
                raise FleetError(
                    f"no threads can be started to ask the exporters: {WHERE}"
                ) from None
            with self._asking.changed:
                is_patient = is_first and self._is_patient and self._has_some_to_come()
                ends_s = began_s + PATIENCE_S if is_patient else until_s
                left_s = ends_s - time.monotonic()
                is_waiting = any(
                    r.is_awaited and (is_first or r.answers) for r in self._records.values()
                )
                if left_s <= 0 or not (is_waiting or (is_first and not is_complete)):
                    return
                if is_first and self._has_enough(until_s):
                    return
                self._asking.changed.wait(min(left_s, 0.05))

    def _has_some_to_come(self) -> bool:
        """Whether exporters wait to be asked for the first time, or were only just asked."""
        return any(r.has_yet_to_answer(FIRST_LOOK_S) for r in self._records.values())

    def _has_enough(self, until_s: float) -> bool:
        """Whether the first look, which waits until then, can do without the other exporters."""
        is_soon = until_s - time.monotonic() > FIRST_LOOK_S - SOON_S
        return not (self._is_patient or is_soon) and any(r.answers for r in self._records.values())

    def _look_for_exporters(self) -> bool:
        """Brings the records up to date, and the count of what they hold. False if a name may still
        get its addresses.
        """
        exporters, is_complete = self._services.exporters()
        with self._asking.changed:
            old = self._records
            self._records = {
                one: old.get(one) or ExporterRecord(one, MeansRing(KEPT_METRICS))
                for one in exporters
            }
            self._items = sum(r.items for r in self._records.values())
        return is_complete

    def _ask(self, record: ExporterRecord) -> None:
        limit_s = ANSWER_S if record.answers or record.failures else FIRST_ANSWER_S
        began_cpu_s = time.thread_time()
        try:
            reading, is_large = read(
                record.exporter, self._config, time.monotonic() + limit_s, _NAMES, record.is_large
            )
        except NotAskedError:
            raise
        except ExporterError as error:
            with self._asking.changed:
                before = record.items
                record.fail(str(error))
                self._items += record.items - before
            return
        with self._asking.changed:
            self._cost_s += (time.thread_time() - began_cpu_s - self._cost_s) / 32
            record.is_large = is_large
            more = reading.items - record.items
            if more > 0 and self._items + more > ITEMS_OF_ALL_MOST:
                record.fail(f"there is no room for its {reading.items} devices and processes")
                return
            self._items += more
            if record.succeed(reading, self._every_s()):
                most = looks_kept(len(self._records), len(KEPT_METRICS))
                record.ring.add(time.monotonic(), reading.host.devices, most)

    def _every_s(self) -> float:
        return max(EVERY_S, len(self._records) * self._cost_s / CPU_SHARE)


def _check_present(at_s: float | None) -> None:
    if at_s is not None:
        raise FleetError(NO_PAST)
