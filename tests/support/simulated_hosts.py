"""Simulated hosts for tests: one for all tests of a file, and faults on a running one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tpusmi.model import Host
from tpusmi.simulate import description, faults
from tpusmi.simulate.accelerator import parse
from tpusmi.simulate.host import HostPlan, start
from tpusmi.simulate.running import Running


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


def running_host(
    directory: str, name: str, *texts: str, t_s: float = 60.0, processes: int = 1
) -> Running:
    """A host as its own processes see it, at one moment for ever, with these faults: no process of
    it runs.
    """
    machine = parse(name)
    each = machine.chips // processes
    told = {
        "version": description.VERSION, "generation": machine.generation.name,
        "hosts": machine.hosts, "seed": 0, "freeze_s": t_s, "born_at_s": 0.0, "cubic": False,
        "chips": [{"id": chip, "nodes": []} for chip in machine.chip_ids],
        "devices": [
            {"index": d.index, "id": d.id, "chip": d.chip, "core": d.core}
            for d in machine.devices
        ],
        "processes": [{"chips": list(range(i * each, (i + 1) * each))} for i in range(processes)],
    }  # fmt: skip
    description.write(directory, told)
    with open(f"{directory}/{faults.FILE}", "w", encoding="utf-8") as file:
        file.write("\n".join(texts))
    return Running(directory)
