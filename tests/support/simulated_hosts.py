"""One simulated host for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tpusmi.model import Host
from tpusmi.simulate.host import Plan, start


def host_of(machine: str) -> Any:
    """The fixture, of a machine of that kind: `host = host_of("v5e-4")`."""

    @pytest.fixture(scope="module")
    def host() -> Iterator[Host]:
        with start(Plan(machine)) as found:
            yield found

    return host
