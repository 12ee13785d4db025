"""The marks of a host's devices, the same in a heat map and on a torus. Pure."""

from __future__ import annotations

from collections.abc import Collection

from tpusmi.fleet.fleet_figures import FleetDevice, FleetHost, FleetNotice, HostState
from tpusmi.merge.advice import ON_DEVICES
from tpusmi.report.concerns import MARK, SILENT, STRAGGLES


class DeviceMarks:
    """How each device of a host is marked. As on the host itself, a notice about a process marks
    its devices only where it concerns them as well.
    """

    def __init__(self, host: FleetHost, notices: Collection[FleetNotice], is_slow: bool) -> None:
        """`is_slow`: the others wait for the host."""
        self._of_host = SILENT if host.state == HostState.DOWN else STRAGGLES if is_slow else ""
        self._chips = {n.chip for n in notices if n.chip is not None}
        self._of_processes = {
            (n.pid, n.device)
            for n in notices
            if n.pid is not None and (n.device is not None or n.code in ON_DEVICES)
        }

    def of(self, d: FleetDevice | None) -> str:
        """The mark of that device, empty for none; None is a host of which no device is known."""
        if d is None or self._of_host:
            return self._of_host
        is_of_process = d.pid is not None and not self._of_processes.isdisjoint(
            ((d.pid, None), (d.pid, d.name))
        )
        return MARK if d.chip in self._chips or is_of_process else ""
