"""What several tests of real processes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tpusmi.model import Host
from tpusmi.simulate.host import HostPlan, start


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """A simulated host of which no number changes, whose job has an agent."""
    with start(HostPlan("v5e-4", freeze_s=60.0, agent=True)) as found:
        yield found
