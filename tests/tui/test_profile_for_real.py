"""P on a job of a simulated host, by the real command: the agent captures, the page shows it, and
its figures join the devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from support.dashboards import dashboard, press, text, until

from tpusmi.collect import Collector, open_collector
from tpusmi.model import PROFILE, History, Host, Snapshot
from tpusmi.simulate.host import HostPlan, start

MXU = "tensorcore_utilization_percent"


class CollectorFeed(NamedTuple):
    """The newest snapshot of a collector that runs."""

    collector: Collector

    @property
    def history(self) -> History:
        return self.collector.history

    def snapshot(self) -> Snapshot:
        return self.collector.snapshot()


@pytest.fixture
def host() -> Iterator[Host]:
    """A training job with an agent, on a machine without libtpu's SDK: no source has its MXU."""
    plan = HostPlan("v5e-4", agent=True, age_s=600.0, faults=("sdk-crash",))
    with start(plan) as found:
        yield found._replace(sdk_command=())


async def test_a_capture_of_a_simulated_job_fills_the_page_and_its_devices(host: Host) -> None:
    collector = open_collector(host, True, detailed=True)
    collector.read_once(10.0)
    collector.start()
    try:
        how = {"host": host, "keep_profile": collector.keep_profile, "interval_s": 0.25}
        async with dashboard(CollectorFeed(collector), (120, 40), **how) as pilot:
            scene = pilot.app.scene
            await until(pilot, lambda: bool(scene.snapshot.processes))
            await press(pilot, "P", "1", "enter")
            await until(pilot, lambda: scene.captures.running is None)
            page = text(pilot, "profile")
            assert "TPU v5 Lite" in page
            assert "SIMULATED" in page
            assert "by its agent" in page

            def witnesses() -> set[str]:
                s = collector.snapshot()
                return {v.source for (_, name), v in s.values.items() if name == MXU}

            await until(pilot, lambda: witnesses() == {PROFILE})
            await press(pilot, "d")
            await until(
                pilot, lambda: "witness: profile" in " ".join(text(pilot, "device").split())
            )
    finally:
        collector.stop()
