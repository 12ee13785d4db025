"""libtpu's metrics over gRPC: real servers, good ones and all that can be met instead of one."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from support import metric_servers
from support.free_ports import free_port
from support.metric_servers import (
    DUTY,
    EXECUTION,
    GIB,
    HBM_TOTAL,
    HBM_USED,
    IDLE,
    QUEUE,
    TRANSFER,
    gauge,
    labelled,
    of_devices,
    saying_port,
    server_process,
    serving,
    silent_port,
)
from support.requirements import HAS_IPV6, IPV6
from support.waits import until, with_a_short_limit

from tpusmi.agent.utilization import OwnServer
from tpusmi.metricproto import messages
from tpusmi.model import ABSENT, FAILED, OK, Host, Outcome, Process, ProcessKey, RowKey
from tpusmi.sources import sockets
from tpusmi.sources.libtpu import Libtpu
from tpusmi.sources.libtpu.client import PROGRAMS_EVERY_S, REFUSED_S
from tpusmi.wire import identity

ANSWERED_WITHIN_S = 20.0
SILENT = "accepts connections but does not respond"


def holder(pid: int, **environment: str) -> Process:
    """A process that holds a TPU."""
    key = ProcessKey(pid, identity.start_ticks("/proc", pid) or 0)
    return Process(
        key, "ann", "python train.py", "live", None, None, 1.0, {},
        holds=("/dev/vfio/0",), environment=environment,
    )  # fmt: skip


def source(*ports: int, holders: Sequence[Process] = (), **how: Any) -> Libtpu:
    return Libtpu(Host(metrics_ports=ports), lambda: holders, **how)


def read(libtpu: Libtpu, now_s: float | None = None) -> Outcome:
    """One read, which must not take longer than it may."""
    started_s = time.monotonic()
    found = libtpu.read(started_s if now_s is None else now_s)
    assert time.monotonic() - started_s < ANSWERED_WITHIN_S
    return found


def once(*ports: int, **how: Any) -> Outcome:
    libtpu = source(*ports, **how)
    try:
        return read(libtpu)
    finally:
        libtpu.close()


def troubles(found: Outcome) -> tuple[str, ...]:
    """What is said to be wrong; that our small servers lack some metrics is not."""
    return tuple(note for note in found.notes if " has no " not in note)


def values(found: Outcome, metric: str, port: int) -> dict[int, float]:
    """By device id: what a server said."""
    return {
        r.subject.id: r.value
        for r in found.readings
        if r.metric == metric
        and isinstance(r.subject, RowKey)
        and r.subject.server == f"localhost:{port}"
    }


def test_a_server_gives_its_rows_under_its_own_ids() -> None:
    with serving(of_devices([8, 9, 12, 13])) as server:
        found = once(server.port)
    assert (found.status, found.message) == (OK, "1 server, 4 devices")
    assert values(found, "hbm_used_bytes", server.port) == {
        8: GIB, 9: 2 * GIB, 12: 3 * GIB, 13: 4 * GIB,
    }  # fmt: skip
    assert values(found, "duty_cycle_percent", server.port)[13] == 53.0
    (shown,) = found.servers
    assert shown.ids == (8, 9, 12, 13)
    assert shown.status == OK
    assert troubles(found) == ()
    assert {r.fresh_s for r in found.readings if r.metric == "hbm_limit_bytes"} == {90.0}
    assert {r.fresh_s for r in found.readings if r.metric == "hbm_used_bytes"} == {5.0}


def test_only_what_is_listed_is_asked() -> None:
    with serving(of_devices([0]), listed=[HBM_USED]) as server:
        found = once(server.port)
        assert server.asked() == [HBM_USED]
    assert troubles(found) == ()


@with_a_short_limit
def test_without_a_server_nothing_is_imported_and_nothing_is_wrong() -> None:
    port = free_port()
    code = (
        "import sys, time\n"
        "from tpusmi.model import Host\n"
        "from tpusmi.sources.libtpu import Libtpu\n"
        f"found = Libtpu(Host(metrics_ports=({port},)), lambda: ()).read(time.monotonic())\n"
        "print(found.status, found.message, found.took_s < 0.5)\n"
        "print(sorted({'grpc', 'google', 'socket'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    expected = f"absent nothing serves libtpu metrics on port {port} True\n[]\n"
    assert (said.stdout, said.stderr) == (expected, "")


@with_a_short_limit
def test_a_port_that_accepts_and_is_silent() -> None:
    with silent_port() as port:
        found = once(port)
    assert (found.status, found.message) == (
        FAILED,
        f"port {port} {SILENT}",
    )


def test_a_server_that_is_not_libtpu() -> None:
    with serving({}, service="tensorflow.ProfilerService") as server:
        found = once(server.port)
    assert found.status == FAILED
    assert found.message == f"port {server.port} is not libtpu's metrics service"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "answers HTTP/1, not gRPC"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "accepts connections but does not speak gRPC"),
        (b"", "accepts connections but does not speak gRPC"),
    ],
    ids=["http", "ssh", "hangs up"],
)
def test_a_port_that_speaks_something_else(words: bytes, reason: str) -> None:
    with saying_port(words) as other:
        found = once(other.port)
    assert (found.status, found.message) == (FAILED, f"port {other.port} {reason}")


@with_a_short_limit
def test_a_server_that_takes_30_s() -> None:
    with serving(of_devices([0]), slow_s=30) as server:
        found = once(server.port)
    assert found.status == FAILED
    assert found.message == f"port {server.port} {SILENT}"


@with_a_short_limit
def test_a_slow_server_beside_a_good_one_delays_nothing() -> None:
    with silent_port() as mute, serving(of_devices([0, 1])) as good:
        found = once(mute, good.port)
    assert (found.status, found.message) == (OK, "1 server, 2 devices")
    assert troubles(found) == (f"port {mute} {SILENT}",)
    assert [s.status for s in found.servers] == [OK, FAILED]


def test_metrics_that_are_not_found_fail_alone() -> None:
    answers = of_devices([0, 1])
    answers[HBM_TOTAL] = grpc.StatusCode.NOT_FOUND
    answers[IDLE] = grpc.StatusCode.INTERNAL
    with serving(answers) as server:
        libtpu = source(server.port)
        now_s = time.monotonic()
        found = read(libtpu, now_s)
        assert (found.status, len(found.readings)) == (OK, 4)
        assert troubles(found) == (
            f"port {server.port} lists metrics but rejects requests for them: hbm_limit_bytes",
            f"port {server.port} answers INTERNAL: Metric not found: {IDLE}: idle_s",
        )
        read(libtpu, now_s + 31)  # when it would be asked for again
        assert server.asked().count(HBM_TOTAL) == 1
        read(libtpu, now_s + REFUSED_S)
        assert server.asked().count(HBM_TOTAL) == 2
        libtpu.close()


def test_a_server_that_cannot_list_is_asked_for_all_we_know() -> None:
    with serving(of_devices([0]), listed=()) as server:
        found = once(server.port)
        assert HBM_USED in server.asked()
        assert QUEUE in server.asked()
    assert (found.status, found.message) == (OK, "1 server, 1 device")
    assert troubles(found) == ()


def test_an_answer_of_megabytes_costs_itself() -> None:
    answers = of_devices([0, 1])
    answers[DUTY] = gauge(DUTY, dict.fromkeys(range(300_000), 1.0))
    with serving(answers) as server:
        found = once(server.port)
    assert troubles(found) == (
        f"port {server.port} sends a response that is too large: duty_cycle_percent",
    )
    assert set(values(found, "hbm_used_bytes", server.port)) == {0, 1}


@with_a_short_limit
def test_sixteen_silent_ports_are_asked_at_once() -> None:
    """One after the other they would take 16 times as long as one."""
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(silent_port()) for _ in range(16)]
        one = once(ports[0])
        found = once(*ports)
    assert (one.status, found.status, len(found.servers)) == (FAILED, FAILED, 16)
    assert found.took_s < 8 * one.took_s


def test_three_of_four_devices_answer_and_the_fourth_is_remembered() -> None:
    with serving(of_devices([0, 1, 2, 3])) as server:
        libtpu = source(server.port)
        now_s = time.monotonic()
        read(libtpu, now_s)
        server.answers = of_devices([0, 1, 3])
        found = read(libtpu, now_s + 1.5)
        libtpu.close()
    assert set(values(found, "duty_cycle_percent", server.port)) == {0, 1, 3}
    assert found.servers[0].ids == (0, 1, 2, 3)


def test_ids_come_as_numbers_text_or_not_at_all() -> None:
    rows = {None: 1.0, 1: 2.0, "2": 3.0, "4804027566140109423-3": 4.0}
    with serving({DUTY: gauge(DUTY, rows, key="whatever")}) as server:
        found = once(server.port)
    assert values(found, "duty_cycle_percent", server.port) == {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}


def test_an_empty_answer_means_that_no_program_is_loaded() -> None:
    with serving({name: gauge(name, {}) for name in (HBM_TOTAL, HBM_USED, DUTY)}) as server:
        found = once(server.port)
    assert (found.status, found.message) == (OK, "no program loaded yet")
    assert found.readings == ()
    assert troubles(found) == ()


def test_proxies_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(of_devices([0])) as server:
        assert once(server.port).status == OK


@IPV6
def test_a_server_on_ipv6_alone() -> None:
    with serving(of_devices([0, 1]), address="[::1]:0") as server:
        found = once(server.port)
    assert (found.status, found.message) == (OK, "1 server, 2 devices")


def stop(pid: int) -> None:
    """Stop a process, and wait until all of it stands still."""
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")


@with_a_short_limit
def test_a_stopped_server_and_what_it_said_before() -> None:
    with server_process() as server:
        libtpu = source(server.port)
        now_s = time.monotonic()
        assert read(libtpu, now_s).message == "1 server, 4 devices"
        stop(server.pid)
        found = read(libtpu, now_s + 1.5)
        assert (found.status, len(found.readings)) == (FAILED, 12)
        assert found.message == f"port {server.port} answers too slowly (over 1 s)"
        assert max(r.at_s for r in found.readings) == now_s  # and so grows old
        unmet = once(server.port).message
        assert unmet == f"port {server.port} {SILENT}"
        os.kill(server.pid, signal.SIGCONT)
        later_s = itertools.count(3, 5)  # it is let alone for a while after each failure
        until(lambda: read(libtpu, now_s + next(later_s)).status == OK)
        libtpu.close()


def test_a_server_that_ends_and_one_that_comes_later() -> None:
    with server_process() as first:
        libtpu = source(first.port)
        now_s = time.monotonic()
        assert read(libtpu, now_s).servers[0].ids == (0, 1, 2, 3)
    found = read(libtpu, now_s + 1.5)
    assert found.status == ABSENT
    assert found.message == f"nothing serves libtpu metrics on port {first.port}"
    with server_process(f"127.0.0.1:{first.port}", "4"):
        found = read(libtpu, now_s + 3.0)
        assert (found.status, found.servers[0].ids) == (OK, (4, 5, 6, 7))
        assert set(values(found, "hbm_used_bytes", first.port)) == {4, 5, 6, 7}
    libtpu.close()


def test_what_a_server_told_grows_old_for_a_minute_after_its_end() -> None:
    with server_process() as server:
        libtpu = source(server.port)
        now_s = time.monotonic()
        read(libtpu, now_s)
    for later_s in (1.5, 30, 59):
        found = read(libtpu, now_s + later_s)
        assert found.status == ABSENT
        assert set(values(found, "hbm_used_bytes", server.port)) == {0, 1, 2, 3}
        assert {r.at_s for r in found.readings} == {now_s}
        assert [(s.status, s.ids) for s in found.servers] == [(ABSENT, (0, 1, 2, 3))]
    found = read(libtpu, now_s + 61)
    libtpu.close()
    assert (found.status, found.readings, found.servers) == (ABSENT, (), ())


def test_what_a_holder_told_on_a_port_of_its_own_outlives_it() -> None:
    with server_process() as server:
        ports = str(server.port)
        holders = [holder(server.pid, TPU_RUNTIME_METRICS_PORTS=ports)]
        libtpu = source(free_port(), holders=holders)
        now_s = time.monotonic()
        read(libtpu, now_s)
    holders.clear()
    found = read(libtpu, now_s + 1.5)
    libtpu.close()
    assert set(values(found, "hbm_used_bytes", server.port)) == {0, 1, 2, 3}
    assert [s.status for s in found.servers] == [ABSENT]


def test_a_server_that_comes_and_goes_never_blanks_the_screen() -> None:
    now_s = time.monotonic()
    port = free_port()
    libtpu = source(port)
    for turn in range(4):
        with serving(of_devices([0, 1]), address=f"127.0.0.1:{port}"):
            found = read(libtpu, now_s + 2 * turn)
            assert found.status == OK
            assert set(values(found, "hbm_used_bytes", port)) == {0, 1}
        found = read(libtpu, now_s + 2 * turn + 1)
        assert set(values(found, "hbm_used_bytes", port)) == {0, 1}
    libtpu.close()


@with_a_short_limit
def test_a_slow_server_is_read_and_one_that_is_too_slow_is_not_called_mute() -> None:
    with serving(of_devices([0, 1]), slow_s=0.55) as server:  # the list, and then the metrics
        found = once(server.port)
    assert (found.status, found.message) == (OK, "1 server, 2 devices")
    with serving(of_devices([0, 1]), slow_s=30) as server:
        server.lists_at_once = True
        libtpu = source(server.port)
        now_s = time.monotonic()
        found = read(libtpu, now_s)
        assert found.message == f"port {server.port} answers too slowly (over 1 s)"
        server._slow = 0.5  # the list is known: only the metrics are asked, and all of them
        found = read(libtpu, now_s + 1.5)
        libtpu.close()
    assert (found.status, len(found.readings)) == (OK, 6)


def test_what_a_server_does_not_list_is_told() -> None:
    with serving(of_devices([0])) as server:
        found = once(server.port)
    lacking = "hbm_bandwidth_utilization_percent, idle_s"
    assert found.notes == (f"port {server.port} has no {lacking}",)


MISSING = "protobuf is not installed (pip install protobuf)"
TOO_OLD = (
    "protobuf 3.20.3 is too old, 4.25 is needed: "
    "install tpusmi into an environment of its own (uv tool, pipx)"
)


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        ("sys.modules['google.protobuf'] = None", MISSING),
        ("import google.protobuf; google.protobuf.__version__ = '3.20.3'", TOO_OLD),
    ],
    ids=["none", "too old"],
)
def test_a_holder_that_cannot_be_asked_is_not_said_to_be_mute(spoiled: str, why: str) -> None:
    code = (
        f"import os, sys, time; {spoiled}\n"
        "from tpusmi.model import Host, Process, ProcessKey\n"
        "from tpusmi.sources.libtpu import Libtpu\n"
        "held = Process(ProcessKey(int(sys.argv[2]), 1), 'ann', 'x', 'live', None, None, 1.0, {},\n"
        "    holds=('/dev/vfio/0',), environment={'TPU_RUNTIME_METRICS_PORTS': sys.argv[1]})\n"
        "found = Libtpu(Host(metrics_ports=()), lambda: [held]).read(time.monotonic())\n"
        "print(found.message, *found.notes, sep='\\n')"
    )
    with server_process() as server:
        arguments = [str(server.port), str(server.pid)]
        said = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
        )
        assert said.stderr == ""
        assert said.stdout.splitlines() == [
            f"HBM, duty cycle and more cannot be asked: {why}",
            f"pid {server.pid} cannot be asked for its metrics: {why}",
        ]


def test_a_server_that_was_started_again_in_between_is_another() -> None:
    with server_process() as first:
        libtpu = source(first.port)
        now_s = time.monotonic()
        read(libtpu, now_s)
    with server_process(f"127.0.0.1:{first.port}", "4"):
        found = read(libtpu, now_s + 1.5)
        assert found.servers[0].ids == (4, 5, 6, 7)
        assert set(values(found, "hbm_limit_bytes", first.port)) == {4, 5, 6, 7}
    libtpu.close()


def test_two_servers_may_both_call_a_device_0() -> None:
    with server_process() as one, server_process() as other:
        holders = [holder(one.pid), holder(other.pid)]
        found = once(one.port, other.port, holders=holders)
    assert found.message == "2 servers, 8 devices"
    owners = {s.address: s.process for s in found.servers}
    assert owners == {
        f"localhost:{s.port}": h.key for s, h in zip((one, other), holders, strict=True)
    }


def test_servers_of_one_host_are_asked_for_their_own_devices() -> None:
    with serving(of_devices([0])) as one, serving(of_devices([1])) as other:
        once(one.port, other.port)
        for server in (one, other):
            asked = [r for kind, r in server.requests if kind == "MetricRequest"]
            assert all(r.skip_node_aggregation for r in asked)


def test_the_ports_a_holder_names_are_asked_and_the_dead_ones_are_not_missed() -> None:
    with server_process() as server:
        dead = free_port()
        ports = f"{dead},{server.port}, x,99999,-1"
        found = once(free_port(), holders=[holder(server.pid, TPU_RUNTIME_METRICS_PORTS=ports)])
        assert (found.status, troubles(found)) == (OK, ())
        assert found.servers[0].process is not None
        assert found.servers[0].process.pid == server.pid


def test_a_port_that_a_holder_does_not_name_is_found_by_its_sockets() -> None:
    with server_process() as server:
        found = once(free_port(), holders=[holder(server.pid)])
    assert (found.status, found.message) == (OK, "1 server, 4 devices")
    assert found.servers[0].process is not None


def test_a_port_that_was_only_guessed_is_left_alone_once_it_proved_to_be_another() -> None:
    with saying_port(b"SSH-2.0-OpenSSH_9.9\r\n") as other:
        libtpu = source(free_port(), holders=[holder(os.getpid())])
        now_s = time.monotonic()
        found = read(libtpu, now_s)
        assert (found.status, found.servers) == (ABSENT, ())
        unset = "TPU_RUNTIME_METRICS_PORTS is not set"
        assert troubles(found) == (f"pid {os.getpid()} serves no metrics: {unset}",)
        came = len(other.peers)
        assert came > 0
        for later_s in (2, 6, 12):
            read(libtpu, now_s + later_s)
        libtpu.close()
        assert len(other.peers) == came


def test_a_holder_without_metrics_is_told_with_the_reason() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        held = holder(
            sleeper.pid,
            TPU_PROCESS_ADDRESSES="local",
            TPU_RUNTIME_METRICS_PORTS=f"{free_port()},{free_port()}",
        )
        libtpu = Libtpu(Host(metrics_ports=(free_port(),)), lambda: [held])
        found = read(libtpu)
        sleeper.kill()
    assert troubles(found) == (f"pid {sleeper.pid} serves no metrics: TPU_PROCESS_ADDRESSES=local",)


def test_a_server_that_has_ended_is_not_one_that_no_connection_reaches() -> None:
    held = holder(os.getpid())
    with serving(of_devices([0])) as server:
        libtpu = source(server.port, holders=[held])
        now_s = time.monotonic()
        (shown,) = read(libtpu, now_s).servers
        assert shown.process == held.key
    found = read(libtpu, now_s + 1)
    libtpu.close()
    assert values(found, "hbm_used_bytes", server.port)  # they grow old
    assert found.missing == ()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to make a network namespace")
def test_a_holder_in_another_network_namespace_cannot_be_reached() -> None:
    command = ["unshare", "-n", "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == "ready\n"
        found = once(free_port(), holders=[holder(sleeper.pid)])
        sleeper.kill()
    assert troubles(found) == (
        f"pid {sleeper.pid} is in another network namespace: "
        "its metrics cannot be reached from here",
    )


def test_netlink_and_the_tables_of_proc_tell_the_same_listeners() -> None:
    near = [("127.0.0.1", 4), ("0.0.0.0", 4)]
    near += [("::1", 6), ("::", 6), ("::ffff:127.0.0.1", 10)] if HAS_IPV6 else []
    with contextlib.ExitStack() as stack:
        ports = {stack.enter_context(listening(host, kind)) for host, kind in near}
        elsewhere = stack.enter_context(listening("127.0.0.2", 4))
        by_netlink, by_tables = sockets.listeners(), sockets._by_tables()
        assert by_netlink is not None
        assert by_tables is not None
        own = sockets.visible_sockets("/proc/self/fd") or set()
    assert ports <= by_netlink.keys()
    assert elsewhere not in by_netlink
    assert {by_netlink[port].inode for port in ports} <= own
    assert {by_netlink[port].uid for port in ports} == {os.getuid()}
    assert {port: by_tables[port] for port in ports} == {port: by_netlink[port] for port in ports}


@contextlib.contextmanager
def listening(host: str, kind: int) -> Iterator[int]:
    """A port; `kind` is 4, 6, or 10 for both in one."""
    family = socket.AF_INET if kind == 4 else socket.AF_INET6
    with socket.create_server((host, 0), family=family, dualstack_ipv6=kind == 10) as server:
        yield server.getsockname()[1]


def test_nothing_is_asked_faster_than_it_is_worth() -> None:
    with serving(of_devices([0])) as server:
        libtpu = source(server.port)
        now_s = time.monotonic()
        for tick in range(40):
            found = read(libtpu, now_s + tick / 4)
        libtpu.close()
        asked = server.asked()
    assert (asked.count(HBM_USED), asked.count(HBM_TOTAL)) == (10, 1)
    assert [kind for kind, _ in server.requests].count("ListSupportedMetricsRequest") == 1
    limits = [r.at_s for r in found.readings if r.metric == "hbm_limit_bytes"]
    assert limits == [now_s]


def test_queues_execution_times_and_latencies() -> None:
    answers = of_devices([0, 1])
    for name in (QUEUE, EXECUTION, TRANSFER):
        answers[name] = gauge(name, {})
    for ordinal in (1, "0"):
        told = {"device_ordinal": ordinal, "core_type": "tensorcore"}
        labelled(answers[QUEUE].metric.metrics.add(), **told).gauge.as_int = 3 + int(ordinal)
        timing = labelled(answers[EXECUTION].metric.metrics.add(), **told).distribution
        timing.CopyFrom(exponential(200))
    for size in ("8MB+", "2MB+", "8MB+"):
        row = labelled(answers[TRANSFER].metric.metrics.add(), buffer_size=size, type="grpc")
        row.distribution.CopyFrom(exponential(100))
    with serving(answers) as server:
        found = once(server.port)
    assert values(found, "hlo_queue_size", server.port) == {0: 3, 1: 4}
    assert values(found, "hlo_execution_time_us.p50", server.port) == {0: 6.0, 1: 6.0}
    assert [(t.name, t.label, t.percentiles.count) for t in found.latencies] == [
        ("buffer_transfer_latency_us", "8MB+", 200),
        ("buffer_transfer_latency_us", "2MB+", 100),
    ]


def exponential(count: int) -> Any:
    made = messages()["Distribution"](
        count=count, mean=5, bucket_counts=[0, 0, 0, count, *[0] * 18]
    )
    buckets = made.bucket_options.exponential_buckets
    buckets.num_finite_buckets, buckets.growth_factor, buckets.scale = 20, 2.0, 1.0
    return made


def test_what_the_cores_run_is_asked_on_request_only_and_seldom() -> None:
    status = messages()["GetTpuRuntimeStatusResponse"](host_name="h")
    summary = status.core_states.add(key=5).value
    summary.core_id.global_core_id, summary.core_id.chip_id = 5, 2
    summary.core_id.core_on_chip.type, summary.core_id.core_on_chip.index = 1, 0
    summary.sequencer_info.add(hlo_location="HLO: add.1;\x1b[31m HLO computation: main")
    summary.program_fingerprint = b"\xab\xcd"
    summary.queued_program_info.add(run_id=1)
    with serving(of_devices([0]), status=status) as server:
        assert once(server.port).cores == ()
        libtpu = source(server.port, with_programs=True)
        now_s = time.monotonic()
        (core,) = read(libtpu, now_s).cores
        assert read(libtpu, now_s + 1).cores == (core,)
        requests = [r for kind, r in server.requests if kind == "GetTpuRuntimeStatusRequest"]
        assert [r.include_hlo_info for r in requests] == [True]
        read(libtpu, now_s + PROGRAMS_EVERY_S)
        libtpu.close()
    assert core[1:] == (
        5, 2, "TENSOR_CORE", 0, "HLO: add.1; [31m HLO computation: main", "abcd", 1, None,
    )  # fmt: skip


@with_a_short_limit
def test_nothing_is_written_to_stderr_and_the_exit_is_not_delayed() -> None:
    with silent_port() as mute, saying_port(b"HTTP/1.1 400 Bad\r\n\r\n") as web:
        code = (
            "import os, threading, time\n"
            "from tpusmi.model import Host\n"
            "from tpusmi.sources.libtpu import Libtpu\n"
            f"libtpu = Libtpu(Host(metrics_ports=({mute}, {web.port})), lambda: ())\n"
            "print(libtpu.read(time.monotonic()).message)\n"
            "print(os.environ['GRPC_VERBOSITY'], flush=True)\n"
            "print([t.name for t in threading.enumerate() if not t.daemon])"
        )
        environment = {**os.environ, "GRPC_VERBOSITY": "debug", "GRPC_TRACE": "http"}
        said = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    message, verbosity, waited_for = said.stdout.splitlines()
    assert message == (f"port {mute} {SILENT}; port {web.port} answers HTTP/1, not gRPC")
    assert (verbosity, said.stderr) == ("debug", "")
    assert waited_for == "['MainThread']"


@with_a_short_limit
def test_nothing_needs_grpcio() -> None:
    code = (
        "import sys, time; sys.modules['grpc'] = None\n"
        "from tpusmi.model import Host\n"
        "from tpusmi.sources.libtpu import Libtpu\n"
        "libtpu = Libtpu(Host(metrics_ports=(int(sys.argv[1]),)), lambda: ())\n"
        "print(*libtpu.read(time.monotonic())[1:3])"
    )
    with serving(of_devices([0, 1])) as server:
        said = subprocess.run(
            [sys.executable, "-c", code, str(server.port)],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (said.stdout, said.stderr) == ("ok 1 server, 2 devices\n", "")


def test_the_agent_reads_its_own_process_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnServer()
    with server_process() as other:
        monkeypatch.setenv("TPU_RUNTIME_METRICS_PORTS", str(other.port))
        assert own.read(time.monotonic()) == []
    with serving(of_devices([0, 1])) as server:
        monkeypatch.setenv("TPU_RUNTIME_METRICS_PORTS", f"1,{server.port}")
        own = OwnServer()
        found = own.read(time.monotonic())
        assert server.asked() == [metric_servers.DUTY]
        own.close()
    assert {r.subject.id: r.value for r in found} == {0: 50.0, 1: 51.0}  # type: ignore[union-attr]


def test_all_that_a_read_of_the_agent_needs_is_loaded_before_its_time_counts() -> None:
    """A pause of 14 s follows for each 13 ms that a read takes."""
    code = (
        "import os, socket, sys\n"
        "own = socket.create_server(('127.0.0.1', 0))\n"
        "os.environ['TPU_RUNTIME_METRICS_PORTS'] = str(own.getsockname()[1])\n"
        "from tpusmi.agent.utilization import OwnServer\n"
        "from tpusmi.sources.libtpu.pool import Pool\n"
        "def ask(*how):\n"
        "    loaded.update(sys.modules)\n"
        "    return real(*how)\n"
        "loaded, real, Pool.ask = set(), Pool.ask, ask\n"
        "OwnServer().read(0.0)\n"
        "assert 'tpusmi.metricproto' in loaded\n"
        "print(sorted(name for name in sys.modules.keys() - loaded if 'tpusmi' in name))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("servers", [1, 2])
def test_a_bug_of_ours_is_raised_and_not_called_a_hostile_server(
    servers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: Any) -> Any:
        raise TypeError("a bug")

    monkeypatch.setattr("tpusmi.sources.libtpu.client.metric_values", wrong)
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(serving(of_devices([0]))).port for _ in range(servers)]
        with pytest.raises(TypeError, match="a bug"):
            once(*ports)


def test_without_a_free_descriptor_a_server_has_failed_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(*_: Any) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with serving(of_devices([0])) as server:
        monkeypatch.setattr("tpusmi.sources.libtpu.plain.socket", none_left)
        found = once(server.port)
    assert found.status == FAILED
    assert found.message == f"port {server.port}: Too many open files"
