"""Simulated hosts as running things: what they hold and serve, how they go wrong, how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from support import networks
from support.commands import TPUSMI, environment, tpusmi
from support.requirements import HAS_IPV6, IPV6
from support.simulated_hosts import set_faults
from support.terminals import terminal
from support.waits import until

from tpusmi.collect import open_collector
from tpusmi.merge.roofline import roofline
from tpusmi.metricproto import GET_METRIC, LIST_METRICS, messages
from tpusmi.model import AGENT, Host
from tpusmi.simulate import description, faults
from tpusmi.simulate.directory import attach, is_running
from tpusmi.simulate.host import HostPlan, Keeper, PortBusyError, StartError, start
from tpusmi.simulate.running import Running
from tpusmi.sources.holders import Holders
from tpusmi.sources.host_facts import host_facts
from tpusmi.sources.segments import Segments
from tpusmi.sources.sysfs import read_chips
from tpusmi.wire import identity

LIMIT_S = 60.0
GONE_WITHIN_S = 40.0
DUTY = "tpu.runtime.tensorcore.dutycycle.percent"


def told(host: Host) -> dict[str, Any]:
    return description.read(host.root)


def identities(host: Host) -> list[tuple[int, int]]:
    """The keeper and every process of the host, each by pid and start time."""
    known = told(host)
    pids = [known["keeper"][0], *(process["pid"] for process in known["processes"])]
    found = [(pid, identity.start_ticks("/proc", pid)) for pid in pids]
    return [(pid, ticks) for pid, ticks in found if ticks is not None]


def is_gone(directory: str, processes: list[tuple[int, int]]) -> bool:
    alive = any(identity.start_ticks("/proc", pid) == ticks for pid, ticks in processes)
    return not alive and not os.path.exists(directory)


def holders(host: Host) -> dict[int, tuple[str, ...]]:
    """Nodes by the pid that holds them, as the product finds them."""
    chips = read_chips(host).chips
    found = Holders(host, lambda: chips).read(time.monotonic()).processes
    return {process.pid: process.holds for process in found}


def duty(
    host: Host, port: int | None = None, address: str = "127.0.0.1", limit_s: float = 20.0
) -> list[float]:
    """The duty cycle of each row. Raises RpcError."""
    request = messages()["MetricRequest"](metric_name=DUTY).SerializeToString()
    options = (("grpc.enable_http_proxy", 0),)
    with grpc.insecure_channel(f"{address}:{port or host.metrics_ports[0]}", options) as channel:
        answer = channel.unary_unary(GET_METRIC)(request, timeout=limit_s)
    rows = messages()["MetricResponse"].FromString(answer).metric.metrics
    return [row.gauge.as_double for row in rows]


def status_of(call: Callable[[], Any]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as failed:
        call()
    code: grpc.StatusCode = failed.value.code()
    return code


def ask_sdk(host: Host, line: str = "null") -> subprocess.CompletedProcess[str]:
    assert host.sdk_command is not None
    return subprocess.run(
        host.sdk_command, input=f"{line}\n", capture_output=True, text=True, timeout=LIMIT_S
    )


@contextmanager
def foreground(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], Host]]:
    """`tpusmi simulate` in a process of its own, and its host."""
    process = subprocess.Popen(
        [*TPUSMI, "simulate", *arguments],
        env=environment("/nowhere"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout is not None
            directory = process.stdout.readline().strip()
            assert directory, process.stderr.read() if process.stderr else ""
            yield process, attach(directory)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def v5e() -> Iterator[Host]:
    with start(HostPlan("v5e-8")) as host:
        yield host


def test_one_process_holds_every_node_and_locks_libtpus_file(v5e: Host) -> None:
    (process,) = told(v5e)["processes"]
    assert holders(v5e) == {process["pid"]: tuple(f"/dev/vfio/{i}" for i in range(1, 9))}
    inode = os.stat(v5e.path("/tmp/libtpu_lockfile")).st_ino
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    owners = [int(fields[4]) for fields in locks if fields[5].endswith(f":{inode}")]
    assert owners == [process["pid"]]


def command(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")


def test_its_process_is_called_as_a_real_job_is_and_its_directory_says_what_it_is(
    v5e: Host,
) -> None:
    (process,) = told(v5e)["processes"]
    assert command(process["pid"])[1:] == ["train.py", "--config=simulated"]
    assert os.readlink(f"/proc/{process['pid']}/cwd") == v5e.root
    assert "simulated TPU host" in Path(v5e.root, "train.py").read_text()


def test_processes_that_share_a_host_and_an_orphan_are_called_so_as_well() -> None:
    with start(HostPlan("v5e-8", processes=2)) as host:
        commands = [command(process["pid"])[1:] for process in told(host)["processes"]]
        assert commands == [["train.py", "--config=simulated", f"--task={n}"] for n in (0, 1)]
    with start(HostPlan("v5e-1", faults=("orphan",))) as host:
        (pid,) = holders(host)
        assert command(pid)[1:] == ["train.py", "--config=simulated"]


def test_the_chips_of_a_process_that_was_killed_do_no_work() -> None:
    with start(HostPlan("v5e-8", processes=2)) as host:
        first, second = told(host)["processes"]
        os.kill(second["pid"], signal.SIGKILL)
        running = Running(host.root)
        until(lambda: running.mxu_percents()[4:] == [0.0] * 4, GONE_WITHIN_S)
        assert all(percent > 5 for percent in running.mxu_percents()[:4])
        os.kill(first["pid"], signal.SIGKILL)
        until(lambda: running.mxu_percents() == [0.0] * 8, GONE_WITHIN_S)


def test_its_server_speaks_to_any_client_on_this_machine_and_to_nobody_else(v5e: Host) -> None:
    for address in ("127.0.0.1", "[::1]")[: 1 + HAS_IPV6]:
        assert len(duty(v5e, address=address)) == 8
    port = v5e.metrics_ports[0]
    listening = "".join(path.read_text() for path in Path("/proc/net").glob("tcp*"))
    hexadecimal = f"{port:04X}"
    local = [
        fields[1]
        for fields in map(str.split, listening.splitlines())
        if fields[1].endswith(f":{hexadecimal}") and fields[3] == "0A"
    ]
    # gRPC listens on 127.0.0.1 as ::ffff:127.0.0.1, where there is IPv6.
    hosts = {address.partition(":")[0] for address in local}
    by_ipv6 = {f"{'0' * 16}FFFF00000100007F", f"{'0' * 24}01000000"}
    assert hosts == (by_ipv6 if HAS_IPV6 else {"0100007F"})


def test_whoever_has_its_directory_can_attach(v5e: Host) -> None:
    assert attach(v5e.root) == attach(f"{v5e.root}/") == v5e
    assert v5e.simulated
    assert os.stat(v5e.root).st_mode & 0o777 == 0o755
    assert os.path.realpath(v5e.path("/proc/sys/kernel/random/boot_id")).startswith("/proc/")


def test_the_stand_in_for_the_sdk_answers_in_its_protocol(v5e: Host) -> None:
    found = json.loads(ask_sdk(v5e).stdout)
    assert set(found) == {"version", "supported", "metrics", "errors", "took_s"}
    assert len(found["metrics"]["tensorcore_util"]["data"]) == 8
    assert found["metrics"]["duty_cycle_pct"]["data"] == []
    asked = json.loads(ask_sdk(v5e, '["ici_link_health", "nonsense"]').stdout)
    assert list(asked["metrics"]) == ["ici_link_health"]


def test_the_stand_in_loads_next_to_nothing_and_so_starts_as_fast_as_python(v5e: Host) -> None:
    def loaded(python: str, *arguments: str) -> set[str]:
        command = [python, "-X", "importtime", *arguments]
        done = subprocess.run(command, input="null\n", capture_output=True, text=True, check=True)
        lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
        return {line.rpartition("|")[2].strip() for line in lines}

    assert v5e.sdk_command is not None
    more = loaded(*v5e.sdk_command) - loaded(sys.executable, "-I", "-S", "-c", "pass")
    assert not more & {"json", "re", "typing", "enum", "collections", "functools", "subprocess"}
    assert len(more) < 25, sorted(more)


def test_several_processes_split_the_chips_and_serve_on_ports_of_their_own() -> None:
    with start(HostPlan("v5e-8", processes=4)) as host:
        processes = told(host)["processes"]
        assert len(set(host.metrics_ports)) == 4
        assert holders(host) == {process["pid"]: tuple(process["holds"]) for process in processes}
        assert all(len(duty(host, port)) == 2 for port in host.metrics_ports)
        assert not os.path.exists(host.path("/tmp/libtpu_lockfile"))
        environ = Path(f"/proc/{processes[2]['pid']}/environ").read_bytes().split(b"\0")
        assert b"TPU_VISIBLE_CHIPS=4,5" in environ
        assert b"TPU_RUNTIME_METRICS_PORTS=%d" % host.metrics_ports[2] in environ


def test_time_can_stand_still() -> None:
    with start(HostPlan("v5e-8", freeze_s=77.0)) as host:
        assert duty(host) == duty(host)
        first, second = (json.loads(ask_sdk(host).stdout)["metrics"] for _ in range(2))
        assert first == second


def test_everything_is_gone_afterwards() -> None:
    with start(HostPlan("v5e-8", processes=2)) as host:
        left = identities(host)
        assert len(left) == 3
    assert is_gone(host.root, left)
    assert not is_running(host.root)
    with pytest.raises(ValueError, match="no simulated host"):
        attach(host.root)


def test_a_stopped_process_does_not_hold_up_the_end() -> None:
    with start(HostPlan("v5e-1")) as host:
        left = identities(host)
        os.kill(told(host)["processes"][0]["pid"], signal.SIGSTOP)
    assert is_gone(host.root, left)


def test_a_killed_keeper_takes_its_processes_along_and_the_directory_is_cleared() -> None:
    with start(HostPlan("v5e-4", processes=2)) as host:
        left = identities(host)
        os.kill(told(host)["keeper"][0], signal.SIGKILL)
        until(lambda: not is_running(host.root), GONE_WITHIN_S)
        with pytest.raises(ValueError, match="no longer running"):
            attach(host.root)
    until(lambda: is_gone(host.root, left), GONE_WITHIN_S)


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_nothing_is_left_of_a_simulation_in_the_foreground_after(ending: str) -> None:
    with foreground("v5e-4", "--fault", "orphan") as (process, host):
        left = identities(host)
        process.send_signal(signal.Signals[ending])
        code = process.wait(LIMIT_S)
        assert code == {"SIGINT": 130, "SIGKILL": -9}.get(ending, 0)
        until(lambda: is_gone(host.root, left), GONE_WITHIN_S)


def test_the_foreground_says_where_it_is_on_stdout_and_the_rest_on_stderr() -> None:
    with foreground("v3-8", "--seed", "3") as (process, host):
        assert told(host)["generation"] == "v3"
        process.terminate()
        output, words = process.communicate(timeout=LIMIT_S)
    assert output == ""
    assert f"tpusmi --simulate {host.root}" in words


def test_the_foreground_complains_once_of_a_fault_that_there_is_not() -> None:
    with foreground("v5e-1") as (process, host):
        Path(host.root, faults.FILE).write_text("bogus\n")
        assert process.stderr is not None
        before = ""
        while "unknown fault 'bogus'" not in before:
            before += process.stderr.readline()
        time.sleep(1.2)  # two more looks
        process.terminate()
        _, words = process.communicate(timeout=LIMIT_S)
    words = before + words
    assert words.count("unknown fault 'bogus'") == 1
    assert f"kill {process.pid}" in words


def test_the_stand_in_for_the_sdk_ends_with_its_host() -> None:
    with start(HostPlan("v5e-1")) as host:
        assert host.sdk_command is not None
        with subprocess.Popen(
            host.sdk_command,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write("null\n")
            child.stdin.flush()
            assert "tensorcore_util" in child.stdout.readline()
            os.kill(told(host)["keeper"][0], signal.SIGKILL)
            until(lambda: not is_running(host.root), GONE_WITHIN_S)
            _, words = child.communicate("null\n", timeout=LIMIT_S)
    assert child.returncode == 1
    assert words == "the simulated host has ended\n"


def test_a_python_that_cannot_be_run_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(StartError, match="No such file"), start(HostPlan("v5e-1")):
        pass


def test_any_command_can_look_at_a_running_host() -> None:
    with foreground("v6e-16", "--worker", "2", "--age", "60") as (_, host):
        found = tpusmi("/nowhere", "--simulate", host.root, "--json")
        snapshot = json.loads(found.stdout)
    assert found.returncode == 0, found.stderr
    assert snapshot["simulated"] is True
    assert [device["id"] for device in snapshot["devices"]] == [8, 9, 12, 13]


@pytest.mark.parametrize(("name", "devices"), [("v5e-8", 8), ("v5litepod-1", 1), ("7x-8", 8)])
def test_any_command_can_have_a_host_of_its_own(name: str, devices: int, tmp_path: Path) -> None:
    found = tpusmi("/nowhere", "--simulate", name, "--json", TMPDIR=str(tmp_path))
    assert found.returncode == 0, found.stderr
    snapshot = json.loads(found.stdout)
    assert snapshot["simulated"] is True
    assert len(snapshot["devices"]) == devices
    assert all(device["tensorcore_utilization_percent"] for device in snapshot["devices"])
    assert os.listdir(tmp_path) == []


def test_a_host_starts_below_a_linked_directory_and_with_a_safe_path(tmp_path: Path) -> None:
    """Where its job's script is not first in Python's path, or under another name."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for variables in ({"TMPDIR": f"{tmp_path}/link"}, {"PYTHONSAFEPATH": "1"}):
        found = tpusmi("/nowhere", "--simulate", "v5e-1", "-L", **variables)
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout.startswith("TPU 0: TPU v5e")


def test_a_script_that_kills_its_viewer_leaves_nothing() -> None:
    with subprocess.Popen(
        [*TPUSMI, "--simulate", "v5e-4", "--json", "--loop", "1"],
        env=environment("/nowhere"),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        snapshot = json.loads(process.stdout.readline())
        pids = [p["pid"] for p in snapshot["processes"]]
        left = [(pid, identity.start_ticks("/proc", pid) or 0) for pid in pids]
        directory = Path(os.readlink(f"/proc/{pids[0]}/fd/3")).parents[2]
        process.kill()
    assert left
    until(lambda: is_gone(str(directory), left), GONE_WITHIN_S)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--simulate", "v5e-9", "--json"], "did you mean"),
        (["--simulate", "/no/such/place", "--json"], "no simulated host in /no/such/place"),
        (["--simulate"], "--simulate needs a value"),
        (["demo", "--simulate", "v5e-8"], "starts its own simulated host"),
        (["simulate"], "TYPE"),
        (["simulate", "v5e-8", "--nonsense"], "--nonsense"),
        (
            ["simulate", "v5e-8", "--processes", "3"],
            "8 chips cannot be split evenly",
        ),
        (["simulate", "v5e-8", "--fault", "fire"], "unknown fault 'fire'"),
        (["simulate", "v5e-8", "--port", "0"], "0 is not a port"),
        (["simulate", "v5e-8", "--freeze", "-1"], "must be from 0 to 1e9 seconds"),
        (["simulate", "v6e-16", "--worker", "9"], "its workers are 0 to 3"),
    ],
)
def test_a_wrong_command_line_exits_2_and_starts_nothing(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    found = tpusmi(tmp_path, *arguments)
    assert found.returncode == 2
    assert words in found.stderr
    assert found.stdout == ""


def test_the_dashboard_draws_a_host_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    command = [*TPUSMI, "--simulate", "v5e-4"]
    with terminal(command, environment(tmp_path, TMPDIR=str(tmp_path)), 140, 40) as found:
        found.see("SIMULATED")
        found.see("TPU v5e")
        found.press("q")
        assert found.end() == 0
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("columns", [80, 60])
def test_one_plain_table_fits_the_terminal_it_is_printed_on(tmp_path: Path, columns: int) -> None:
    command = [*TPUSMI, "--once", "--simulate", "v5e-8"]
    with terminal(command, environment(tmp_path, TMPDIR=str(tmp_path)), columns, 40) as found:
        assert found.end() == 0
        found.see("tpu:7")
        written = found.written.decode().replace("\r\n", "\n")
    titles, *devices = re.sub(r"\x1b\S*?m", "", written).split("\n\n")[1].splitlines()
    assert len(devices) == 8
    assert all(len(row) <= columns for row in devices)
    assert {"DEVICE", "MEMORY", "MXU", "DUTY", "BW"} <= {*titles.split()}


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"version": 1}',
        '{"version": 2}',
        '{"version": 1, "keeper": [1], "ports": []}',
        '{"version": 1, "keeper": [1, 1], "ports": ["8431"]}',
        '{"version": 1, "keeper": [1, 1], "ports": [8431]}',
    ],
)
def test_a_directory_that_is_no_running_host_is_refused_with_a_sentence(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / description.FILE).write_text(text)
    found = tpusmi(tmp_path, "--simulate", str(tmp_path), "--json")
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert "simulated" in found.stderr


def test_a_busy_port_exits_5_with_the_port_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(PortBusyError, match=f"port {port} is in use"),
            start(HostPlan("v5e-1", port=port)),
        ):
            pass
        arguments = ("simulate", "v5e-1", "--port", str(port))
        found = tpusmi("/nowhere", *arguments, TMPDIR=str(tmp_path))
    assert found.returncode == 5
    assert f"port {port} is in use" in found.stderr
    assert os.listdir(tmp_path) == []


def test_libtpus_own_port_can_be_asked_for(tmp_path: Path) -> None:
    code = (
        "from tpusmi.simulate.host import HostPlan, start\n"
        "with start(HostPlan('v5e-8', processes=2, port=8431)) as host: print(host.metrics_ports)"
    )
    found = subprocess.run(
        networks.alone(sys.executable, "-c", code),
        env=environment(tmp_path), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert found.stdout == "(8431, 8432)\n", found.stderr


def test_the_help_lists_every_fault(tmp_path: Path) -> None:
    words = tpusmi(tmp_path, "simulate", "--help").stdout
    assert all(f"  {name}" in words for name in faults.NAMES)


@pytest.fixture(scope="module")
def v5e_4() -> Iterator[Host]:
    with start(HostPlan("v5e-4")) as host:
        yield host


@pytest.fixture
def faulty(v5e_4: Host) -> Iterator[Callable[..., Host]]:
    """Makes a running host go wrong, and right again."""

    def go_wrong(*texts: str) -> Host:
        set_faults(v5e_4.root, texts)
        return v5e_4

    yield go_wrong
    set_faults(v5e_4.root, ())
    until(lambda: _answers(v5e_4))


def _answers(host: Host) -> bool:
    try:
        return len(duty(host, limit_s=2.0)) == 4
    except grpc.RpcError:
        return False


def test_a_server_can_go_away_and_come_back(faulty: Callable[..., Host]) -> None:
    host = faulty("no-server")
    until(lambda: not _answers(host))
    assert status_of(lambda: duty(host)) is grpc.StatusCode.UNAVAILABLE
    faulty()
    until(lambda: _answers(host))


def _accepts(host: Host) -> bool:
    """False while one server has gone and the next one does not listen yet."""
    try:
        socket.create_connection(("127.0.0.1", host.metrics_ports[0]), 20).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_port_can_accept_and_be_silent(faulty: Callable[..., Host]) -> None:
    host = faulty("silent")
    until(lambda: not _answers(host) and _accepts(host))
    with socket.create_connection(("127.0.0.1", host.metrics_ports[0]), 5) as connection:
        connection.settimeout(0.3)
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        with pytest.raises(TimeoutError):
            connection.recv(1)


def test_a_web_server_can_be_on_the_port(faulty: Callable[..., Host]) -> None:
    host = faulty("http")
    until(lambda: not _answers(host) and _accepts(host))
    url = f"http://127.0.0.1:{host.metrics_ports[0]}/"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=20) as page:
        assert page.status == 200


def test_another_service_can_be_on_the_port(faulty: Callable[..., Host]) -> None:
    host = faulty("not-libtpu")
    until(lambda: not _answers(host))
    until(lambda: status_of(lambda: duty(host)) is grpc.StatusCode.UNIMPLEMENTED)


@IPV6
def test_a_server_can_be_on_ipv6_alone(faulty: Callable[..., Host]) -> None:
    host = faulty("ipv6-only")
    until(lambda: not _answers(host))

    def on_ipv6() -> list[float] | None:
        try:
            return duty(host, address="[::1]")
        except grpc.RpcError:
            return None  # for a moment it is on neither

    assert len(until(on_ipv6)) == 4


def test_a_server_can_be_slow(faulty: Callable[..., Host]) -> None:
    host = faulty("slow:0.4")
    started_s = time.monotonic()
    duty(host)
    assert time.monotonic() - started_s >= 0.4


def test_a_metric_can_be_unknown(faulty: Callable[..., Host]) -> None:
    host = faulty("not-found:duty_cycle_percent")
    assert status_of(lambda: duty(host)) is grpc.StatusCode.NOT_FOUND
    with grpc.insecure_channel(f"127.0.0.1:{host.metrics_ports[0]}") as channel:
        listed = channel.unary_unary(LIST_METRICS)(b"", timeout=20)
    assert DUTY.encode() not in listed


@pytest.mark.parametrize(
    ("fault", "rows"), [("missing-device:1", 3), ("missing-device:9", 0), ("empty", 0)]
)
def test_an_answer_can_lack_rows(faulty: Callable[..., Host], fault: str, rows: int) -> None:
    assert len(duty(faulty(fault))) == rows


def test_the_job_can_stop_while_it_runs(faulty: Callable[..., Host]) -> None:
    host = faulty("idle")
    until(lambda: max(duty(host)) == 0)
    faulty("hang")
    until(lambda: min(duty(host)) > 95)
    assert json.loads(ask_sdk(host).stdout)["metrics"]["tensorcore_util"]["data"] == ["0.00"] * 4


def test_a_bad_line_in_the_file_of_faults_changes_nothing(v5e_4: Host) -> None:
    path = Path(v5e_4.root, faults.FILE)
    path.write_text("fire\n")
    assert len(duty(v5e_4)) == 4
    path.write_text("")
    with pytest.raises(ValueError, match="unknown fault"):
        set_faults(v5e_4.root, ["fire"])


def test_the_sdk_can_crash(faulty: Callable[..., Host]) -> None:
    found = ask_sdk(faulty("sdk-crash"))
    assert (found.returncode, found.stdout) == (-signal.SIGSEGV, "")


def test_the_sdk_can_hang_until_whoever_waits_is_gone(faulty: Callable[..., Host]) -> None:
    host = faulty("sdk-hang")
    assert host.sdk_command is not None
    with subprocess.Popen(host.sdk_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.write(b"null\n")
        child.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        child.stdin.close()
        assert child.wait(LIMIT_S) == 0


def test_a_child_can_outlive_its_job_and_keep_the_nodes() -> None:
    with start(HostPlan("v5e-4", faults=("orphan",))) as host:
        (process,) = told(host)["processes"]
        assert list(holders(host)) == [process["pid"]]
        assert status_of(lambda: duty(host)) is grpc.StatusCode.UNAVAILABLE
        status = Path(f"/proc/{process['pid']}/stat").read_text().rpartition(")")[2].split()
        assert int(status[1]) != told(host)["keeper"][0]
        left = identities(host)
    assert is_gone(host.root, left)


def test_a_lock_file_can_be_left_by_nobody() -> None:
    with start(HostPlan("v5e-4", faults=("lockfile-left",))) as host:
        assert os.path.exists(host.path("/tmp/libtpu_lockfile"))
        assert holders(host) == {}
        assert host.metrics_ports == ()


def test_local_addresses_mean_that_nobody_serves() -> None:
    with start(HostPlan("v5e-4", faults=("addresses-local",))) as host:
        (pid,) = holders(host)
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert b"TPU_PROCESS_ADDRESSES=local" in environ
        assert status_of(lambda: duty(host)) is grpc.StatusCode.UNAVAILABLE


def test_nodes_can_be_forbidden() -> None:
    with start(HostPlan("v5e-4", faults=("no-permission",))) as host:
        assert os.stat(host.path("/dev/vfio/1")).st_mode & 0o777 == 0
        assert len(duty(host)) == 4


def test_a_host_can_leave_its_nodes_to_somebody_else() -> None:
    with start(HostPlan("v5e-4", age_s=30.0, hold=False)) as host:
        assert holders(host) == {}
        assert len(duty(host)) == 4
        # Whoever holds them, the job runs: its MXUs agree with its duty cycle.
        percents = Running(host.root).mxu_percents()
        assert len(percents) == 4
        assert min(percents) > 30


def test_256_devices_are_no_trouble() -> None:
    with start(HostPlan("v5e-8", chips=256)) as host:
        assert len(duty(host)) == 256
        assert len(next(iter(holders(host).values()))) == 256


def test_the_agent_of_a_simulated_job_tells_of_it_and_of_the_time_before() -> None:
    with start(HostPlan("v5e-4", processes=2, freeze_s=200.0, agent=True)) as host:
        collector = open_collector(host, with_past=True, detailed=True)
        snapshot = collector.read_once()
        collector.stop()
    jobs = [p for p in snapshot.processes if p.interval_s is not None]
    assert [len(snapshot.devices_of(p.key)) for p in jobs] == [2, 2]
    assert {p.phase for p in jobs} == {"running"}
    assert {p.facts["device_count"] for p in jobs} == {4}
    for device in snapshot.devices:
        assert snapshot.values[device.key, "hbm_used_bytes"].source == AGENT
        (profile,) = [p.profile for p in jobs if p.key in device.owners]
        assert profile is not None
        held = sum(a.bytes or 0 for a in profile.allocations if a.device == device.id)
        assert held == snapshot.value("live_array_bytes", device.key)
        past = collector.history.window("duty_cycle_percent", device.key, int(snapshot.at_s), 599)
        assert past is not None
        assert sum(v >= 0 for v in past) == pytest.approx(200, abs=6)
    assert roofline(snapshot, snapshot.devices[0]).bound in ("memory", "compute")


def test_a_leak_shows_in_the_memory_and_on_its_line_and_in_the_agent_it_brings() -> None:
    with start(HostPlan("v5e-1", age_s=100.0)) as host:
        source = Segments(host, by_device=True)
        assert source.read(time.monotonic()).processes == ()
        set_faults(host.root, ["leak"])

        def leaked() -> int | None:
            """Bytes of the line that leaks."""
            for process in source.read(time.monotonic()).processes:
                for allocation in process.profile.allocations if process.profile else ():
                    if allocation.function == "log_metrics":
                        return allocation.bytes
            return None

        first = until(leaked)
        until(lambda: (leaked() or 0) > first)
        source.close()


def test_time_that_stands_still_shows_a_leak_that_began_with_the_training() -> None:
    with start(HostPlan("v5e-1", freeze_s=300.0, faults=("leak",))) as host:
        source = Segments(host, by_device=True)
        (process,) = source.read(time.monotonic()).processes
        source.close()
        facts = [host_facts(host) for _ in range(2)]
    assert process.profile is not None
    assert "log_metrics" in {a.function for a in process.profile.allocations}
    assert facts[0].uptime_s == facts[1].uptime_s
    assert facts[0].cpus == 28


def test_a_server_that_no_connection_reaches_is_not_taken_for_another_process(
    tmp_path: Path,
) -> None:
    """In a new network namespace the loopback interface is down, and the kernel lists the port."""
    alone = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-r", "-n"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")
    command = [*alone, *TPUSMI, "--simulate", "v5e-1", "--json"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True)
    found = json.loads(done.stdout)
    (notice,) = (n["message"] for n in found["warnings"] if n["code"] == "no_metrics")
    assert "no connection to port" in notice
    assert "another process" not in notice


def test_a_program_is_passed_on_after_an_empty_line() -> None:
    """As Python prints it line by line where its output has no buffer."""
    code = "import os, time; os.write(1, b'one'); time.sleep(0.3); os.write(1, b'\\n')"
    code += "; time.sleep(0.3); os.write(1, b'two\\n'); time.sleep(60)"
    keeper = Keeper(HostPlan("v5e-1", hold=False, program=("-c", code)))
    try:
        assert [keeper.line(LIMIT_S), keeper.line(LIMIT_S)] == ["one", "two"]
    finally:
        keeper.end()
