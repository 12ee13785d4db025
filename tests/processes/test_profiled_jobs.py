"""Captures of a real JAX job by the profiler service in it, and which process listens where."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.free_ports import free_port
from support.metric_servers import server_process
from support.networks import alone
from support.profiled_jobs import jax_server
from support.profiler_servers import fields
from support.waits import until

from tpusmi.collect import look_for_jobs
from tpusmi.model import Host
from tpusmi.profiler import local_ports
from tpusmi.profiler.capture import ProfiledTarget, ProfileSettings, profiled
from tpusmi.profiler.capture_target import target_of
from tpusmi.profiler.local_ports import listener_of, ports_of, usual_port_of
from tpusmi.profiler.remote import capture
from tpusmi.profiler.remote_addresses import parse
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import Capture
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.troubles import CaptureError, Trouble

REQUEST = CaptureRequest(duration_ms=200, deadline_s=20.0)


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the agent's segment."""
    return tmp_path_factory.mktemp("segments")


@pytest.fixture(scope="module")
def service(segments: Path) -> Iterator[tuple[int, int]]:
    """Pid and port of a job."""
    port = free_port()
    with jax_server(port, segments) as pid:
        yield pid, port


def test_a_real_job_is_captured_by_every_name_of_its_port(
    tmp_path: Path, service: tuple[int, int]
) -> None:
    pid, port = service
    for address in (f":{port}", f"[::1]:{port}", f"grpc://127.0.0.1:{port}"):
        folder = tmp_path / str(len(address))
        folder.mkdir()
        (answer,) = capture([parse(address)], REQUEST, str(folder), lambda _: None)
        assert isinstance(answer, CapturedTrace), answer
        assert (answer.capture.pid, answer.notes) == (pid, ())
        data = Path(answer.path).read_bytes()
        assert len(data) == answer.capture.trace_bytes
        fields(data)  # whole
        assert b"train" in data  # host events, with the job's own steps
        profile = read_trace(answer.path, TraceLimits(until_s=time.monotonic() + 20))
        assert profile.backend == "cpu"
        assert profile.programs


def test_of_two_captures_at_once_one_is_told_of_the_other_and_the_job_goes_on(
    tmp_path: Path, service: tuple[int, int]
) -> None:
    pid, port = service
    addresses = [f"127.0.0.1:{port}", f"[::1]:{port}"]
    long = REQUEST._replace(duration_ms=1500)
    answers = capture([*map(parse, addresses)], long, str(tmp_path), lambda _: None)
    refused = [answer for answer in answers if isinstance(answer, CaptureError)]
    assert [error.trouble for error in refused] == [Trouble.BUSY]
    assert f":{port} is running. Try again after it" in str(refused[0])
    again = tmp_path / "again"
    again.mkdir()
    (answer,) = capture([parse(addresses[0])], REQUEST, str(again), lambda _: None)
    assert isinstance(answer, CapturedTrace), answer
    assert os.path.exists(f"/proc/{pid}/task")


def test_a_capture_that_is_interrupted_leaves_the_profiler_free(
    tmp_path: Path, service: tuple[int, int]
) -> None:
    _, port = service
    interrupted = threading.Event()

    def interrupt(sentence: str) -> None:
        if sentence.startswith("capturing"):
            time.sleep(0.2)
            interrupted.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture([parse(f":{port}")], REQUEST._replace(duration_ms=60_000), str(tmp_path), interrupt)
    assert interrupted.is_set()

    def is_free() -> bool:
        (answer,) = capture([parse(f":{port}")], REQUEST, str(tmp_path), lambda _: None)
        return isinstance(answer, CapturedTrace)

    until(is_free, 30, "the profiler is free")


def test_a_job_writes_no_file_for_a_capture(tmp_path: Path, service: tuple[int, int]) -> None:
    pid, port = service
    directory = Path(os.readlink(f"/proc/{pid}/cwd"))
    before = set(os.listdir(directory))
    capture([parse(f":{port}")], REQUEST, str(tmp_path), lambda _: None)
    assert not [name for name in set(os.listdir(directory)) - before if "xplane" in name]
    assert os.listdir(tmp_path) == ["000.xplane.pb"]


# -- who listens where


def test_the_listener_of_a_port_and_the_ports_of_a_process(service: tuple[int, int]) -> None:
    pid, port = service
    assert listener_of(port) == pid
    assert ports_of(pid) == (port,)
    assert usual_port_of(pid) is None


def test_a_port_without_a_listener_has_none() -> None:
    assert listener_of(free_port()) is None
    assert ports_of(2**22 - 1) is None
    assert usual_port_of(2**22 - 1) is None


def test_a_documented_port_is_the_profiler_of_its_process(
    monkeypatch: pytest.MonkeyPatch, service: tuple[int, int]
) -> None:
    pid, port = service
    monkeypatch.setattr(local_ports, "PROFILER_PORTS", (port + 1, port))
    assert usual_port_of(pid) == port
    assert usual_port_of(os.getpid()) is None


def test_a_process_in_another_network_has_no_port_of_ours() -> None:
    code = (
        "import socket, sys\n"
        "with socket.create_server(('127.0.0.1', 9012)):\n"
        "    print(flush=True); sys.stdin.read()\n"
    )
    command = alone(sys.executable, "-c", code)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        if os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            process.stdin.close()
            pytest.skip("namespaces may not be made here")
        assert ports_of(process.pid) == (9012,)
        assert usual_port_of(process.pid) is None
        assert listener_of(9012) != process.pid
        process.stdin.close()


def test_of_a_shared_port_no_process_is_the_listener() -> None:
    with socket.socket() as first, socket.socket() as second:
        for sharing in (first, second):
            sharing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sharing.bind(("127.0.0.1", 0 if sharing is first else first.getsockname()[1]))
            sharing.listen()
        port = first.getsockname()[1]
        assert local_ports.is_shared(port)
        assert listener_of(port) is None
    with closing(socket.create_server(("127.0.0.1", 0))) as alone_there:
        assert listener_of(alone_there.getsockname()[1]) == os.getpid()


def test_the_server_of_a_connection_is_the_process_that_accepted_it() -> None:
    with (
        server_process() as server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
    ):
        connection.settimeout(10)
        connection.recv(1)  # its first frame: it has accepted
        assert local_ports.server_of(connection) == server.pid


def test_a_connection_that_has_ended_has_no_server() -> None:
    left, right = socket.socketpair()
    right.close()
    left.close()
    assert local_ports.server_of(left) is None


def test_a_host_out_of_reach_is_named_at_once(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from tpusmi.profiler import remote, remote_task\n"
        "from tpusmi.profiler.remote import capture\n"
        "from tpusmi.profiler.remote_addresses import parse\n"
        "from tpusmi.profiler.requests import CaptureRequest\n"
        "remote.CONNECT_S = remote_task.CONNECT_S = 60.0\n"
        "addresses = ['192.0.2.1:9012', '[2001:db8::1]:9012', ':9012']\n"
        "for answer in capture([*map(parse, addresses)], CaptureRequest(), sys.argv[1], str):\n"
        "    print(answer.trouble.name, answer)\n"
    )
    began_s = time.monotonic()
    command = alone(sys.executable, "-c", code, str(tmp_path))
    run = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    lines = run.stdout.splitlines()
    if "unreachable" not in lines[0]:
        pytest.skip("namespaces may not be made here")
    assert time.monotonic() - began_s < 30
    assert lines[0] == "ABSENT 192.0.2.1 cannot be reached from here: Network is unreachable"
    assert lines[1].startswith("ABSENT 2001:db8::1 cannot be reached from here: ")
    assert lines[2].startswith("ABSENT Nothing listens on localhost:9012. ")


def test_only_the_process_that_is_named_is_captured(
    tmp_path: Path, service: tuple[int, int]
) -> None:
    pid, port = service
    (answer,) = capture([parse(f":{port}")], REQUEST, str(tmp_path), lambda _: None, pid=pid)
    assert isinstance(answer, CapturedTrace), answer
    assert answer.capture.pid == pid
    os.unlink(answer.path)
    (answer,) = capture(
        [parse(f":{port}")], REQUEST, str(tmp_path), lambda _: None, pid=os.getpid()
    )
    assert isinstance(answer, CaptureError)
    assert (answer.trouble, str(answer)) == (
        Trouble.DENIED,
        f"port {port}, which process {os.getpid()} names as its own, is that of process {pid}",
    )
    assert os.listdir(tmp_path) == []


# -- from a target to a profile


def profile_of(target: str, segments: Path) -> ProfiledTarget:
    settings = ProfileSettings(request=REQUEST, with_xprof=False, cost_s=0.5)
    host = Host(segment_dir=str(segments))
    (answer,) = profiled(host, [target_of(target)], settings, lambda: look_for_jobs(host))
    return answer


def test_a_capture_by_address_measures_its_cost_where_the_job_has_an_agent(
    segments: Path, service: tuple[int, int]
) -> None:
    pid, port = service

    def measured() -> Capture | None:
        """Once the cost is known: on a busy machine an agent samples late."""
        answer = profile_of(f"localhost:{port}", segments)
        assert answer.profile is not None, answer.error
        made = answer.profile.capture
        rates = (made.cost.steps_per_s_during, made.cost.steps_per_s_after)
        return None if None in rates else made

    made = until(measured)
    assert (made.how, made.pid) == ("grpc", pid)


def test_a_pid_without_an_agent_is_captured_by_the_documented_port(
    tmp_path: Path, service: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, port = service
    monkeypatch.setattr(local_ports, "PROFILER_PORTS", (port,))
    answer = profile_of(str(pid), tmp_path)  # where no agent has a segment
    assert answer.profile is not None, answer.error
    assert (answer.profile.capture.how, answer.profile.capture.pid) == ("grpc", pid)
    assert answer.profile.capture.target == str(pid)


def test_other_ports_of_a_process_are_named_and_not_tried(
    tmp_path: Path, service: tuple[int, int]
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as own:
        own.settimeout(0.2)
        answer = profile_of(str(os.getpid()), tmp_path)
        assert answer.error is not None
        assert answer.error.trouble == Trouble.ABSENT
        assert f"`tpusmi profile :{own.getsockname()[1]}`" in str(answer.error)
        with pytest.raises(TimeoutError):
            own.accept()
