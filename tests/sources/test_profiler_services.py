"""Captures over gRPC from servers that behave, that are old, and that are something else: each gets
its trace or its sentence, within its time, and nothing is left behind.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import grpc
import pytest
from support.clocks import takes_at_most
from support.flooding_servers import KINDS, flooding
from support.free_ports import free_port
from support.metric_servers import of_devices, saying_port, serving, silent_port
from support.profiler_servers import (
    ProfileCall,
    ProfilerServer,
    field,
    large_traces,
    profiling,
    trace_of,
)
from support.waits import until, with_a_short_limit

from tpusmi.profiler import local_ports, remote, remote_connection, remote_round, remote_task
from tpusmi.profiler.old_servers import NOWHERE
from tpusmi.profiler.remote import ADDRESSES_MOST, capture
from tpusmi.profiler.remote_addresses import parse
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest
from tpusmi.trace.troubles import CaptureError, Trouble

MIB = 1 << 20
SHORT = CaptureRequest(duration_ms=50, deadline_s=60.0)


def captured(
    folder: Path | str, *addresses: object, **more: Any
) -> list[CapturedTrace | CaptureError]:
    request = SHORT._replace(**more)
    return capture(
        [parse(str(address)) for address in addresses], request, str(folder), lambda _: None
    )


def trace_from(folder: Path, address: object, **more: Any) -> CapturedTrace:
    (answer,) = captured(folder, address, **more)
    assert isinstance(answer, CapturedTrace), answer
    return answer


def trouble_with(folder: Path, address: object, **more: Any) -> tuple[Trouble, str]:
    """The kind of trouble and the sentence. No file is left, and no thread."""
    (answer,) = captured(folder, address, **more)
    assert isinstance(answer, CaptureError)
    assert os.listdir(folder) == []
    return answer.trouble, str(answer)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    until(lambda: not _captures() - before, what="no thread is left")


def _captures() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("capture ")}


def hurried(monkeypatch: pytest.MonkeyPatch, connect_s: float) -> None:
    """Less time to connect."""
    monkeypatch.setattr(remote, "CONNECT_S", connect_s)
    monkeypatch.setattr(remote_task, "CONNECT_S", connect_s)
    monkeypatch.setattr(remote, "SPARE_S", 0.2)


# -- servers that behave


def test_a_trace_arrives_whole_in_a_file_that_only_we_can_read(tmp_path: Path) -> None:
    trace = os.urandom(3 * MIB)
    with profiling(lambda call, context: field(7, 0) + field(8, trace)) as server:
        answer = trace_from(tmp_path, server.port)
    path = Path(answer.path)
    assert path.parent == tmp_path
    assert path.read_bytes() == trace
    assert path.stat().st_mode & 0o777 == 0o600
    made = answer.capture
    assert (made.how, made.target, made.host) == ("grpc", f"localhost:{server.port}", "localhost")
    assert (made.asked_s, made.trace_bytes, made.pid) == (0.05, len(trace), os.getpid())
    assert made.took_s is not None
    assert 0.05 <= made.took_s < 60
    assert made.captured_at_s is not None
    assert abs(made.captured_at_s - time.time()) < 60
    assert answer.notes == ()


def test_a_server_is_asked_for_little_and_nothing_else_runs_in_it(tmp_path: Path) -> None:
    with profiling() as server:
        trace_from(tmp_path, server.port)
    (call,) = server.calls
    assert call.emits_xspace
    assert (call.duration_ms, call.host_tracer_level, call.python_tracer_level) == (50, 1, 0)
    assert call.repository == NOWHERE
    assert server.methods == ["Profile"]


def test_several_servers_begin_at_the_same_moment_and_none_waits_for_the_last(
    tmp_path: Path,
) -> None:
    all_called = threading.Barrier(3, timeout=30)
    answered: list[str] = []

    def at_once(call: ProfileCall, context: Any) -> bytes:
        all_called.wait()
        answered.append("at once")
        return trace_of(5)

    def later(call: ProfileCall, context: Any) -> bytes:
        all_called.wait()
        until(lambda: len(answered) == 2)
        time.sleep(1.0)
        return trace_of(5)

    with profiling(at_once) as first, profiling(later) as second, profiling(at_once) as third:
        addresses = [f"127.0.0.1:{server.port}" for server in (first, second, third)]
        answers = captured(tmp_path, *addresses)
    assert [isinstance(answer, CapturedTrace) for answer in answers] == [True] * 3
    captures = [answer.capture for answer in answers if isinstance(answer, CapturedTrace)]
    assert [made.target for made in captures] == addresses
    took_s = [made.took_s or 0.0 for made in captures]
    assert max(took_s) == took_s[1] > 1.0
    assert len({answer.path for answer in answers if isinstance(answer, CapturedTrace)}) == 3


@with_a_short_limit
def test_a_silent_server_and_a_dead_one_delay_the_others_for_a_moment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurried(monkeypatch, 1.0)
    monkeypatch.setattr(remote_round, "LATE_S", 0.2)
    began_s = time.monotonic()
    with profiling() as good, silent_port() as silent, full_port() as full:
        folder = mkdtemp(dir=tmp_path)
        answers = captured(folder, silent, good.port, free_port(), f"127.0.0.1:{full}")
    assert isinstance(answers[1], CapturedTrace)
    assert good.calls[0].at_s - began_s < 1.0
    assert [str(answer).partition(" ")[2][:30] for answer in (answers[0], answers[3])] == [
        "accepts connections but does n",
        "has not answered for 1 s: the ",
    ]
    assert "Nothing listens on" in str(answers[2])
    assert time.monotonic() - began_s < 15


@with_a_short_limit
def test_a_server_that_answers_late_is_captured_and_the_delay_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_round, "LATE_S", 0.1)
    real = socket.getaddrinfo

    def look_up(host: str, *words: Any, **more: Any) -> Any:
        time.sleep(0.6)
        return real("127.0.0.1", *words, **more)

    monkeypatch.setattr(remote_connection.socket, "getaddrinfo", look_up)
    with profiling() as prompt, profiling() as late:
        folder = mkdtemp(dir=tmp_path)
        answers = captured(folder, prompt.port, f"far-away:{late.port}")
    first, second = (a.notes for a in answers if isinstance(a, CapturedTrace))
    assert first == ()
    assert re.fullmatch(
        rf"The capture of far-away:{late.port} began 0\.\d s after the first one: it answered late",
        second[0],
    )


def test_a_user_without_threads_gets_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(remote_task.threading.Thread, "start", refuse)
    assert trouble_with(tmp_path, "localhost:1") == (
        Trouble.FAILED,
        "No thread can be started to capture localhost:1",
    )


def test_a_server_that_answers_on_ipv6_only_is_found_by_name(tmp_path: Path) -> None:
    with profiling(address="[::1]:0") as server:
        for address in (f"[::1]:{server.port}", f"localhost:{server.port}"):
            trace_from(tmp_path, address)
            os.unlink(tmp_path / "000.xplane.pb")


def test_a_proxy_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "grpc_proxy", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with profiling() as server:
        trace_from(tmp_path, f"127.0.0.1:{server.port}")


def test_a_large_trace_takes_no_memory(tmp_path: Path) -> None:
    with large_traces(100) as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer = trace_from(tmp_path, server.port, deadline_s=30.0)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert answer.capture.trace_bytes == 100 * MIB
    assert os.path.getsize(answer.path) == 100 * MIB
    assert (after - before) * 1024 < 20 * MIB


def test_of_processes_that_share_a_port_the_named_one_is_captured(tmp_path: Path) -> None:
    with profiling(shares=True) as ours, large_traces(1, ours.port) as other:
        address = f"127.0.0.1:{ours.port}"
        for pid in (other.pid, os.getpid(), other.pid):
            (answer,) = capture([parse(address)], SHORT, str(tmp_path), lambda _: None, pid=pid)
            assert isinstance(answer, CapturedTrace), answer
            assert (answer.capture.pid, answer.notes) == (pid, ())
            os.unlink(answer.path)
        answer = trace_from(tmp_path, address)
    assert len(ours.calls) + (answer.capture.pid == other.pid) == 2
    assert answer.notes[0].startswith(f"Several processes listen on port {ours.port}, and ")


def test_progress_is_reported_on_the_thread_that_asks(tmp_path: Path) -> None:
    said = []
    with profiling(lambda call, context: trace_of(9 * MIB)) as server:
        where = f"localhost:{server.port}"
        capture(
            [parse(where)], SHORT, str(tmp_path), lambda s: said.append((threading.get_ident(), s))
        )
    own = threading.get_ident()
    assert said == [
        (own, f"connecting to {where}"),
        (own, "capturing for 0.05 s"),
        (own, f"receiving 9 MiB from {where}"),
    ]


def test_an_interrupt_ends_the_capture_in_the_job(tmp_path: Path) -> None:
    ended = threading.Event()

    def wait(call: ProfileCall, context: Any) -> bytes:
        if not context.add_callback(ended.set):  # it has ended already
            ended.set()
        ended.wait(10)
        return trace_of(5)

    def interrupt(sentence: str) -> None:
        if sentence.startswith("capturing"):
            until(lambda: server.calls)
            raise KeyboardInterrupt

    with profiling(wait) as server:
        with pytest.raises(KeyboardInterrupt):
            capture([parse(str(server.port))], SHORT, str(tmp_path), interrupt)
        assert ended.wait(60)
    assert os.listdir(tmp_path) == []


def test_an_interrupt_while_the_trace_arrives_leaves_no_part_of_it(tmp_path: Path) -> None:
    def interrupt(sentence: str) -> None:
        if sentence.startswith("receiving"):
            raise KeyboardInterrupt

    with large_traces(200) as server, pytest.raises(KeyboardInterrupt):
        capture([parse(str(server.port))], SHORT._replace(deadline_s=30), str(tmp_path), interrupt)
    assert os.listdir(tmp_path) == []


# -- servers that refuse


def test_another_capture_is_named_as_the_reason(tmp_path: Path) -> None:
    refusals = {
        "Another profiling session active.": grpc.StatusCode.INTERNAL,  # JAX
        "A profiling session is already running.": grpc.StatusCode.ALREADY_EXISTS,
        "Another profiler session is active.": grpc.StatusCode.UNAVAILABLE,
    }
    for words, code in refusals.items():
        with profiling(lambda call, context: context.abort(code, words)) as server:  # noqa: B023
            trouble, sentence = trouble_with(tmp_path, server.port)
        assert trouble == Trouble.BUSY
        assert sentence.startswith("Another capture of the job at localhost:")


def test_other_refusals_keep_the_words_of_the_profiler(tmp_path: Path) -> None:
    def refuse(call: ProfileCall, context: Any) -> None:
        context.abort(grpc.StatusCode.INTERNAL, "Profiler\x1b[31m broke " + "x" * 5000)

    with profiling(refuse) as server:
        trouble, sentence = trouble_with(tmp_path, server.port)
    assert trouble == Trouble.FAILED
    assert "Profiler" in sentence
    assert sentence.endswith("(INTERNAL)")
    assert "\x1b" not in sentence
    assert len(sentence) < 400


def test_a_trace_that_is_too_large_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with profiling(lambda call, context: trace_of(3 * MIB)) as server:
        trouble, sentence = trouble_with(tmp_path, server.port, bytes_most=MIB)
    assert trouble == Trouble.FAILED
    assert "has 3 MiB, and the limit is 1 MiB. Capture for a shorter time" in sentence


def test_traces_leave_half_of_the_disk_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs(tmp_path)
    room = os.statvfs_result((*real[:4], 5 * MIB // real.f_frsize, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: room)
    with profiling(lambda call, context: trace_of(2 * MIB)) as a, profiling(a._answer) as b:
        answers = captured(tmp_path, a.port, b.port)
    troubles = [answer for answer in answers if isinstance(answer, CaptureError)]
    assert len(troubles) == 1
    assert "would take most of the free space of" in str(troubles[0])


@pytest.mark.parametrize("room", [0, 4096])
def test_a_full_disk_is_named(tmp_path: Path, room: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with profiling(lambda call, context: trace_of(MIB)) as server:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
            trouble, sentence = trouble_with(tmp_path, server.port)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    why = os.strerror(errno.EFBIG)
    assert (trouble, sentence) == (Trouble.FAILED, f"Cannot write the trace to {tmp_path}: {why}")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "is empty: the job did nothing in that time"),
        (field(7, 1), "is empty: the job did nothing in that time"),
        (field(7, 1) + field(8, b"planes without events"), "is empty: the job did nothing"),
        (field(8, b"t" * 50)[:-10], "makes no sense"),
        (field(8, b"t" * 50) + b"\x43", "makes no sense"),
    ],
)
def test_an_answer_without_a_trace_says_why(tmp_path: Path, answer: bytes, words: str) -> None:
    with profiling(lambda call, context: answer) as server:
        trouble, sentence = trouble_with(tmp_path, server.port)
    assert trouble == Trouble.FAILED
    assert words in sentence


@with_a_short_limit
def test_a_server_that_never_answers_ends_at_the_deadline(tmp_path: Path) -> None:
    servers: list[ProfilerServer] = []

    def wait(call: ProfileCall, context: Any) -> bytes:
        servers[0].wait(30)
        return trace_of(5)

    with profiling(wait) as server:
        servers.append(server)
        began_s = time.monotonic()
        trouble, sentence = trouble_with(tmp_path, server.port, deadline_s=0.4)
    assert trouble == Trouble.FAILED
    assert "did not hand over the trace within 0.4 s of its end" in sentence
    assert 0.4 < time.monotonic() - began_s < 15


def test_a_job_that_ends_during_the_capture_is_named(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as front, profiling() as server:
        port = front.getsockname()[1]
        thread = threading.Thread(target=_cut_off, args=(front, server), daemon=True)
        thread.start()
        trouble, sentence = trouble_with(tmp_path, f"127.0.0.1:{port}", duration_ms=30_000)
        thread.join(60)
    assert trouble == Trouble.FAILED
    assert sentence.endswith("closed the connection during the capture: the job may have ended")


def _cut_off(front: socket.socket, server: ProfilerServer) -> None:
    """A tunnel to that server, which breaks in the midst of the capture."""
    client, _ = front.accept()
    with client, socket.create_connection(("127.0.0.1", server.port)) as behind:
        pairs = ((client, behind), (behind, client))
        threads = [threading.Thread(target=_pass_on, args=pair, daemon=True) for pair in pairs]
        for thread in threads:
            thread.start()
        until(lambda: server.calls)
        time.sleep(0.2)
        for end in (client, behind):
            end.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(60)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass


# -- old servers: no host events, which could stop the job for good; they may write the trace


@pytest.fixture
def without_jaxlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may have loaded JAX into this process, in which the servers run."""
    monkeypatch.setattr(local_ports, "can_write_for_us", lambda pid, folder: False)


@pytest.mark.usefixtures("without_jaxlib")
def test_an_old_server_is_not_asked_for_host_events(tmp_path: Path) -> None:
    with profiling(is_old=True) as server:
        answer = trace_from(tmp_path, server.port, host_tracer_level=2)
    (call,) = server.calls
    assert (call.host_tracer_level, call.repository) == (0, NOWHERE)
    assert [note.partition(":")[0] for note in answer.notes] == ["Host events are missing"]


@pytest.mark.usefixtures("without_jaxlib")
def test_an_old_server_that_cannot_send_the_trace_writes_nowhere(tmp_path: Path) -> None:
    def write(call: ProfileCall, context: Any) -> None:
        with pytest.raises(FileNotFoundError) as failure:
            os.makedirs(os.path.join(call.repository, call.session))
        path = f"{call.repository}/{call.session}"
        words = f"{path}; {os.strerror(failure.value.errno or 0)}"
        context.abort(grpc.StatusCode.INTERNAL, words)

    with profiling(write, is_old=True) as server:
        trouble, sentence = trouble_with(tmp_path, server.port)
    assert trouble == Trouble.FAILED
    assert sentence.endswith("(before 0.7). Run tpusmi on its host, as its user")


@pytest.fixture
def with_jaxlib(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """This process, in which the servers run, has a library of JAX in its memory."""
    library = tmp_path_factory.mktemp("site") / "jaxlib" / "xla.so"
    library.parent.mkdir()
    library.write_bytes(bytes(4096))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        yield


def _write(call: ProfileCall, size: int) -> None:
    folder = Path(call.repository, call.session)
    folder.mkdir()
    (folder / f"{call.session}.xplane.pb").write_bytes(b"t" * size)


@pytest.mark.usefixtures("with_jaxlib")
def test_an_old_server_of_this_host_writes_the_trace_for_us(tmp_path: Path) -> None:
    def write(call: ProfileCall, context: Any) -> bytes:
        _write(call, 700)
        return b""

    with profiling(write, is_old=True) as server:
        answer = trace_from(tmp_path, server.port)
    assert os.listdir(tmp_path) == [os.path.basename(answer.path)]
    assert Path(answer.path).read_bytes() == b"t" * 700
    assert Path(answer.path).stat().st_mode & 0o777 == 0o600
    assert answer.capture.trace_bytes == 700


@pytest.mark.usefixtures("with_jaxlib")
def test_what_an_old_server_writes_is_limited_and_must_be_a_file(tmp_path: Path) -> None:
    def too_much(call: ProfileCall, context: Any) -> bytes:
        _write(call, 3 * MIB)
        return b""

    def link(call: ProfileCall, context: Any) -> bytes:
        Path(call.repository, call.session).mkdir()
        Path(call.repository, call.session, f"{call.session}.xplane.pb").symlink_to("/etc/passwd")
        return b""

    def nothing(call: ProfileCall, context: Any) -> bytes:
        return b""

    for write, words in [
        (too_much, "has 3 MiB, and the limit is 1 MiB"),
        (link, "is too old to send a trace"),
        (nothing, "is too old to send a trace"),
    ]:
        with profiling(write, is_old=True) as server:
            assert words in trouble_with(tmp_path, server.port, bytes_most=MIB)[1]


# -- other servers


def test_a_port_without_a_listener_says_how_to_start_one(tmp_path: Path) -> None:
    port = free_port()
    trouble, sentence = trouble_with(tmp_path, f":{port}")
    assert trouble == Trouble.ABSENT
    assert sentence == (
        f"Nothing listens on localhost:{port}. jax.profiler.start_server({port}) in the job starts"
        f" one, and so does tpusmi.start(profiler_port={port})"
    )


def test_a_host_without_an_address_is_named(tmp_path: Path) -> None:
    trouble, sentence = trouble_with(tmp_path, "no-such-host.invalid:9012")
    assert (trouble, sentence) == (Trouble.ABSENT, "No host has the name no-such-host.invalid")


@with_a_short_limit
def test_a_name_service_that_does_not_answer_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurried(monkeypatch, 0.2)
    answered = threading.Event()
    real = socket.getaddrinfo

    def look_up(*words: Any, **more: Any) -> Any:
        answered.wait(10)
        return real(*words, **more)

    with profiling() as server:
        with monkeypatch.context() as patch:
            patch.setattr(remote_connection.socket, "getaddrinfo", look_up)
            trouble, sentence = trouble_with(tmp_path, f"ip6-localhost:{server.port}")
            assert (trouble, "could not be looked up" in sentence) == (Trouble.ABSENT, True)
            answered.set()
        until(lambda: not _captures())
    assert server.calls == []


def test_the_metrics_server_is_told_apart(tmp_path: Path) -> None:
    with serving(of_devices(range(2))) as server:
        trouble, sentence = trouble_with(tmp_path, server.port)
    assert trouble == Trouble.ABSENT
    assert "answers gRPC, but is not a profiler service" in sentence
    assert server.requests == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is a web server"),
        (b"HTTP/1", "is a web server"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "speaks TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak gRPC"),
        (b"\x00", "does not speak gRPC"),
        (bytes(64), "does not speak gRPC"),
        (b"", "closes the connection at once: a tunnel"),
    ],
)
@with_a_short_limit
def test_a_server_of_another_kind_is_named(tmp_path: Path, words: bytes, sentence: str) -> None:
    with saying_port(words) as saying:
        trouble, text = trouble_with(tmp_path, f"127.0.0.1:{saying.port}")
    assert trouble == Trouble.ABSENT
    assert sentence in text


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "nothing"])
@with_a_short_limit
def test_a_flood_ends_soon_and_costs_little(tmp_path: Path, kind: str) -> None:
    with flooding(kind) as port, takes_at_most(0.5):
        trouble, _ = trouble_with(tmp_path, f"127.0.0.1:{port}")
    assert trouble == Trouble.ABSENT


@contextmanager
def full_port() -> Iterator[int]:
    """A port whose queue is full: a connection to it waits as for a host that is down."""
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        clients = [socket.socket() for _ in range(4)]
        try:
            for client in clients:
                client.setblocking(False)
                client.connect_ex(server.getsockname())
            yield server.getsockname()[1]
        finally:
            for client in clients:
                client.close()


# -- lists of addresses


def test_an_address_that_is_named_twice_is_captured_once(tmp_path: Path) -> None:
    with profiling() as server:
        answers = captured(tmp_path, server.port, f"grpc://localhost:{server.port}/")
    assert isinstance(answers[0], CapturedTrace)
    assert str(answers[1]) == f"localhost:{server.port} is in the list twice"
    assert len(server.calls) == 1


def test_too_many_addresses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="257 addresses are too many: 256 at most"):
        captured(tmp_path, *range(1, ADDRESSES_MOST + 2))


def test_many_captures_leave_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    ports = [free_port() for _ in range(40)]
    assert all(isinstance(answer, CaptureError) for answer in captured(tmp_path, *ports))
    assert len(os.listdir("/proc/self/fd")) == before
