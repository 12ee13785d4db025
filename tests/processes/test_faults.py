"""What goes wrong with a metrics server costs what it must: a command answers in time, all else is
on the screen, and the reason stands there in words.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support.commands import TPUSMI, environment, tpusmi
from support.requirements import HAS_IPV6
from support.simulated_hosts import set_faults
from support.terminals import terminal
from support.waits import until

from tpusmi.model import Host
from tpusmi.simulate import description
from tpusmi.simulate.host import HostPlan, start

ANSWERS_WITHIN_S = 2.0
STARTS_WITHIN_S = 1.0
"""On top: the interpreter's start, beside its processor time."""
LIMIT_S = 40.0
"""For an answer that is right and in time: a command is run again where a busy machine made it
late, or the host has not noticed its fault yet.
"""
CHIPS = 4


class Case(NamedTuple):
    """A fault, what is left of the numbers, and the words for it."""

    fault: str
    used: int
    """Rows that still have memory."""
    words: str


CASES = (
    Case("no-server", 0, "nothing listens on TPU_RUNTIME_METRICS_PORTS="),
    Case("silent", 0, "accepts connections but does not respond"),
    Case("not-libtpu", 0, "is not libtpu's metrics service"),
    Case("http", 0, "gRPC"),
    Case("slow:30", 0, "does not respond"),
    Case("not-found:hbm_used_bytes", 0, "has no hbm_used_bytes"),
    Case("missing-device:1", 3, "reports 3 devices, but 4 were expected"),
    Case("empty", 0, "has no program loaded yet"),
    Case("sdk-crash", 4, "libtpu's SDK crashed (signal 11)"),
    Case("string-ids", 4, ""),
    *([Case("ipv6-only", 4, "")] if HAS_IPV6 else []),
)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with start(HostPlan("v6e-16", worker=2)) as found:
        yield found


@pytest.fixture(scope="module", params=CASES, ids=[case.fault for case in CASES])
def faulty(host: Host, request: pytest.FixtureRequest) -> Iterator[Case]:
    case: Case = request.param
    set_faults(host.root, [case.fault])
    yield case
    set_faults(host.root, [])
    answer(host, "--json", is_right=lambda text: used(text) == CHIPS)


def _cpu_s_of_children() -> float:
    """Of those that have ended: a slow machine needs more, and is not waiting for anything."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answer(host: Host, *arguments: str, is_right: Callable[[str], bool], **more: str) -> str:
    """What the command prints of the host, once it is right, and was there in time."""

    def attempt() -> str | None:
        started_s = time.monotonic() - _cpu_s_of_children()
        found = tpusmi(host.segment_dir or "", "--simulate", host.root, *arguments, **more)
        took_s = time.monotonic() - _cpu_s_of_children() - started_s
        assert (found.returncode, found.stderr) == (0, "")
        is_in_time = took_s < ANSWERS_WITHIN_S + STARTS_WITHIN_S
        return found.stdout if is_in_time and is_right(found.stdout) else None

    return until(attempt, LIMIT_S, f"the right answer in time to {' '.join(arguments)}")


def used(text: str) -> int:
    """Of how many devices the object tells the memory."""
    return sum(d["hbm_used_bytes"] is not None for d in json.loads(text)["devices"])


def rows_of(text: str) -> list[str]:
    """Those of the devices in the table."""
    return text.splitlines()[3 : 3 + CHIPS]


def test_the_table_answers_in_time_and_says_why(host: Host, faulty: Case) -> None:
    has_mxu = faulty.fault not in ("empty", "sdk-crash")

    def is_right(text: str) -> bool:
        return faulty.words in text and (
            not has_mxu or all(row.count("%") >= 1 for row in rows_of(text))
        )

    text = answer(host, "--once", is_right=is_right)
    for chip in range(CHIPS):
        assert f"vfio/{chip + 1}" in text  # the chips and who holds them are there all the same


def test_json_has_null_where_nobody_answered_and_never_0(host: Host, faulty: Case) -> None:
    def is_right(text: str) -> bool:
        codes = [w["code"] for w in json.loads(text)["warnings"]]
        is_told = faulty.fault != "silent" or "silent_server" in codes
        return used(text) == faulty.used and is_told

    found = json.loads(answer(host, "--json", is_right=is_right))
    devices = found["devices"]
    assert all(d["hbm_used_bytes"] is None or d["hbm_used_bytes"] > 0 for d in devices)
    if faulty.used == CHIPS:
        assert [d["id"] for d in devices] == [8, 9, 12, 13]
    if faulty.fault == "silent":
        (warning,) = [w for w in found["warnings"] if w["code"] == "silent_server"]
        assert warning["pid"] == devices[0]["pid"]
        assert "MEMORY, DUTY, BW, IDLE, QUEUE are missing" in warning["message"]
        assert f"py-spy dump --pid {warning['pid']}" in warning["advice"]
        assert 0 < warning["since_s"] < LIMIT_S


def test_the_dashboard_lives_on_and_says_why(host: Host, faulty: Case) -> None:
    command = [*TPUSMI, "--simulate", host.root]
    with terminal(command, environment(host.segment_dir or ""), 160, 45) as screen:
        screen.see("SIMULATED")
        screen.see(faulty.words or "31.2 GiB")
        screen.press("?")
        screen.see("Help of")
        screen.press("qq")
        assert screen.end() == 0


def test_a_proxy_is_never_asked(host: Host) -> None:
    dead = "http://127.0.0.1:9"
    proxies = {name: dead for name in ("http_proxy", "https_proxy", "grpc_proxy")}
    answer(host, "--json", is_right=lambda text: used(text) == CHIPS, **proxies)


def test_a_server_that_stands_still_is_told_and_greys_what_it_said(host: Host) -> None:
    pid = description.read(host.root)["processes"][0]["pid"]
    command = [*TPUSMI, "--simulate", host.root]
    with terminal(command, environment(host.segment_dir or ""), 160, 45) as screen:
        screen.see("31.2 GiB")
        os.kill(pid, signal.SIGSTOP)
        try:
            screen.see("s old")  # its last figures, with their age
            screen.see_match(rf"has not answered for \d+ s: pid {pid} is stopped \(state T\)")
            words = ("accepts connections but does not respond", f"pid {pid} is stopped (state T)")
            answer(host, "--once", is_right=lambda text: all(word in text for word in words))
        finally:
            os.kill(pid, signal.SIGCONT)
        screen.see("s old", gone=True)
        screen.press("q")
        assert screen.end() == 0


def test_nothing_that_hangs_holds_up_a_command(tmp_path: Path) -> None:
    """Server and SDK at once, which is all that can."""
    with start(HostPlan("v5e-8", faults=("silent", "sdk-hang"))) as host:
        for arguments in (("--once",), ("--json",), ("-L",), ("--once", "--programs")):
            answer(host, *arguments, is_right=bool)
