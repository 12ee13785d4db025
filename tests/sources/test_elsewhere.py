"""Jobs of other pid namespaces, on a host with more processes than can be looked at."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support import hosts, segments
from support.users import ROOT

from tpusmi.model import AGENT, Host, Missing, Outcome
from tpusmi.sources.segments import Segments, evidence
from tpusmi.sources.segments.quota import OF_OTHER_USER
from tpusmi.wire import identity, places
from tpusmi.wire.layout import Identity

pytestmark = ROOT
USER = 1002


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return hosts.host(tmp_path)._replace(segment_dir=None)


def segment(host: Host, who: Identity) -> str:
    directory = Path(host.path(f"/dev/shm/tpusmi-{USER}"))
    directory.mkdir(parents=True, exist_ok=True)
    writer = segments.segment(directory, who._replace(uid=USER))
    writer.append(
        segments.slot(time.monotonic(), segments.RUNNING, [segments.device()] * 2, time.time())
    )
    segments.without_lock(writer)
    for path in (str(directory), writer.path):
        os.chown(path, USER, USER)
    return writer.path


def in_a_container(number: int = 2) -> Identity:
    return identity.me()._replace(pid=number, start_ticks=number, pid_namespace=1)


def read(host: Host) -> Outcome:
    return Segments(host).read(time.monotonic())


def test_a_job_that_was_not_found_among_very_many_processes_is_a_missing_witness(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segment(host, in_a_container())
    assert read(host).missing == ()
    monkeypatch.setattr(evidence, "ELSEWHERE_CPU_S", -1.0)
    why = f"{path} names a process that was not found among very many"
    assert read(host).missing == (Missing(AGENT, why, USER),)
    monkeypatch.undo()
    monkeypatch.setattr(evidence, "ELSEWHERE_MOST", 2)
    assert read(host).missing == (Missing(AGENT, why, USER),)


def test_no_user_pays_for_the_processes_of_others(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment(host, in_a_container())
    segment(host, in_a_container(3))
    real = places.names

    def long(directory: str, most: int) -> list[str]:
        until_s = time.thread_time() + 2 * OF_OTHER_USER.cpu_s
        while directory == host.path("/proc") and time.thread_time() < until_s:
            pass
        return real(directory, most)

    monkeypatch.setattr(evidence.places, "names", long)
    found = read(host)
    assert len(found.processes) == 2
    assert not [m for m in found.missing if "took over" in m.message]


def test_the_namespace_of_a_process_is_that_of_the_kernel() -> None:
    assert identity.pid_namespace("/proc") == os.stat("/proc/self/ns/pid").st_ino
    assert identity.pid_namespace("/proc", "none") == 0
