"""Simulated hosts for tests: one for all tests of a file, and faults on a running one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tpusmi.model import Host
from tpusmi.simulate import faults
from tpusmi.simulate.host import HostPlan, start


def host_of(machine: str) -> Any:
    """The fixture, of a machine of that kind: `host = host_of("v5e-4")`."""

    @pytest.fixture(scope="module")
    def host() -> Iterator[Host]:
        with start(HostPlan(machine)) as found:
            yield found

    return host


def set_faults(directory: str, texts: Sequence[str]) -> None:
    """Make a running host fail in these ways and no others: `("slow:3", "idle")`, `()`."""
    faults.parse(list(texts))
    path = f"{directory}/{faults.FILE}"
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write("".join(f"{text}\n" for text in texts))
    os.replace(f"{path}.new", path)
