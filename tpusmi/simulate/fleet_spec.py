"""Which hosts a simulated fleet has: `16`, `v5e-256`, or `v5e-256,v5p-128*2,v6e-8*100`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tpusmi.simulate.accelerator import parse

HOSTS_MOST = 10_000
SPEC_MOST = 1000
"""Characters of a specification."""
MIXED_TYPES = {
    64: ("v5p-512", "v5e-256"),
    16: ("v5p-128", "v5e-64"),
    4: ("v5p-32", "v5e-16"),
    1: ("v5p-8", "v5e-4"),
}
"""Slices of which a fleet of that many hosts is made, by their number of hosts: 4 chips each."""
_PART = re.compile(
    r"(?:(?P<hosts>[0-9]{1,9})|(?P<type>[A-Za-z0-9-]{1,32}))(?:\*(?P<times>\d{1,9}))?"
)

STRAGGLER, BAD_LINK, IDLE, FREE, THROTTLED = "straggler", "bad link", "idle", "free", "throttled"
OLD, HUNG, YOUNG, LEAK, NONE = "old", "hung", "young", "leak", ""
TROUBLES = (STRAGGLER, BAD_LINK, IDLE, NONE, FREE, THROTTLED, OLD, HUNG, YOUNG, LEAK)
"""What is unusual about each of ten slices. The twenty slices after those are in order."""
PROGRAMS = ("pretrain.py", "finetune.py", "train.py", "evaluate.py", "rlhf.py", "distill.py")
USERS = ("ann", "bob", "carol", "dave")


class FleetSlice(NamedTuple):
    """A slice, or a single host, and the job on it."""

    number: int
    accelerator_type: str
    hosts: int
    trouble: str

    @property
    def name(self) -> str:
        """The name after `tpusmi serve --slice`."""
        return f"{self.accelerator_type}-{self.number}"

    @property
    def program(self) -> str:
        """The script of its job. Several slices have the same."""
        return PROGRAMS[self.number % len(PROGRAMS)]

    @property
    def user(self) -> str:
        return USERS[self.number % len(USERS)]

    def is_down(self, worker: int) -> bool:
        """Whether that host has died. In ten slices of 8 hosts or more, one has."""
        return (
            self.hosts >= DOWN_FROM_HOSTS and self.number % 10 < 2 and worker == self.hosts * 2 // 3
        )

    def is_old(self, worker: int) -> bool:
        """Whether the exporter of that host answers with old numbers."""
        return self.trouble == OLD and worker == self.hosts // 2


DOWN_FROM_HOSTS = 8


def slices_of(spec: str) -> tuple[FleetSlice, ...]:
    """The slices of a fleet. Raises ValueError with a sentence for the user."""
    if len(spec) > SPEC_MOST:
        raise ValueError(f"a simulated fleet is described by up to {SPEC_MOST} characters")
    made: list[FleetSlice] = []
    left = HOSTS_MOST
    for part in spec.split(","):
        for accelerator_type in _types(part.strip()):
            hosts = parse(accelerator_type).hosts
            left -= hosts
            if left < 0:
                raise ValueError(f"a simulated fleet has at most {HOSTS_MOST:,} hosts")
            made.append(FleetSlice(len(made), accelerator_type, hosts, _trouble(len(made))))
    return tuple(made)


def _types(part: str) -> Iterator[str]:
    """The accelerator type of each slice of a part of a specification."""
    match = _PART.fullmatch(part)
    if match is None or match["times"] == "0":
        raise ValueError(
            "a simulated fleet is a number of hosts, or types of slices with commas between them: "
            "16, v5e-256, v5p-128*2"
        )
    for _ in range(min(int(match["times"] or 1), HOSTS_MOST + 1)):
        if match["hosts"] is None:
            yield match["type"]
        else:
            yield from _mixed(int(match["hosts"]))


def _mixed(hosts: int) -> Iterator[str]:
    """Slices of several sizes that have so many hosts together. Each takes half of them at most."""
    if not 1 <= hosts <= HOSTS_MOST:
        raise ValueError(f"a simulated fleet has 1 to {HOSTS_MOST:,} hosts")
    number = 0
    while hosts:
        size = next(size for size in MIXED_TYPES if size <= max(1, hosts // 2))
        yield MIXED_TYPES[size][number % 2]
        hosts -= size
        number += 1


def _trouble(number: int) -> str:
    return TROUBLES[number % 10] if number // 10 % 3 == 0 else NONE
