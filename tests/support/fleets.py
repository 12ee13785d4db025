"""A fleet without exporters: hosts that a test describes, and a source that says them."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from support.dashboards import settle
from tpusmi.fleet.fleet_figures import (
    FleetDevice,
    FleetHost,
    FleetNotice,
    FleetProcess,
    FleetSnapshot,
    HostHistory,
    HostState,
)
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.model.servers import Link
from tpusmi.tui.fleet.fleet_app import FleetDashboard
from tpusmi.tui.fleet.fleet_options import FleetOptions

GIB = float(1 << 30)
AT_S = 1_790_000_000.0
"""The Unix time of the first answer."""
JOBS = ("llama-70b", "gemma-ft", "vit-huge", "t5-xxl")


def device(host: int, chip: int, **changes: Any) -> FleetDevice:
    """A device of that host, with numbers that differ from its neighbors'."""
    wave = 0.5 + 0.5 * math.sin(host * 0.7 + chip)
    values = {
        "hbm_used_bytes": (4 + 11 * wave) * GIB,
        "hbm_limit_bytes": 15.75 * GIB,
        "tensorcore_utilization_percent": 20 + 70 * wave,
        "duty_cycle_percent": 40 + 59 * wave,
        "hbm_bandwidth_utilization_percent": 10 + 60 * wave,
        "idle_s": 0.0,
        "throttle_percent": 0.0,
    }
    given: dict[str, Any] = {
        "chip": chip,
        "name": str(chip),
        "kind": "TPU v5e",
        "coords": (chip % 2 + 2 * (host % 2), chip // 2 + 2 * (host // 2), 0),
        "core_on_chip": 0,
        "pid": 4000 + host,
        "job": None,
        "values": values,
        "platform": "tpu",
        "holders": 1,
    }
    return FleetDevice(**{**given, **changes})


def host(number: int, *, chips: int = 4, per_slice: int = 4, **changes: Any) -> FleetHost:
    """A live host whose chips one job has."""
    slice_number = number // per_slice
    job = JOBS[slice_number % len(JOBS)]
    pid = 4000 + number
    process = FleetProcess(
        pid=pid,
        job=job,
        user=("ada", "grace")[slice_number % 2],
        command=f"python train.py --config {job}.yaml",
        phase="running",
        state="live",
        verdict="not_stale",
        process_index=number % per_slice,
        process_count=per_slice,
        values={"steps": 1000.0 + number, "step_time_s.mean": 0.25, "mfu_percent": 41.0},
    )
    given: dict[str, Any] = {
        "key": f"10.0.0.{number}:9432",
        "name": f"t1v-{slice_number:02}-w-{number % per_slice}",
        "address": f"10.0.0.{number}:9432",
        "state": HostState.LIVE,
        "reason": "",
        "age_s": 2.0,
        "slice": f"v5e-{slice_number:02}",
        "topology": "4x4",
        "worker": number % per_slice,
        "accelerator_type": "v5litepod-16",
        "simulated": False,
        "chips": chips,
        "held_chips": chips,
        "devices": tuple(
            device(number % per_slice, chip, pid=pid, job=job) for chip in range(chips)
        ),
        "processes": (process,),
        "notices": (),
        "links": (),
    }
    return FleetHost(**{**given, **changes})


def throttled(h: FleetHost) -> FleetHost:
    """The host with a chip that slows itself down."""
    notice = FleetNotice("throttled", chip=1, device=None, pid=None, problems=1, age_s=125.0)
    return h._replace(notices=(notice,), links=(Link(1, "x+", 7),))


def idle(h: FleetHost) -> FleetHost:
    """The host with chips that are held and idle."""
    devices = tuple(
        d._replace(
            values={**d.values, "idle_s": 2000.0, "tensorcore_utilization_percent": 0.0,
                    "duty_cycle_percent": 0.0}
        )
        for d in h.devices
    )  # fmt: skip
    return h._replace(devices=devices)


def slow(h: FleetHost) -> FleetHost:
    """The host that the others wait for."""
    processes = tuple(p._replace(values={**p.values, "step_time_s.mean": 0.6}) for p in h.processes)
    return h._replace(processes=processes)


def down(h: FleetHost) -> FleetHost:
    """The host after its exporter ended, with its last numbers."""
    reason = "connection refused"
    return h._replace(state=HostState.DOWN, reason=reason, age_s=312.0)


def old(h: FleetHost) -> FleetHost:
    """The host with numbers that no longer change."""
    reason = "its exporter answers with old numbers"
    return h._replace(state=HostState.OLD, reason=reason, age_s=95.0)


TROUBLES: Mapping[int, Callable[[FleetHost], FleetHost]] = {
    2: throttled,
    5: down,
    7: old,
    9: slow,
    12: idle,
}


def fleet(
    hosts: int = 16,
    troubles: Mapping[int, Callable[[FleetHost], FleetHost]] = TROUBLES,
    *,
    problems: Sequence[str] = (),
    at_s: float = AT_S,
    per_slice: int = 4,
) -> FleetSnapshot:
    """An answer about so many hosts."""
    same = lambda h: h  # noqa: E731
    made = (troubles.get(n, same)(host(n, per_slice=per_slice)) for n in range(hosts))
    return FleetSnapshot(
        at_s=at_s,
        source="prometheus.example:9090",
        hosts=tuple(made),
        problems=tuple(problems),
        took_s=0.12,
    )


class ScriptedFleet:
    """Answers with one answer after the other; the last one again and again."""

    label = "prometheus.example:9090"
    no_past = ""

    def __init__(self, *answers: FleetSnapshot | FleetError) -> None:
        self._answers = [*answers] or [fleet()]
        self.asked = 0
        self.details_asked: list[str] = []
        self.history_asked: list[tuple[str, float]] = []
        self.moments: list[float | None] = []
        """Of each question about all hosts."""
        self.moments_of_host: list[float | None] = []
        """Of each question about one."""
        self.details_error = ""
        self.history_error = ""
        self.hangs: threading.Event | None = None
        """Questions about a host wait for it, where there is one."""

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        self.moments.append(at_s)
        answer = self._answers[min(self.asked, len(self._answers) - 1)]
        self.asked += 1
        if isinstance(answer, FleetError):
            raise answer
        return answer

    def details(self, host: FleetHost, at_s: float | None = None) -> FleetHost:
        self.moments_of_host.append(at_s)
        self.details_asked.append(host.key)
        if self.hangs is not None:
            self.hangs.wait(100)
        if self.details_error:
            raise FleetError(self.details_error)
        devices = tuple(
            d._replace(values={**d.values, "hbm_peak_bytes": 15.5 * GIB}) for d in host.devices
        )
        return host._replace(devices=devices)

    def history(
        self,
        host: FleetHost,
        metrics: Sequence[str],
        span_s: float,
        points: int,
        at_s: float | None = None,
    ) -> Mapping[str, HostHistory]:
        self.history_asked.append((host.key, span_s))
        self.moments_of_host.append(at_s)
        if self.hangs is not None:
            self.hangs.wait(100)
        if self.history_error:
            raise FleetError(self.history_error)
        step_s = span_s / points
        tops = {"hbm_used_bytes": 14 * GIB}
        return {
            metric: HostHistory(
                first_s=(at_s or AT_S) - span_s,
                step_s=step_s,
                values=tuple(
                    None if 40 < n < 60 else tops.get(metric, 90.0) * (0.5 + 0.5 * math.sin(n / 9))
                    for n in range(points + 1)
                ),
            )
            for metric in metrics
        }

    def close(self) -> None:
        """Nothing to give back."""


class InlineReader:
    """Reads when it is asked, without a thread."""

    def __init__(self, source: Any, deliver: Callable[[object], object]) -> None:
        self._source, self._deliver = source, deliver

    def start(self) -> None:
        """Nothing to start."""

    def ask(self) -> None:
        try:
            answer: object = self._source.snapshot()
        except Exception as error:  # noqa: BLE001  # as the real one
            answer = error
        self._deliver(answer)


@asynccontextmanager
async def fleet_dashboard(
    source: ScriptedFleet | FleetSnapshot | None = None,
    size: tuple[int, int] = (100, 30),
    *,
    reader: Any = InlineReader,
    passed_s: float = 0.0,
    **options: Any,
) -> AsyncIterator[Pilot[None]]:
    """The dashboard of a fleet, with a first answer of that long ago; its clock stands still."""
    scripted = ScriptedFleet(source) if isinstance(source, FleetSnapshot) else source
    app = FleetDashboard(scripted or ScriptedFleet(), FleetOptions(**options), reader=reader)
    app.scene.clock = lambda: AT_S + 1.0
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.scene.clock = lambda: AT_S + 1.0 + passed_s
        yield pilot
