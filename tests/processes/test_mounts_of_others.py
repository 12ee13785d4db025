"""What a user who can mount may cost those who look, and whom: nothing but the own share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import USER
from support.namespaces import inside, shared
from support.users import ROOT
from support.waits import with_a_short_limit

from tpusmi.model import AGENT, OTHER_MOUNTS, Host, Missing, Outcome, Process, ProcessKey
from tpusmi.sources.segments import Segments, namespaces
from tpusmi.sources.segments.namespaces import Namespaces
from tpusmi.sources.segments.quota import Quota

__all__ = ["shared"]
pytestmark = ROOT

OTHER_USER = USER + 1
OWN_USERS = f"become({USER}); own_users({USER}); mount('tmpfs', '/mnt', 'tmpfs')"
BEHIND_VERY_MANY_MOUNTS = f"""
{OWN_USERS}
path = "/mnt"
for _ in range(25):
    path += "/x"
    os.mkdir(path)
    mount("tmpfs", path, "tmpfs")
os.mkdir("/mnt/y")
for _ in range(1900):
    mount("/dev/shm", "/mnt/y", "", BIND)
for name in range(16):
    os.mkdir(f"{{path}}/{{name}}")
    for start in range(4):
        open(f"{{path}}/{{name}}/{{os.getpid()}}-{{start}}.seg", "w").close()
    if not os.fork():
        os.environ["TPUSMI_DIR"] = f"{{path}}/{{name}}"
        os.execv("/bin/sleep", ["sleep", "20"])
time.sleep(0.5)
here()
"""


def read(source: Segments) -> tuple[Outcome, float]:
    """What root finds, and the processor time of that."""
    began_s = time.thread_time()
    found = source.read(time.monotonic())
    return found, time.thread_time() - began_s


@pytest.fixture
def source() -> Iterator[Segments]:
    found = Segments(Host())
    yield found
    found.close()


@with_a_short_limit
def test_a_way_through_very_many_mounts_is_not_gone(source: Segments) -> None:
    with inside(f"import time\n{BEHIND_VERY_MANY_MOUNTS}") as stranger:
        found, cost_s = read(source)
        assert cost_s < 1.0
        assert any(m.concerns(process(stranger.pid)) for m in found.missing)


@with_a_short_limit
def test_who_mounts_pays_for_the_directories_of_others_behind_it(shared: str) -> None:
    os.mkdir(f"{shared}/tpusmi-{OTHER_USER}")
    os.chown(f"{shared}/tpusmi-{OTHER_USER}", OTHER_USER, OTHER_USER)
    os.mkdir(f"{shared}/tpusmi-0")
    code = f"{OWN_USERS}; mount({shared!r}, '/tmp', '', BIND); here()"
    with inside(code) as stranger:
        scan = Namespaces("/proc").scan(Quota())
        theirs = [d for d in scan.directories if d.within == f"/proc/{stranger.pid}"]
        assert {(d.uid, d.payer) for d in theirs} == {(OTHER_USER, USER), (0, USER)}


@pytest.mark.parametrize("limit", ["WALLED_MOST", "CPU_S", "ASKED_CPU_S"])
@with_a_short_limit
def test_each_process_that_was_not_looked_at_is_a_witness_that_could_not_be_asked(
    limit: str, source: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, limit, 0)
    if limit == "WALLED_MOST":
        monkeypatch.setattr(namespaces, "CPU_S", -1.0)
    with inside("own(); here()") as job:
        found, _ = read(source)
        concerning = [m for m in found.missing if m.concerns(process(job.pid))]
        assert [m.code for m in concerning] == [OTHER_MOUNTS]
        assert [m.concerns(process(2**22)) for m in concerning] == [False]


@pytest.mark.parametrize("named", ["/mnt/y", "/mnt/y/z"])
@with_a_short_limit
def test_a_tpusmi_dir_behind_a_link_is_no_directory_without_an_agent(
    named: str, source: Segments
) -> None:
    code = "own('/dev/shm', '/mnt'); os.makedirs('/mnt/x/z'); os.symlink('/mnt/x', '/mnt/y')"
    with inside(f"{code}; here()", TPUSMI_DIR=named) as job:
        found, _ = read(source)
        assert any(m.concerns(process(job.pid)) for m in found.missing)


@with_a_short_limit
def test_a_process_whose_first_thread_has_ended_may_be_in_a_container(source: Segments) -> None:
    code = "own(); here()\nimport threading, time\n"
    code += "def rest(): time.sleep(0.5); say('ready'); wait(); os._exit(0)\n"
    with inside(f"{code}threading.Thread(target=rest).start()\nlibc.syscall(60, 0)") as job:
        if not Path(f"/proc/{job.pid}/stat").read_text().rpartition(")")[2].startswith(" Z"):
            pytest.skip("exit() has another number here")
        found, _ = read(source)
        assert any(m.concerns(process(job.pid)) for m in found.missing)


def process(pid: int) -> Process:
    """One of root, of which nothing more is known."""
    from tpusmi.wire.identity import start_ticks

    key = ProcessKey(pid, start_ticks("/proc", pid) or 0)
    return Process(key, "", "", "live", None, None, None, {}, uid=0)


def test_a_witness_of_many_speaks_for_those_alone() -> None:
    missing = Missing(AGENT, "", among=frozenset((7, 8)))
    assert [missing.concerns(process(pid)) for pid in (7, 8, 9)] == [True, True, False]
