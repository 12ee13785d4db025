"""Which exporters there are: those that the user names, and all addresses of a name such as that of
a headless service of Kubernetes, which come and go.
"""

from __future__ import annotations

import time

from tpusmi.fleet.exporters.exporter_addresses import ADDRESSES_MOST, Exporter, Exporters
from tpusmi.fleet.http.http_address import HttpServer
from tpusmi.fleet.http.name_lookup import LOOKUP, LookupTimeoutError


class Services:
    """Keeps the addresses of services up to date, each time it is asked."""

    def __init__(self, exporters: Exporters) -> None:
        self._single = exporters.exporters
        self._of_service: dict[Exporter, tuple[Exporter, ...]] = {
            service: () for service in exporters.services
        }
        self._why: dict[Exporter, str] = {}
        self._left_out = 0

    def exporters(self) -> tuple[dict[Exporter, None], bool]:
        """All of them, in the order of the user, and whether each service has been looked up. It
        waits for no lookup.
        """
        is_complete = True
        for service in self._of_service:
            is_complete &= self._look_up(service)
        exporters = dict.fromkeys(self._single)
        for of_service in self._of_service.values():
            exporters |= dict.fromkeys(of_service)
        self._left_out = max(0, len(exporters) - ADDRESSES_MOST)
        if self._left_out:
            exporters = dict.fromkeys([*exporters][:ADDRESSES_MOST])
        return exporters, is_complete

    def problems(self) -> tuple[str, ...]:
        """Sentences about services that cannot be looked up."""
        problems = [*self._why.values()]
        if self._left_out:
            problems.append(f"there are {self._left_out} addresses more than {ADDRESSES_MOST}")
        return tuple(problems)

    def _look_up(self, service: Exporter) -> bool:
        """False if there is no answer yet. Until there is one, those of the last stay."""
        server = service.server
        try:
            places = LOOKUP.places(server.host, time.monotonic() - 1.0)
        except LookupTimeoutError as error:
            if not self._of_service[service]:
                self._why[service] = str(error)
            return False
        except OSError as error:
            self._why[service] = str(error)
            return True
        self._why.pop(service, None)
        hosts = sorted({(len(p.host), p.host) for p in places})
        self._of_service[service] = tuple(
            Exporter(HttpServer(host, server.port, server.is_tls), service.path)
            for _, host in hosts
        )
        return True
