"""Machines as text files: what their /sys and /dev look like, and what is to be found in them.

`tests/machines/README.md` tells where each comes from and how to read one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tpusmi.model import Host

DIRECTORY = Path(__file__).parents[1] / "machines"
GIB, MIB = 1024**3, 1024**2

_ENTRY = re.compile(r"  (\S+)(?: \((\d+)\))? (=|->|node|fifo)(?: (.*))?")


class ExpectedChip(NamedTuple):
    """What a chip of the machine is to look like."""

    kind: str
    generation: str | None
    pci_addresses: tuple[str, ...]
    nodes: tuple[str, ...]
    devices: int
    notes: tuple[str, ...]


class Holder(NamedTuple):
    """A process that the source shows, and what it holds. In a container, its pid in there."""

    pid: int
    name: str | None
    nodes: tuple[str, ...]


class Usage(NamedTuple):
    """A row of tpu-info's usage table: ids as libtpu gives them; None where there is a dash."""

    id: int
    used_bytes: int | None
    total_bytes: int | None
    duty_percent: float | None


class Latency(NamedTuple):
    """A row of a latency table, in the metric's unit."""

    metric: str
    label: str
    p50: float
    p90: float
    p95: float
    p999: float


class Moment(NamedTuple):
    """What the machine showed at one time."""

    name: str
    holders: tuple[Holder, ...]
    usage: tuple[Usage, ...]
    """Empty when no metrics server answered."""
    cores: tuple[tuple[int, float], ...]
    """TensorCore utilization in percent, by the id in front of it."""
    latencies: tuple[Latency, ...]


class Machine(NamedTuple):
    """One machine file, read."""

    name: str
    about: dict[str, str]
    """`what`, `source`, `licence`, `filled`, and the expected `status` and `message`."""
    chips: tuple[ExpectedChip, ...]
    moments: tuple[Moment, ...]

    @property
    def usage(self) -> tuple[Usage, ...]:
        """The usage of its last moment that has any."""
        return next((m.usage for m in reversed(self.moments) if m.usage), ())

    def moment(self, name: str) -> Moment:
        return next(m for m in self.moments if m.name == name)


def names() -> list[str]:
    """Every machine there is."""
    return sorted(path.stem for path in DIRECTORY.glob("*.txt"))


def machine(name: str) -> Machine:
    """What that file says about its machine."""
    moments = [
        _moment(title.removeprefix("moment "), lines)
        for title, lines in _sections(name)
        if title.startswith("moment ")
    ]
    sections = dict(_sections(name))
    about = dict(line.split(": ", 1) for line in sections["about"])
    return Machine(name, about, tuple(_chips(sections["chips"])), tuple(moments))


def unpack(name: str, directory: Path) -> Host:
    """Put that machine under a directory, and return the host to read it through.

    Device nodes are plain files, so that a process can hold them open.
    """
    denied: list[tuple[Path, int]] = []
    here = directory
    for line in dict(_sections(name))["files"]:
        if line.startswith("/"):
            path, _, mode = line.partition(" ")
            here = directory / path.lstrip("/")
            here.mkdir(parents=True, exist_ok=True)
            denied += [(here, int(mode.strip("()"), 8))] if mode else []
        else:
            _put(here, line)
    for path, mode in reversed(denied):
        path.chmod(mode)
    return Host(root=str(directory))


def _put(here: Path, line: str) -> None:
    found = _ENTRY.fullmatch(line)
    assert found, line
    name, mode, how, text = found.groups()
    path = here / name
    if how == "->":
        path.symlink_to(text)
        return
    if how == "fifo":
        os.mkfifo(path)
    else:
        content = (text or "").encode().decode("unicode_escape").encode("latin-1")
        path.write_bytes(content + b"\n" if how == "=" and content else content)
    path.chmod(int(mode or ("0600" if how == "node" else "0444"), 8))


def _sections(name: str) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines of a file's sections; blank lines and comments left out."""
    title, lines = "", []
    for line in (DIRECTORY / f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            if title:
                yield title, lines
            title, lines = line.strip("[]"), []
        elif line.strip() and not line.startswith("#"):
            lines.append(line)
    yield title, lines


def _chips(lines: list[str]) -> Iterator[ExpectedChip]:
    """`TPU v5e | v5e | 0000:00:05.0 | /dev/vfio/0 | 1`, and its notes below it."""
    for i, line in enumerate(lines):
        if line.startswith(" "):
            continue
        kind, generation, addresses, nodes, devices = (word.strip() for word in line.split("|"))
        below = (entry for entry in lines[i + 1 :])
        notes: list[str] = []
        for entry in below:
            if not entry.startswith(" "):
                break
            notes.append(entry.strip().removeprefix("note: "))
        yield ExpectedChip(
            kind,
            None if generation == "-" else generation,
            tuple(addresses.split()),
            tuple(nodes.split()) if nodes != "-" else (),
            int(devices),
            tuple(notes),
        )


def _moment(name: str, lines: list[str]) -> Moment:
    words = [line.split() for line in lines]
    return Moment(
        name,
        tuple(
            Holder(int(w[1]), None if w[2] == "-" else w[2], tuple(w[3:]))
            for w in words
            if w[0] == "holder"
        ),
        tuple(
            Usage(int(w[1]), _bytes(w[2]), _bytes(w[3]), None if w[4] == "-" else float(w[4]))
            for w in words
            if w[0] == "row"
        ),
        tuple((int(w[1]), float(w[2])) for w in words if w[0] == "core"),
        tuple(
            Latency(w[1], "" if w[2] == "-" else w[2], *map(float, w[3:7]))
            for w in words
            if w[0] == "latency"
        ),
    )


def _bytes(text: str) -> int | None:
    """`17.26GiB`, as it was printed: rounded."""
    if text == "-":
        return None
    unit = GIB if text.endswith("GiB") else MIB
    return round(float(text[:-3]) * unit)
