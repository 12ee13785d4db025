"""What every source promises: it answers in time, with a status and a sentence, whatever it meets.

A new source joins SOURCES in one line, and has all of this.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from support import machines, segments
from support.hosts import chip, holder, host
from support.metric_servers import of_devices, saying_port, serving, silent_port
from support.users import as_another_user
from support.waits import with_a_short_limit

from tpusmi.collect import Source, open_collector
from tpusmi.model import ABSENT, DENIED, FAILED, OK, Host, HostFacts, Outcome
from tpusmi.sources.holders import Holders
from tpusmi.sources.host_facts import host_facts
from tpusmi.sources.libtpu import Libtpu
from tpusmi.sources.libtpu.sdk import FIRST_ANSWER_S, LibtpuSdk
from tpusmi.sources.segments import Segments
from tpusmi.sources.sysfs import BUS, Sysfs

ANSWERED_WITHIN_S = 20.0


class Place(ExitStack):
    """An empty machine, and what a test adds to it. All of it ends with the test."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.ports: list[int] = []
        """Where something listens."""
        self.child: tuple[str, ...] = ()
        """What answers for libtpu's SDK."""

    @property
    def host(self) -> Host:
        return Host(root=str(self.root), metrics_ports=tuple(self.ports), sdk_command=self.child)


class Case(NamedTuple):
    """A source, and what makes the machines that it meets."""

    open: Callable[[Host], Source]
    add_good: Callable[[Place], object]
    has_found: Callable[[Outcome], bool]
    """True when it found what is good."""
    add_garbage: Callable[[Place], str]
    """What is added is broken; the sentence about it must name what is returned."""
    add_silent: Callable[[Place], str] | None
    """Adds what can be opened and never answers; None for a source that waits for nothing."""
    closed: Callable[[Place], Path] | None
    """What of a good machine mode 000 makes unreadable; None where nothing can be closed."""
    status_of_closed: str = DENIED
    good_is_whole: bool = True
    """False where the good machine lacks something, of which there is a note."""
    keeps_the_good: bool = True
    """False where garbage leaves nothing that is good."""
    silent_for_s: float = 0.0
    """So long it waits, over several reads, for what does not answer."""


# -- segments: files of agents in shared memory


def _segments_of(place: Place) -> Path:
    directory = place.root / f"dev/shm/tpusmi-{os.getuid()}"
    directory.mkdir(parents=True, exist_ok=True, mode=0o755)
    if not (place.root / "proc").exists():
        (place.root / "proc").symlink_to("/proc")
    return directory


def _bad_segment(place: Place) -> str:
    (_segments_of(place) / "12-34.seg").write_bytes(b"garbage" * 99)
    return "12-34.seg"


def _silent_segment(place: Place) -> str:
    os.mkfifo(_segments_of(place) / "56-78.seg")
    return "56-78.seg"


SEGMENTS = Case(
    open=Segments,
    add_good=lambda place: segments.my_segment(_segments_of(place)),
    has_found=lambda outcome: bool(outcome.readings),
    add_garbage=_bad_segment,
    add_silent=_silent_segment,
    closed=lambda place: next(_segments_of(place).glob("*.seg")),
)


# -- sysfs: chips on the PCI bus


def _function(place: Place) -> Path:
    path = place.root / BUS.lstrip("/") / "0000:00:1f.0"
    path.mkdir(parents=True)
    return path


def _bad_function(place: Place) -> str:
    (_function(place) / "vendor").write_bytes(b"\xff\x00garbage" * 99)
    return "0000:00:1f.0"


def _silent_function(place: Place) -> str:
    os.mkfifo(_function(place) / "vendor")
    return "0000:00:1f.0"


SYSFS = Case(
    open=Sysfs,
    add_good=lambda place: machines.unpack("v5e-8", place.root),
    has_found=lambda outcome: len(outcome.chips) == 8,
    add_garbage=_bad_function,
    add_silent=_silent_function,
    closed=lambda place: place.root / BUS.lstrip("/"),
)


# -- holders: processes that have a node open


def _held_node(place: Place) -> None:
    host(place.root, "/dev/accel0")
    place.enter_context(holder(place.root / "dev/accel0"))


def _proc_of_another(place: Place) -> str:
    if not (place.root / "dev").exists():
        host(place.root, "/dev/accel0")
    (place.root / "proc").unlink()
    (place.root / "proc/self").mkdir(parents=True)
    (place.root / "proc/1").write_bytes(b"garbage")
    return "/proc"


def _proc_with_a_closed_process(place: Place) -> Path:
    own = str(os.getpid())
    (place.root / "proc").unlink()
    (place.root / "proc" / own).mkdir(parents=True)
    (place.root / "proc/self").symlink_to(own)
    (place.root / "proc/1/fd").mkdir(parents=True)
    return place.root / "proc/1"


HOLDERS = Case(
    open=lambda host: Holders(
        host, lambda: [chip(0, "/dev/accel0")] * os.path.exists(host.path("/dev"))
    ),
    add_good=_held_node,
    has_found=lambda outcome: any(p.holds == ("/dev/accel0",) for p in outcome.processes),
    add_garbage=_proc_of_another,
    add_silent=None,
    closed=_proc_with_a_closed_process,
    keeps_the_good=False,
)


# -- libtpu: metrics servers


def _add_server(place: Place) -> None:
    server = place.enter_context(serving(of_devices(range(4))))
    place.ports.append(server.port)


def _add_port(place: Place, listener: AbstractContextManager[object]) -> str:
    found = place.enter_context(listener)
    place.ports.append(getattr(found, "port", found))
    return str(place.ports[-1])


LIBTPU = Case(
    open=lambda host: Libtpu(host, lambda: ()),
    add_good=_add_server,
    has_found=lambda outcome: len({r.subject for r in outcome.readings}) == 4,
    add_garbage=lambda place: _add_port(place, saying_port(b"HTTP/1.1 200 OK\r\n\r\n")),
    add_silent=lambda place: _add_port(place, silent_port()),
    closed=None,  # every process that can connect may ask
    good_is_whole=False,
)


# -- libtpu's SDK: a child process that loads it

SDK_ANSWERS = """
import json, sys
DATA = {"tensorcore_util": ["12.00", "13.50"], "tpu_throttle_score": ["1-0: 0", "1-1: 2"]}
DATA.update(json.loads(sys.argv[1]))
for line in sys.stdin:
    wanted = json.loads(line)
    metrics = {n: {"description": n, "data": DATA[n]} for n in wanted if n in DATA}
    answer = {"version": "1", "supported": [*DATA], "metrics": metrics, "errors": {}, "took_s": 0}
    print(json.dumps(answer), flush=True)
"""


def _add_child(place: Place, code: str, *arguments: str) -> None:
    place.child = (sys.executable, "-S", "-c", code, *arguments)


def _bad_child(place: Place) -> str:
    if place.child:
        _add_child(place, SDK_ANSWERS, '{"tpu_throttle_score": ["garbage"]}')
        return "tpu_throttle_score"
    _add_child(place, "import sys; sys.stdin.readline(); print('garbage', flush=True)")
    return "libtpu's SDK"


def _silent_child(place: Place) -> str:
    _add_child(place, "import sys; sys.stdin.read()")
    return "libtpu's SDK"


def _closed_program(place: Place) -> Path:
    program = place.root / "python"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    place.child = (str(program),)
    return program


SDK = Case(
    open=lambda host: LibtpuSdk(host, lambda: True),
    add_good=lambda place: _add_child(place, SDK_ANSWERS, "{}"),
    has_found=lambda outcome: any(
        r.metric == "tensorcore_utilization_percent" for r in outcome.readings
    ),
    add_garbage=_bad_child,
    add_silent=_silent_child,
    closed=_closed_program,
    status_of_closed=FAILED,
    silent_for_s=FIRST_ANSWER_S + 1.0,
)

SOURCES = {
    "agent": SEGMENTS,
    "sysfs": SYSFS,
    "holders": HOLDERS,
    "libtpu": LIBTPU,
    "libtpu_sdk": SDK,
}


def sources(wanted: Callable[[Case], object] = lambda case: True) -> pytest.MarkDecorator:
    """Every source that can meet this."""
    cases = [pytest.param(case, id=name) for name, case in SOURCES.items() if wanted(case)]
    return pytest.mark.parametrize("case", cases)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as empty:
        yield empty


def read(case: Case, place: Place, later_s: float = 0.0) -> Outcome:
    """What the source answers. That it does so in time, in words that can be printed, and raises
    nothing, is part of every promise.
    """
    with contextlib.closing(case.open(place.host)) as source:
        outcome = _read(source)
        if later_s:
            outcome = _read(source, later_s)
    return outcome


def _read(source: Source, later_s: float = 0.0) -> Outcome:
    now_s = time.monotonic()
    outcome = source.read(now_s + later_s)
    assert time.monotonic() - now_s < ANSWERED_WITHIN_S
    assert 0 <= outcome.took_s < ANSWERED_WITHIN_S
    assert outcome.source == source.name
    assert outcome.message
    assert all(text.isprintable() for text in (outcome.message, *outcome.notes))
    return outcome


def test_every_source_is_held_to_its_promises() -> None:
    collector = open_collector(Host())
    try:
        assert {runner._source.name for runner in collector._runners} == set(SOURCES)
    finally:
        collector.stop()


@sources()
def test_an_empty_machine_is_absent(case: Case, place: Place) -> None:
    outcome = read(case, place)
    assert outcome.status == ABSENT
    assert not case.has_found(outcome)


@sources()
def test_a_good_machine_gives_what_is_there(case: Case, place: Place) -> None:
    case.add_good(place)
    outcome = read(case, place)
    assert outcome.status == OK
    assert case.has_found(outcome)
    assert (outcome.notes == ()) is case.good_is_whole


@sources()
def test_garbage_is_failed_and_named(case: Case, place: Place) -> None:
    name = case.add_garbage(place)
    outcome = read(case, place)
    assert outcome.status == FAILED
    assert name in outcome.message
    assert not case.has_found(outcome)


@sources(lambda case: case.keeps_the_good)
def test_one_bad_thing_does_not_lose_the_good_ones(case: Case, place: Place) -> None:
    case.add_good(place)
    notes = read(case, place).notes
    name = case.add_garbage(place)
    outcome = read(case, place)
    assert outcome.status == OK
    assert case.has_found(outcome)
    (note,) = set(outcome.notes) - set(notes)
    assert name in note


@sources(lambda case: case.closed)
def test_what_may_not_be_read_is_denied(case: Case, place: Place) -> None:
    case.add_good(place)
    assert case.closed is not None
    closed = case.closed(place)
    mode = closed.stat().st_mode
    closed.chmod(0)
    try:
        with as_another_user(place.root):
            outcome = read(case, place)
    finally:
        closed.chmod(mode)
    assert outcome.status == case.status_of_closed
    assert not case.has_found(outcome)


@sources(lambda case: case.add_silent)
@with_a_short_limit
def test_what_never_answers_has_failed_when_its_time_is_over(case: Case, place: Place) -> None:
    assert case.add_silent is not None
    name = case.add_silent(place)
    outcome = read(case, place, case.silent_for_s)
    assert outcome.status == FAILED
    assert name in outcome.message
    assert not case.has_found(outcome)


# -- the machine itself: facts of a snapshot, which have no status: what is not known is None

FACTS = {
    "proc/loadavg": "12.50 10.25 3.00 4/2100 99999\n",
    "proc/meminfo": "MemTotal: 385000000 kB\nMemAvailable: 300000000 kB\n",
    "proc/uptime": "350735.47 234388.90\n",
    "proc/sys/kernel/osrelease": "6.8.0-1015-gcp\n",
    "sys/devices/system/cpu/online": "0-111\n",
}


def _facts(root: Path, put: Callable[[Path, str], object]) -> HostFacts:
    """With every file as a situation has it."""
    for name, content in FACTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        put(root / name, content)
    began_s = time.monotonic()
    with as_another_user(root):
        facts = host_facts(Host(root=str(root)))
    assert time.monotonic() - began_s < ANSWERED_WITHIN_S
    return facts


def _numbers(facts: HostFacts) -> list[object]:
    return [
        facts.load_averages,
        facts.cpus,
        facts.memory_total_bytes,
        facts.memory_available_bytes,
        facts.uptime_s,
    ]


def test_a_good_machine_tells_all_of_itself(tmp_path: Path) -> None:
    facts = _facts(tmp_path, Path.write_text)
    assert _numbers(facts) == [(12.5, 10.25, 3.0), 112, 394_240_000_000, 307_200_000_000, 350735.47]


@pytest.mark.parametrize(
    "put",
    [
        pytest.param(lambda path, content: None, id="empty"),
        pytest.param(lambda path, content: path.touch(0), id="closed"),
        pytest.param(lambda path, content: path.write_bytes(b"\xff\0" * 999), id="garbage"),
        pytest.param(lambda path, content: os.mkfifo(path), id="silent"),
        pytest.param(lambda path, content: path.mkdir(), id="directory"),
    ],
)
def test_what_a_machine_does_not_tell_is_none(
    tmp_path: Path, put: Callable[[Path, str], object]
) -> None:
    assert _numbers(_facts(tmp_path, put)) == [None] * 5
